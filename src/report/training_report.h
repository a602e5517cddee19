// The outputs of `llmperf estimate --training`.
#pragma once

#include <string>

#include "estimate/training.h"
#include "report/document.h"
#include "report/estimate_report.h"

namespace llmperf::report {

// `estimate` is of TrainingEstimator::run.
Report training_report(const estimate::TrainingEstimator& estimator, const estimate::TrainingEstimate& estimate,
                       Detail detail);
// What the numbers are: those of a runtime profile, or the upper bound.
std::string training_label(const estimate::Setup& setup);
// The JSON document; keys are documented in docs/json.md.
std::string training_json(const estimate::TrainingEstimator& estimator, const estimate::TrainingEstimate& estimate);

}  // namespace llmperf::report
