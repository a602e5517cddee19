// The outputs of `llmperf estimate`.
#pragma once

#include "estimate/estimate.h"
#include "report/document.h"
#include "report/figures.h"

namespace llmperf::report {

enum class Detail { summary, ops };

Report estimate_report(const estimate::Estimator& estimator, const estimate::Estimate& estimate, Detail detail);

// The label every speed-of-light result carries.
inline constexpr const char* kUncalibrated = "upper bound, uncalibrated";

}  // namespace llmperf::report
