// The outputs of `llmperf estimate --training`.
#pragma once

#include <string>
#include <vector>

#include "estimate/training.h"
#include "report/document.h"
#include "report/estimate_report.h"

namespace llmperf::report {

// `estimate` is of TrainingEstimator::run.
Report training_report(const estimate::TrainingEstimator& estimator, const estimate::TrainingEstimate& estimate,
                       Detail detail);
// What the numbers are: those of a runtime profile, or the upper bound.
std::string training_label(const estimate::Setup& setup);
// In which ways the step lies outside of the published runs that the profile was compared with; empty inside, and
// without such a profile.
std::vector<std::string> training_extrapolations(const estimate::Setup& setup,
                                                 const estimate::TrainingEstimate& estimate);
// The JSON document; keys are documented in docs/json.md.
std::string training_json(const estimate::TrainingEstimator& estimator, const estimate::TrainingEstimate& estimate);

}  // namespace llmperf::report
