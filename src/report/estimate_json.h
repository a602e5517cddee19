#pragma once

#include <string>

#include "estimate/estimate.h"

namespace llmperf::report {

// The JSON document of an estimate; keys are documented in docs/json.md.
std::string estimate_json(const estimate::Estimator& estimator, const estimate::Estimate& estimate);

}  // namespace llmperf::report
