// Phases of estimates as steps that can be laid out (timeline.h).
#pragma once

#include <span>
#include <vector>

#include "estimate/program.h"
#include "estimate/timeline.h"
#include "estimate/training.h"
#include "estimate/video.h"

namespace llmperf::estimate {

// One for each phase, in their order; none where there are no phases.
std::vector<TimelineStep> timeline_steps(const Estimator& estimator, const Estimate& estimate);
std::vector<TimelineStep> timeline_steps(const VideoEstimator& estimator, const VideoEstimate& estimate);
// Of the busiest stage: both passes of one micro-batch, and the update.
std::vector<TimelineStep> timeline_steps(const TrainingEstimate& estimate);
std::vector<TimelineStep> timeline_steps(const ProgramSetup& setup, const ProgramEstimate& estimate);

}  // namespace llmperf::estimate
