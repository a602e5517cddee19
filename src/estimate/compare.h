// What each runtime option is worth, and where: from one set of options to another, one change after the other, as
// published tuning ladders do. A gain is the time before less the time after; gains of the steps add up to the
// difference of the two sets, and so do the gains of the ops of a phase.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimate/estimate.h"
#include "estimate/video.h"

namespace llmperf::estimate {

// A named option that is switched on ("static_kv") or off ("no_static_kv").
struct OptionChange {
  std::string option;
  std::vector<std::string> switches;  // of the runtime that it turns, those turned off with "no_" in front
  hardware::RuntimeOptions options;   // after it
};
// What leads from one set of switches to another: whole rungs of the ladder in its order, then single switches.
std::vector<OptionChange> option_changes(const hardware::RuntimeOptions& from, const hardware::RuntimeOptions& to,
                                         std::span<const hardware::RuntimeProfile::NamedOption> ladder,
                                         hardware::Workload workload = hardware::Workload::language);

// All executions of the ops of one name in a step.
struct OpSide {
  bool present = false;
  Seconds time;               // what they add to the step: of a collective beside the op before it, what is not hidden
  Bytes bytes;                // through memory
  Bytes network;              // sent to other devices or over the link to the host
  std::int64_t launches = 0;  // kernels on the device

  OpSide& operator+=(const OpSide& other);
};
struct OpDifference {
  std::string name;
  graph::Place place = graph::Place::device;
  OpSide before;
  OpSide after;
  Seconds gain() const { return before.time - after.time; }
  bool changes() const;
};
// Work of pipeline stages at the same time, as an op that takes the negative of what it saves.
inline constexpr std::string_view kPipelineOverlap = "pipeline_overlap";
struct PhaseDifference {
  std::string_view name;
  OpSide before;
  OpSide after;
  std::vector<OpDifference> ops;  // the largest gain first
};
PhaseDifference phase_difference(const Phase& before, const Phase& after);

// Kernels of one purpose in a denoising step.
struct ClassDifference : OpDifference {
  bool changes() const { return true; }  // there are few: all are shown
};

struct CompareStep {
  std::string option;                          // empty: the first set
  std::vector<std::string> switches;           // see OptionChange
  std::string options;                         // all that are on, as --options takes them
  std::optional<hardware::Dispatch> dispatch;  // with a profile; see Platform
  std::optional<hardware::Dispatch> decode_dispatch;
  Bytes memory;
  bool fits = false;
  // Only when it fits; gains are against the last step before that does, and so are the differences, of which the first
  // has none.
  struct Time {
    std::optional<Seconds> time;
    Seconds gain;
  };
  // Of text TTFT and the mean TPOT, which one generated token has none of; of video a denoising step and the
  // generation.
  std::array<Time, 2> times;
  double step_utilisation = 0;  // of video: of the matrix peak
  std::vector<PhaseDifference> phases;
  std::vector<ClassDifference> classes;  // of video: of a denoising step, the largest gain first
};
// Of text or of video, as the setup is.
template <class Setup>
struct Comparison {
  struct Step : CompareStep {};
  std::vector<Step> steps;  // the first set, then one for each change
  // Of the whole difference; empty unless both sets fit.
  std::vector<PhaseDifference> phases;
  std::vector<ClassDifference> classes;
};
// From the options of `first` to others. `execution` is what was asked for: how a runtime runs can depend on the
// options.
Comparison<Setup> compare(const model::Decoder& model, const hardware::Device& device, const Choices& first,
                          const hardware::RuntimeOptions& last, std::string_view execution, const Scenario& scenario);
Comparison<VideoSetup> compare(const model::VideoDit& model, const hardware::Device& device, const VideoChoices& first,
                               const hardware::RuntimeOptions& last, std::string_view execution);

}  // namespace llmperf::estimate
