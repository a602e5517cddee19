// What an estimate answers, whichever command asks.
#pragma once

#include <optional>

#include "base/error.h"
#include "cli/command.h"
#include "report/reports.h"
#include "request/resolve.h"
#include "result/generation.h"

namespace llmperf::cli {

struct Answer {
  report::Report report;  // its JSON holds the request
  std::optional<Error> infeasible;
};
// `curve`: whether the JSON is to hold times over the context.
Answer answer(request::Resolved& resolved, report::Detail detail, bool curve);

// The request of a file, or of stdin where `path` is "-".
request::Request read_request(const std::string& path);
// `over` where it asks for something, else `under`.
request::Request merged(const request::Request& under, const request::Request& over);
// Throws Error(bad_input) for a request without a model or hardware; `hint`: what to do about it.
void check_complete(const request::Request& request, const std::string& hint);

}  // namespace llmperf::cli
