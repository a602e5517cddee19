// The steps of an estimate as a trace: when the host launches what, and when it runs on the device and the network.
#pragma once

#include <functional>
#include <string>

#include "estimate/estimate.h"
#include "estimate/program.h"
#include "estimate/training.h"
#include "estimate/video.h"
#include "report/document.h"

namespace llmperf::report {

// What Report::trace takes; nothing for an estimate that does not fit. Nothing is laid out before it is called, and it
// outlives the estimator.
Trace step_trace(const estimate::Estimator& estimator, const estimate::Estimate& estimate);
Trace step_trace(const estimate::VideoEstimator& estimator, const estimate::VideoEstimate& estimate);
Trace step_trace(const estimate::TrainingEstimator& estimator, const estimate::TrainingEstimate& estimate);
Trace step_trace(const estimate::ProgramSetup& setup, const estimate::ProgramEstimate& estimate);

}  // namespace llmperf::report
