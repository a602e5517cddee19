// What an estimate answers, whichever command asks.
#pragma once

#include <string>

#include "answer/estimate.h"
#include "cli/command.h"
#include "cli/output.h"
#include "report/reports.h"

namespace llmperf::cli {

// The report, with the request in its JSON, and with `curve` times over the context; what does not fit is an error
// beside it.
Answer answer_of(const answer::Estimated& estimated, report::Detail detail, bool curve);
Flag& add_detail(Command& command, report::Detail& detail, const char* about);

// The request of a file, or of stdin where `path` is "-".
request::Request read_request(const std::string& path);
// `over` where it asks for something, else `under`.
request::Request merged(const request::Request& under, const request::Request& over);
}  // namespace llmperf::cli
