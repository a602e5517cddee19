#include "estimate/compare.h"

#include <algorithm>
#include <cmath>

#include "base/integer.h"
#include "estimate/schedule.h"
#include "hardware/runtime_execution.h"

namespace llmperf::estimate {
namespace {

using hardware::RuntimeOptions;
using hardware::Workload;

bool is_on(const RuntimeOptions& options, const std::string& name, Workload workload) {
  RuntimeOptions with = options;
  hardware::set_option(with, name, true, workload);
  return with == options;
}

// Switches in which two sets differ, as words that lead from one to the other.
std::vector<std::string> switches_between(const RuntimeOptions& from, const RuntimeOptions& to, Workload workload) {
  std::vector<std::string> words;
  for (const std::string& name : hardware::runtime_option_names(workload)) {
    if (is_on(from, name, workload) != is_on(to, name, workload))
      words.push_back((is_on(to, name, workload) ? "" : "no_") + name);
  }
  return words;
}

// All switches of a rung; nothing where that would turn none, or one that `to` has otherwise.
std::optional<RuntimeOptions> whole_rung(const hardware::RuntimeProfile::NamedOption& rung, bool on,
                                         const RuntimeOptions& from, const RuntimeOptions& to, Workload workload) {
  RuntimeOptions next = from;
  for (const std::string& name : rung.switches) hardware::set_option(next, name, on, workload);
  if (next == from) return std::nullopt;
  for (const std::string& name : hardware::runtime_option_names(workload)) {
    if (is_on(next, name, workload) != is_on(from, name, workload) &&
        is_on(next, name, workload) != is_on(to, name, workload))
      return std::nullopt;
  }
  return next;
}

OpSide side_of(const OpEstimate& e, double seconds) {
  OpSide side;
  side.present = true;
  side.time = Seconds{seconds};
  side.bytes = e.work.bytes() * d(e.op.count);
  side.network = e.work.network * d(e.op.count);
  const bool on_device = e.op.place == graph::Place::device || e.op.place == graph::Place::network;
  if (on_device && !std::holds_alternative<graph::Overhead>(e.op.body)) side.launches = e.op.count * e.op.launches;
  return side;
}

// Adds the ops of a phase to the rows of their names. Ops that only one phase has get a row after the others.
void add_side(const Phase& phase, OpSide OpDifference::*side, std::vector<OpDifference>& rows) {
  const auto add = [&](std::string_view name, graph::Place place, const OpSide& value) {
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const OpDifference& r) { return r.name == name && r.place == place; });
    if (row == rows.end()) {
      OpDifference added;
      added.name = name;
      added.place = place;
      row = rows.insert(rows.end(), added);
    }
    (*row).*side += value;
  };
  std::vector<double> seconds;
  for (const OpEstimate& op : phase.ops) seconds.push_back(op.step_time().value);
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const OpEstimate& op = phase.ops[i];
    add(op.op.name, op.op.place, side_of(op, seconds[i] - hidden_seconds(phase.ops, seconds, i)));
  }
  if (phase.pipelined.value != 0) {
    OpSide overlap;
    overlap.present = true;
    overlap.time = Seconds{-phase.pipelined.value};
    add(kPipelineOverlap, graph::Place::device, overlap);
  }
}

std::vector<PhaseDifference> differences(const Estimate& before, const Estimate& after) {
  std::vector<PhaseDifference> result;
  for (std::size_t i = 0; i < before.phases.size(); ++i) {
    result.push_back(phase_difference(before.phases[i], after.phases[i]));
  }
  return result;
}

// Times of a step, held against `before` where there is one.
void take_times(const Estimate& e, const Estimate* before, CompareStep& step) {
  step.ttft = e.ttft;
  step.tpot = e.tpot;
  if (before == nullptr) return;
  step.ttft_gain = before->ttft - e.ttft;
  if (e.tpot) step.tpot_gain = *before->tpot - *e.tpot;
  step.phases = differences(*before, e);
}

}  // namespace

std::vector<OptionChange> option_changes(const RuntimeOptions& from, const RuntimeOptions& to,
                                         std::span<const hardware::RuntimeProfile::NamedOption> ladder,
                                         Workload workload) {
  std::vector<OptionChange> changes;
  RuntimeOptions reached = from;
  const auto add = [&](std::string option, const RuntimeOptions& next) {
    changes.push_back({std::move(option), switches_between(reached, next, workload), next});
    reached = next;
  };
  for (const auto& rung : ladder) {
    for (const bool on : {true, false}) {
      if (const auto next = whole_rung(rung, on, reached, to, workload)) add((on ? "" : "no_") + rung.name, *next);
    }
  }
  for (const std::string& name : hardware::runtime_option_names(workload)) {
    if (is_on(reached, name, workload) == is_on(to, name, workload)) continue;
    RuntimeOptions next = reached;
    hardware::set_option(next, name, is_on(to, name, workload), workload);
    add((is_on(to, name, workload) ? "" : "no_") + name, next);
  }
  return changes;
}

OpSide& OpSide::operator+=(const OpSide& other) {
  present |= other.present;
  time += other.time;
  bytes += other.bytes;
  network += other.network;
  launches += other.launches;
  return *this;
}

bool OpDifference::changes() const {
  const auto differ = [](double a, double b) { return std::abs(a - b) > 1e-9 * std::max(std::abs(a), std::abs(b)); };
  return before.present != after.present || before.launches != after.launches ||
         differ(before.time.value, after.time.value) || differ(before.bytes.value, after.bytes.value) ||
         differ(before.network.value, after.network.value);
}

PhaseDifference phase_difference(const Phase& before, const Phase& after) {
  PhaseDifference result;
  result.name = before.name;
  add_side(before, &OpDifference::before, result.ops);
  add_side(after, &OpDifference::after, result.ops);
  for (const OpDifference& op : result.ops) {
    result.before += op.before;
    result.after += op.after;
  }
  result.before.time = before.time;
  result.after.time = after.time;
  std::stable_sort(result.ops.begin(), result.ops.end(),
                   [](const OpDifference& a, const OpDifference& b) { return a.gain() > b.gain(); });
  return result;
}

Comparison compare(const model::Decoder& model, const hardware::Device& device, const Choices& first,
                   const Choices& second, std::string_view execution, const Scenario& scenario) {
  const hardware::RuntimeProfile* profile = first.profile;
  std::vector<OptionChange> changes = {{"", {}, first.runtime}};
  for (OptionChange& change :
       option_changes(first.runtime, second.runtime,
                      profile ? std::span<const hardware::RuntimeProfile::NamedOption>(profile->ladder)
                              : std::span<const hardware::RuntimeProfile::NamedOption>())) {
    changes.push_back(std::move(change));
  }

  Comparison result;
  Estimate at_first;
  Estimate before;  // of the last set that fits
  bool any = false;
  for (const OptionChange& change : changes) {
    Choices choices = first;
    choices.runtime = change.options;
    if (profile) {
      const hardware::RuntimeExecution runs = hardware::resolve_execution(*profile, change.options, execution);
      choices.runtime = runs.options;
      choices.prefill_dispatch = runs.prefill;
      choices.decode_dispatch = runs.decode;
    }
    CompareStep step{.option = change.option,
                     .switches = change.switches,
                     .options = profile ? hardware::format_profile_options(*profile, choices.runtime)
                                        : hardware::format_runtime_options(choices.runtime),
                     .prefill = choices.prefill_dispatch,
                     .decode = choices.decode_dispatch,
                     .memory = {},
                     .fits = false,
                     .ttft = {},
                     .tpot = {},
                     .ttft_gain = {},
                     .tpot_gain = {},
                     .phases = {}};
    Estimator estimator(make_setup(model, device, choices));
    Estimate now = estimator.run(scenario);
    step.memory = now.memory.total();
    step.fits = now.fits;
    if (now.fits) {
      take_times(now, any ? &before : nullptr, step);
      if (result.steps.empty()) at_first = now;
      before = std::move(now);
      any = true;
    }
    result.steps.push_back(std::move(step));
  }
  if (result.steps.front().fits && result.steps.back().fits) result.phases = differences(at_first, before);
  return result;
}

// ---- Video generations

namespace {

OpSide side_of(const VideoClass& c) {
  OpSide side;
  side.present = true;
  side.time = c.time;
  side.bytes = c.work.bytes();
  side.network = c.work.network;
  side.launches = c.launches;
  return side;
}

std::vector<ClassDifference> class_differences(const VideoEstimate& before, const VideoEstimate& after) {
  std::vector<ClassDifference> rows;
  const auto add = [&](const VideoEstimate& e, OpSide ClassDifference::*side) {
    for (const VideoClass& c : e.classes) {
      auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.purpose == c.purpose; });
      if (row == rows.end()) {
        row = rows.insert(rows.end(), ClassDifference{});
        row->purpose = c.purpose;
      }
      (*row).*side = side_of(c);
    }
  };
  add(before, &ClassDifference::before);
  add(after, &ClassDifference::after);
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.gain() > b.gain(); });
  return rows;
}

std::vector<PhaseDifference> phase_differences(const VideoEstimate& before, const VideoEstimate& after) {
  std::vector<PhaseDifference> result;
  for (std::size_t i = 0; i < std::min(before.phases.size(), after.phases.size()); ++i) {
    result.push_back(phase_difference(before.phases[i], after.phases[i]));
  }
  return result;
}

}  // namespace

VideoComparison compare(const model::VideoDit& model, const hardware::Device& device, const VideoChoices& first,
                        const VideoChoices& second, std::string_view execution) {
  const hardware::RuntimeProfile* profile = first.profile;
  using Named = hardware::RuntimeProfile::NamedOption;
  std::vector<OptionChange> changes = {{"", {}, first.runtime}};
  for (OptionChange& change : option_changes(
           first.runtime, second.runtime, profile ? std::span<const Named>(profile->ladder) : std::span<const Named>(),
           hardware::Workload::video)) {
    changes.push_back(std::move(change));
  }

  VideoComparison result;
  VideoEstimate at_first;
  VideoEstimate before;  // of the last set that fits
  bool any = false;
  for (const OptionChange& change : changes) {
    VideoChoices choices = first;
    choices.runtime = change.options;
    if (profile) {
      const hardware::RuntimeExecution runs = hardware::resolve_execution(*profile, change.options, execution);
      choices.runtime = runs.options;
      choices.dispatch = runs.prefill;
    }
    VideoCompareStep step;
    step.option = change.option;
    step.switches = change.switches;
    step.options = profile ? hardware::format_profile_options(*profile, choices.runtime)
                           : hardware::format_runtime_options(choices.runtime, hardware::Workload::video);
    step.dispatch = choices.dispatch;
    VideoEstimator estimator(make_video_setup(model, device, choices));
    VideoEstimate now = estimator.run();
    step.memory = now.memory.total();
    step.fits = now.fits;
    if (now.fits) {
      step.step = now.step;
      step.generation = now.generation;
      step.step_utilisation = now.step_utilisation;
      if (any) {
        step.step_gain = before.step - now.step;
        step.generation_gain = before.generation - now.generation;
        step.classes = class_differences(before, now);
      }
      if (result.steps.empty()) at_first = now;
      before = std::move(now);
      any = true;
    }
    result.steps.push_back(std::move(step));
  }
  if (result.steps.front().fits && result.steps.back().fits) {
    result.classes = class_differences(at_first, before);
    result.phases = phase_differences(at_first, before);
  }
  return result;
}

}  // namespace llmperf::estimate
