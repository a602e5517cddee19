#pragma once

#include <span>
#include <string>

#include "estimate/context_curve.h"
#include "estimate/estimate.h"

namespace llmperf::report {

// The JSON document of an estimate; keys are documented in docs/json.md.
std::string estimate_json(const estimate::Estimator& estimator, const estimate::Estimate& estimate,
                          std::span<const estimate::ContextPoint> curve);

}  // namespace llmperf::report
