// The outputs of `llmperf estimate`.
#pragma once

#include <span>

#include "estimate/context_curve.h"
#include "estimate/estimate.h"
#include "report/document.h"
#include "report/figures.h"

namespace llmperf::report {

enum class Detail { summary, ops };

// `curve` is for the JSON alone, and empty where nobody reads that.
Report estimate_report(const estimate::Estimator& estimator, const estimate::Estimate& estimate, Detail detail,
                       std::span<const estimate::ContextPoint> curve = {});

// The label every speed-of-light result carries.
inline constexpr const char* kUncalibrated = "upper bound, uncalibrated";

}  // namespace llmperf::report
