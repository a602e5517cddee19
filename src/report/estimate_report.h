// The outputs of `llmperf estimate`.
#pragma once

#include "estimate/estimate.h"
#include "report/document.h"

namespace llmperf::report {

enum class Detail { summary, ops };

Report estimate_report(const estimate::Estimator& estimator, const estimate::Estimate& estimate, Detail detail);

// What the numbers rest on: "1008 GB/s memory bandwidth", "datasheet".
struct Figure {
  std::string key;  // JSON: "memory_bandwidth_bytes_per_s"
  std::string label;
  std::string text;  // value for people
  double value = 0;  // SI
  hardware::Provenance provenance = hardware::Provenance::assumed;
};
std::vector<Figure> figures_used(const estimate::Setup& setup);
// The same as a block, each with its provenance.
Fields rests_on(const estimate::Setup& setup);

// The label every speed-of-light result carries.
inline constexpr const char* kUncalibrated = "upper bound, uncalibrated";

}  // namespace llmperf::report
