// `llmperf serve`: traffic on an engine, step by step.
#include "service/serve.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "cli/command.h"
#include "cli/estimate.h"
#include "cli/launch.h"
#include "cli/progress.h"
#include "report/trace.h"

namespace llmperf::cli {
namespace {

struct ServeFlags : RequestFlags {
  std::string from;
  std::optional<Launch> emit;
};

Answer serve_answer(const ServeFlags& flags, const Context& context) {
  if (flags.emit) check_emit(context);
  const ReadLaunch read = flags.from.empty() ? ReadLaunch() : read_from(flags.from);
  const request::Request asked = flags.from.empty() ? flags.asked() : over(read.request, flags.request);
  service::check_complete(asked, "llmperf serve --help says what it takes");
  request::Sources sources;
  if (flags.emit) return emitted(asked, sources, *flags.emit, asked.replicas.value_or(1));
  const InterruptGuard guard;
  std::optional<Progress> progress(std::in_place);
  auto shown_at = std::chrono::steady_clock::time_point();
  const service::Served served(
      asked, sources,
      {.drawn = context.output->wants(report::Format::json) || context.output->wants(report::Format::trace),
       .stop = &interruption(),
       .progress =
           [&](std::int64_t done, std::int64_t all) {
             const auto now = std::chrono::steady_clock::now();
             if (done > 0 && now - shown_at < std::chrono::milliseconds(200)) return;
             shown_at = now;
             (*progress)(static_cast<std::size_t>(done), static_cast<std::size_t>(all), "requests");
           },
       .notes = read.notes});
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
  ServeFlags& flags = answers(command, serve_answer, Traced::yes);
  add_request(command, flags, "s");
  command.find("--model")->unless = "--request --from";
  command
      .add("--from", flags.from, "COMMAND",
           "the request that an engine's command is: the command itself in quotes, or a file with it, a script or YAML "
           "(a manifest, docker compose, an engine's --config); - is stdin; flags go over it")
      .without("--request");
  add_emit(command, flags.emit);
}

}  // namespace llmperf::cli
