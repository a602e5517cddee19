// The outputs of `llmperf limits`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/limits.h"
#include "estimate/speculative.h"
#include "report/document.h"

namespace llmperf::report {

// One model with the limits of each precision asked for (all of one device and unit convention).
struct ModelLimits {
  std::string model;
  std::vector<cost::Limits> limits;  // at least one
};

// Speculative decoding of the (only) model with a draft model, from modelled step times.
struct SpeculativeStudy {
  std::string draft;
  std::string target_weights;
  std::string draft_weights;
  estimate::Speculation speculation;
};

Report limits_report(const std::vector<ModelLimits>& models, const hardware::Device& device,
                     const std::optional<SpeculativeStudy>& study = std::nullopt);

}  // namespace llmperf::report
