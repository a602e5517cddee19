// `llmperf serve`: traffic on an engine, step by step.
#include "service/serve.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "cli/command.h"
#include "cli/estimate.h"
#include "cli/progress.h"
#include "report/trace.h"

namespace llmperf::cli {
namespace {

Answer serve_answer(const RequestFlags& flags, const Context& context) {
  const request::Request asked = flags.asked();
  service::check_complete(asked, "llmperf serve --help says what it takes");
  request::Sources sources;
  const InterruptGuard guard;
  std::optional<Progress> progress(std::in_place);
  auto shown_at = std::chrono::steady_clock::time_point();
  const service::Served served(
      asked, sources,
      {.drawn = context.output->wants(report::Format::json) || context.output->wants(report::Format::trace),
       .stop = &interruption(),
       .progress = [&](std::int64_t done, std::int64_t all) {
         const auto now = std::chrono::steady_clock::now();
         if (done > 0 && now - shown_at < std::chrono::milliseconds(200)) return;
         shown_at = now;
         (*progress)(static_cast<std::size_t>(done), static_cast<std::size_t>(all), "requests");
       }});
  progress.reset();  // and its line, before anything is said
  if (served.nothing()) {
    fmt::print(stderr, "llmperf: interrupted before a request had ended\n");
    return {.status = kExitInterrupted};
  }
  const result::Serving& result = served.result();
  Answer answer{report::serving_report(result, report::serving_trace(result))};
  answer.report->json = service::with_request(std::move(answer.report->json), asked);
  if (result.interrupted) {
    fmt::print(stderr, "llmperf: interrupted: {}\n", served.progress_text());
    answer.status = kExitInterrupted;
    return answer;
  }
  for (const std::string& missed : report::missed_bounds(result))
    answer.exceeded.push_back("--slo is missed: " + missed);
  return answer;
}

}  // namespace

void describe_serve(Command& command) {
  RequestFlags& flags = answers(command, serve_answer, Traced::yes);
  add_request(command, flags, "s");
}

}  // namespace llmperf::cli
