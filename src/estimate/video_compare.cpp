#include "estimate/video_compare.h"

#include <algorithm>
#include <span>
#include <utility>

#include "hardware/runtime_execution.h"

namespace llmperf::estimate {
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
