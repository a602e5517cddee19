// What an estimate answers, whichever command asks.
#pragma once

#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/output.h"
#include "report/reports.h"
#include "service/estimate.h"

namespace llmperf::cli {

// The report, with the request in its JSON, and with `curve` times over the context; what does not fit is an error
// beside it.
Answer answer_of(const service::Estimated& estimated, report::Detail detail, bool curve);
Flag& add_detail(Command& command, report::Detail& detail, const char* about);

// What flags say goes over a request from elsewhere.
request::Request over(request::Request all, const request::Request& flags);
// A request as flags say it, over the one of a file where there is one.
struct RequestFlags {
  std::string file;
  request::Request request;
  request::Request asked() const;
};
void add_request_file(Command& command, RequestFlags& flags);
// … and the fields of the workloads, of which a model and a device are needed.
void add_request(Command& command, RequestFlags& flags, std::string_view workloads);

}  // namespace llmperf::cli
