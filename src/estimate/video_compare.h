// What each runtime option is worth to a video generation, and where: as compare.h has it for language models.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimate/compare.h"
#include "estimate/video.h"

namespace llmperf::estimate {

// Kernels of one purpose on both sides.
struct ClassDifference {
  graph::VideoPurpose purpose = graph::VideoPurpose::product;
  OpSide before;
  OpSide after;
  Seconds gain() const { return before.time - after.time; }
};

struct VideoCompareStep {
  std::string option;  // empty: the first set
  std::vector<std::string> switches;
  std::string options;  // all that are on
  hardware::Dispatch dispatch = hardware::Dispatch::graph;
  Bytes memory;
  bool fits = false;
  // Only when it fits; gains are against the last step before that does.
  std::optional<Seconds> step;
  std::optional<Seconds> generation;
  Seconds step_gain;
  Seconds generation_gain;
  double step_utilisation = 0;           // of the matrix peak
  std::vector<ClassDifference> classes;  // of a step, against that step, the largest gain first; empty for the first
};
struct VideoComparison {
  std::vector<VideoCompareStep> steps;
  // Of the whole difference; empty unless both sets fit.
  std::vector<ClassDifference> classes;
  std::vector<PhaseDifference> phases;
};
// `first` and `second` differ in what --options and --execution choose; `execution` is what was asked for.
VideoComparison compare(const model::VideoDit& model, const hardware::Device& device, const VideoChoices& first,
                        const VideoChoices& second, std::string_view execution);

}  // namespace llmperf::estimate
