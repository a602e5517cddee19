#include "estimate/compare.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

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

OpSide side_of(const OpEstimate& e, Seconds time) {
  OpSide side;
  side.present = true;
  side.time = time;
  side.bytes = e.work.bytes() * d(e.op.count);
  side.network = e.work.network * d(e.op.count);
  const bool on_device = e.op.place == graph::Place::device || e.op.place == graph::Place::network;
  if (on_device && !std::holds_alternative<graph::Overhead>(e.op.body)) side.launches = e.op.count * e.op.launches;
  return side;
}

// Added after the others where there is none.
template <class Row>
Row& row_of(std::string_view name, graph::Place place, std::vector<Row>& rows) {
  for (Row& row : rows) {
    if (row.name == name && row.place == place) return row;
  }
  Row& added = rows.emplace_back();
  added.name = name;
  added.place = place;
  return added;
}

template <class Row>
void sort_by_gain(std::vector<Row>& rows) {
  std::ranges::stable_sort(rows, std::greater(), &Row::gain);
}

// Adds the ops of a phase to the rows of their names.
void add_side(const Phase& phase, OpSide OpDifference::*side, std::vector<OpDifference>& rows) {
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const OpEstimate& op = phase.ops[i];
    row_of(op.op.name, op.op.place, rows).*side += side_of(op, op.step_time() - hidden_time(phase.ops, i));
  }
  if (phase.pipelined.value == 0) return;
  row_of(kPipelineOverlap, graph::Place::device, rows).*side +=
      OpSide{.present = true, .time = Seconds{-phase.pipelined.value}, .bytes = {}, .network = {}};
}

std::vector<PhaseDifference> phase_differences(const std::vector<Phase>& before, const std::vector<Phase>& after) {
  std::vector<PhaseDifference> result;
  for (const Phase& phase : before) {
    // An option may set pieces of a prompt apart that are one phase without it: those are other steps.
    const auto same = std::ranges::find_if(after, [&](const Phase& p) {
      return p.name == phase.name && p.steps == phase.steps && p.first.context == phase.first.context;
    });
    if (same != after.end()) result.push_back(phase_difference(phase, *same));
  }
  return result;
}

std::vector<ClassDifference> class_differences(const std::vector<OpGroup>& before, const std::vector<OpGroup>& after) {
  std::vector<ClassDifference> rows;
  for (const auto& [classes, side] : {std::pair(&before, &OpDifference::before), {&after, &OpDifference::after}}) {
    for (const OpGroup& c : *classes) {
      row_of(c.name, graph::Place::device, rows).*side = {
          .present = true, .time = c.time, .bytes = c.work.bytes(), .network = c.work.network, .launches = c.kernels};
    }
  }
  sort_by_gain(rows);
  return rows;
}

// What a comparison says of the estimate of one set of options.
struct Compared {
  Outcome outcome;
  std::array<std::optional<Seconds>, 2> times;
  double step_utilisation = 0;
  std::vector<OpGroup> classes;
};

// `estimate`: of the choices with other options.
template <class Setup, class Choices, class Run>
Comparison<Setup> compared(const Choices& first, const RuntimeOptions& last, std::string_view execution,
                           Workload workload, const Run& estimate) {
  const hardware::RuntimeProfile* profile = first.profile;
  std::vector<OptionChange> changes = {{"", {}, first.runtime}};
  using Ladder = std::span<const hardware::RuntimeProfile::NamedOption>;
  for (OptionChange& change :
       option_changes(first.runtime, last, profile ? Ladder(profile->ladder) : Ladder(), workload)) {
    changes.push_back(std::move(change));
  }
  Comparison<Setup> result;
  std::optional<Compared> at_first;
  std::optional<Compared> before;  // of the last set that fits
  for (const OptionChange& change : changes) {
    Choices choices = first;
    choices.runtime = change.options;
    if (profile) choices.run_as(hardware::resolve_execution(*profile, change.options, execution));
    CompareStep& step = result.steps.emplace_back();
    step.option = change.option;
    step.switches = change.switches;
    step.options = profile ? hardware::format_profile_options(*profile, choices.runtime)
                           : hardware::format_runtime_options(choices.runtime, workload);
    if (profile) step.dispatch = choices.dispatch, step.decode_dispatch = choices.decode_dispatch;
    Compared now = estimate(choices);
    step.memory = now.outcome.memory.total();
    step.fits = now.outcome.fits;
    if (!step.fits) continue;
    step.step_utilisation = now.step_utilisation;
    for (std::size_t i = 0; i < step.times.size(); ++i) {
      step.times[i].time = now.times[i];
      if (before && now.times[i]) step.times[i].gain = *before->times[i] - *now.times[i];
    }
    if (before) {
      step.phases = phase_differences(before->outcome.phases, now.outcome.phases);
      step.classes = class_differences(before->classes, now.classes);
    }
    if (result.steps.size() == 1) at_first = now;
    before = std::move(now);
  }
  if (at_first && result.steps.back().fits) {
    result.phases = phase_differences(at_first->outcome.phases, before->outcome.phases);
    result.classes = class_differences(at_first->classes, before->classes);
  }
  return result;
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
  sort_by_gain(result.ops);
  return result;
}

Comparison<Setup> compare(const model::Decoder& model, const hardware::Device& device, const Choices& first,
                          const RuntimeOptions& last, std::string_view execution, const Scenario& scenario) {
  return compared<Setup>(first, last, execution, Workload::language, [&](const Choices& choices) {
    Estimate e = Estimator(make_setup(model, device, choices)).run(scenario);
    return Compared{e, {e.ttft, e.tpot}, 0, {}};
  });
}

Comparison<VideoSetup> compare(const model::VideoDit& model, const hardware::Device& device, const VideoChoices& first,
                               const RuntimeOptions& last, std::string_view execution) {
  return compared<VideoSetup>(first, last, execution, Workload::video, [&](const VideoChoices& choices) {
    VideoEstimate e = VideoEstimator(make_video_setup(model, device, choices)).run();
    return Compared{e, {e.step, e.generation}, e.step_utilisation, e.classes};
  });
}

}  // namespace llmperf::estimate
