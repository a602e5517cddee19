// Results as traces: the steps of an estimate, when the host launches what and when it runs on the device and the
// network; and a run of the serving simulation, the steps of every replica and what each request waits for, computes
// and generates.
#pragma once

#include "estimate/estimate.h"
#include "estimate/training.h"
#include "estimate/video.h"
#include "program/estimate.h"
#include "report/document.h"
#include "result/serving.h"

namespace llmperf::report {

// What Report::trace takes; nothing for an estimate that does not fit. Nothing is laid out before it is called, and it
// outlives the estimator.
Trace step_trace(const estimate::Estimator& estimator, const estimate::Estimate& estimate);
Trace step_trace(const estimate::VideoEstimator& estimator, const estimate::VideoEstimate& estimate);
Trace step_trace(const estimate::TrainingEstimator& estimator, const estimate::TrainingEstimate& estimate);
Trace step_trace(const program::ProgramSetup& setup, const program::ProgramEstimate& estimate);

// … nothing for a run without a timeline. It outlives the run.
Trace serving_trace(const result::Serving& serving);

}  // namespace llmperf::report
