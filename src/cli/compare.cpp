// `llmperf compare`: what each runtime option between two sets is worth, and where.
#include "estimate/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/error.h"
#include "base/number.h"
#include "cli/command.h"
#include "cli/request.h"
#include "cli/values.h"
#include "cli/video.h"
#include "report/compare_report.h"

namespace llmperf::cli {
namespace {

struct Flags {
  RequestFlags request;
  std::string with;
  std::string max_slowdown;
  OutputFlags output;
};

// As if --with were the request's --options; messages name the flag that was given.
template <class Choose>
auto second_choices(const Flags& flags, Choose&& choose) {
  RequestFlags second = flags.request;
  second.options = flags.with;
  try {
    return choose(second);
  } catch (const Error& error) {
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    constexpr std::string_view kFlag = "--options:";
    for (Diagnostic& d : diagnostics) {
      if (d.message.starts_with(kFlag)) d.message.replace(0, kFlag.size(), "--with:");
    }
    throw Error(error.kind(), std::move(diagnostics));
  }
}

[[noreturn]] void throw_infeasible(const Request& request, const estimate::CompareStep& step) {
  const Bytes capacity = *request.device.dram().capacity;
  const bool on_device = step.memory > capacity;
  throw Error(ErrorKind::infeasible,
              {{.where = {},
                .message = fmt::format("{} at batch {} does not fit on {} with --options {}{}", request.model().name,
                                       request.scenario.batch,
                                       on_device ? request.device.name : "the host, " + request.host.name, step.options,
                                       on_device ? fmt::format(": needs {}, has {}", format_bytes_binary(step.memory),
                                                               format_bytes_binary(capacity))
                                                 : ""),
                .hint = fmt::format("llmperf estimate --options {} says what would make it fit", step.options)}});
}

// Whether the second set is slower by more than `limit` allows; says so.
bool too_slow(const char* what, Seconds before, Seconds after, double limit) {
  if (!(after.value > before.value * (1 + limit))) return false;
  std::fputs(
      fmt::format("llmperf: error: {} is {} slower with --with ({}, before {}): more than --max-slowdown {}\n", what,
                  format_share(after / before - 1), format_seconds(after), format_seconds(before), format_share(limit))
          .c_str(),
      stderr);
  return true;
}
bool too_slow(const estimate::Comparison& comparison, double limit) {
  const estimate::CompareStep& first = comparison.steps.front();
  const estimate::CompareStep& last = comparison.steps.back();
  const bool prefill = too_slow("TTFT", *first.ttft, *last.ttft, limit);
  return (first.tpot && too_slow("TPOT", *first.tpot, *last.tpot, limit)) || prefill;
}

int compare_videos(const Flags& flags, std::optional<double> limit) {
  const auto request = load_video_request(flags.request);
  const estimate::VideoChoices second = second_choices(flags, [&](const RequestFlags& f) {
    estimate::VideoChoices choices = request->choices;
    choose_video_execution(f, *request, choices);
    return choices;
  });
  const estimate::VideoSetup setup = make_video_setup(request->model, request->device, request->choices);
  Output output(flags.output);
  const estimate::VideoComparison comparison =
      estimate::compare(request->model, request->device, request->choices, second, flags.request.execution);
  output.write(report::compare_report(setup, comparison));
  const auto& steps = comparison.steps;
  for (const estimate::VideoCompareStep* step : {&steps.front(), &steps.back()}) {
    if (step->fits) continue;
    throw Error(
        ErrorKind::infeasible,
        {{.where = {},
          .message = fmt::format("{} does not fit on {} with --options {}: needs {}, has {}", request->model.name,
                                 request->device.name, step->options, format_bytes_binary(step->memory),
                                 format_bytes_binary(*request->device.dram().capacity)),
          .hint = fmt::format("llmperf estimate --options {} says what would make it fit", step->options)}});
  }
  return limit && too_slow("generation", *steps.front().generation, *steps.back().generation, *limit) ? kExitThreshold
                                                                                                      : kExitDone;
}

int compare_action(const Flags& flags) {
  std::optional<double> limit;
  if (!flags.max_slowdown.empty()) limit = double_value("--max-slowdown", flags.max_slowdown, 0, 1000);
  if (model::is_video_dit(flags.request.model)) return compare_videos(flags, limit);
  const auto request = load_request(flags.request);
  const estimate::Choices first = choices_of(flags.request, *request);
  const estimate::Choices second =
      second_choices(flags, [&](const RequestFlags& f) { return choices_of(f, *request); });
  Output output(flags.output);
  const estimate::Comparison comparison =
      estimate::compare(request->model(), request->device, first, second, flags.request.execution, request->scenario);
  output.write(
      report::compare_report(request->estimator->setup(), request->scenario, flags.request.execution, comparison));
  for (const estimate::CompareStep* step : {&comparison.steps.front(), &comparison.steps.back()}) {
    if (!step->fits) throw_infeasible(*request, *step);
  }
  return limit && too_slow(comparison, *limit) ? kExitThreshold : kExitDone;
}

}  // namespace

void add_compare(CLI::App& root, Action& action) {
  CLI::App* command =
      root.add_subcommand("compare", "two sets of runtime options: what each option is worth, and in which ops");
  auto flags = std::make_shared<Flags>();
  flags->request.options = "none";
  add_request_flags(*command, flags->request);
  command->add_option("--with", flags->with, "the second set, written like --options, which is the first")
      ->type_name("LIST")
      ->required();
  command
      ->add_option("--max-slowdown", flags->max_slowdown,
                   "exit status 4 when the second set is slower by more, in TTFT or TPOT: 0.02 is 2 %")
      ->type_name("SHARE");
  add_output_flags(*command, flags->output);
  command->callback([flags, &action] { action = [flags] { return compare_action(*flags); }; });
}

}  // namespace llmperf::cli
