// `llmperf compare`: what lies between two results (compare_results.h), or what each runtime option between two sets is
// worth, and where.
#include "estimate/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/number.h"
#include "cli/command.h"
#include "cli/compare_results.h"
#include "cli/request.h"
#include "cli/training.h"
#include "cli/values.h"
#include "cli/video.h"
#include "report/compare_report.h"

namespace llmperf::cli {
namespace {

struct Flags {
  std::vector<std::string> files;
  RequestFlags request;
  TrainingFlags training;  // of --against alone
  std::string with;
  std::string against;
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

constexpr const char* kSecondSet = "with --with";

bool slower_set(const estimate::Comparison& comparison, double limit) {
  const estimate::CompareStep& first = comparison.steps.front();
  const estimate::CompareStep& last = comparison.steps.back();
  const bool prefill = too_slow("TTFT", *first.ttft, *last.ttft, limit, kSecondSet);
  return (first.tpot && too_slow("TPOT", *first.tpot, *last.tpot, limit, kSecondSet)) || prefill;
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
  return limit && too_slow("generation", *steps.front().generation, *steps.back().generation, *limit, kSecondSet)
             ? kExitThreshold
             : kExitDone;
}

// Flags that are no part of a request.
const std::vector<std::string> kOwnFlags = {"--with",   "--against", "--max-slowdown", "--format",
                                            "--export", "--json",    "--lang"};

// Throws for flags of a request beside saved results: these hold their own.
void check_no_request(const Flags& flags) {
  for (const CLI::Option* option : flags.request.command->get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();
    const bool own = std::find(kOwnFlags.begin(), kOwnFlags.end(), name) != kOwnFlags.end();
    if (own && name != "--with" && name != "--against") continue;
    throw Error::bad_input(fmt::format("{} has no meaning beside saved results", name), "leave it out");
  }
}

// Throws unless there is a request, and one thing to compare it with.
void check_request(const Flags& flags) {
  for (const auto& [flag, value] :
       {std::pair{"--model", &flags.request.model}, std::pair{"--hw", &flags.request.hardware}}) {
    if (value->empty()) {
      throw Error::bad_input(fmt::format("{} is required", flag),
                             "or two saved results: llmperf compare before.json after.json");
    }
  }
  if (flags.with.empty() == flags.against.empty()) {
    throw Error::bad_input(flags.with.empty() ? "--with or --against is required: what the request is compared with"
                                              : "--with and --against both say what the request is compared with",
                           "--with all for runtime options, --against '--weights w4a16' for any flag");
  }
  if (flags.training.training && !flags.with.empty()) {
    throw Error::bad_input("--with compares steps of inference", "--training --against '--options none'");
  }
}

int compare_options(const Flags& flags, std::optional<double> limit) {
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
  return limit && slower_set(comparison, *limit) ? kExitThreshold : kExitDone;
}

int compare_action(const Flags& given) {
  std::optional<double> limit;
  if (!given.max_slowdown.empty()) limit = double_value("--max-slowdown", given.max_slowdown, 0, 1000);
  if (!given.files.empty()) {
    check_no_request(given);
    return compare_files(given.files, limit, given.output);
  }
  check_request(given);
  if (!given.against.empty()) {
    return compare_against(*given.request.command, kOwnFlags, given.against, limit, given.output);
  }
  Flags flags = given;
  if (flags.request.options.empty()) flags.request.options = "none";
  return compare_options(flags, limit);
}

}  // namespace

void add_compare(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand(
      "compare",
      "two results, saved or of two sets of flags: what changed, where and why; or what runtime options are "
      "worth");
  auto flags = std::make_shared<Flags>();
  command->add_option("results", flags->files, "two results that llmperf estimate saved as JSON: before and after")
      ->type_name("FILE");
  add_request_flags(*command, flags->request);
  for (const char* flag : {"--model", "--hw"}) command->get_option(flag)->required(false);
  add_training_flags(*command, flags->training);
  command
      ->add_option("--against", flags->against,
                   "flags that the second request has as well, or instead: '--weights w4a16 --batch 8'")
      ->type_name("FLAGS");
  command
      ->add_option("--with", flags->with,
                   "a second set of runtime options, written like --options, which is the first [none]: what each is "
                   "worth")
      ->type_name("LIST");
  command
      ->add_option("--max-slowdown", flags->max_slowdown,
                   "exit status 4 when the second is slower by more, in TTFT or TPOT (video: the generation, training: "
                   "the step): 0.02 is 2 %")
      ->type_name("SHARE");
  add_output_flags(*command, flags->output);
  command->callback([flags, &action] { action = [flags] { return compare_action(*flags); }; });
}

}  // namespace llmperf::cli
