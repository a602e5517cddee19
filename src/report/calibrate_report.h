// The outputs of `llmperf calibrate`, beside the profile itself.
#pragma once

#include "calibrate/calibration.h"
#include "report/document.h"

namespace llmperf::report {

// CSV: the parameters.
Report calibrate_report(const calibrate::Calibration& calibration);

}  // namespace llmperf::report
