// What an estimate answers, whichever command asks.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/output.h"
#include "report/reports.h"
#include "request/resolve.h"
#include "result/generation.h"

namespace llmperf::cli {

// The JSON of the report holds the request, and with `curve` times over the context.
Answer answer(request::Resolved& resolved, report::Detail detail, bool curve);
Flag& add_detail(Command& command, report::Detail& detail, const char* about);

// The JSON with the request as its last key.
std::string with_request(std::string json, const request::Request& request);

// The request of a file, or of stdin where `path` is "-".
request::Request read_request(const std::string& path);
// `over` where it asks for something, else `under`.
request::Request merged(const request::Request& under, const request::Request& over);
// Throws Error(bad_input) where something is asked for that an estimate says beside its own numbers: a step, the room
// of an engine's cache.
void refuse_beside(const request::Request& request);
// Throws Error(bad_input) for a request without a model or hardware; `hint`: what to do about it.
void check_complete(const request::Request& request, const std::string& hint);

}  // namespace llmperf::cli
