// What does not fit is an answer: how much is missing, and which change of the request would make it fit.
#pragma once

#include "base/error.h"
#include "request/resolve.h"

namespace llmperf::request {

Error infeasible(const Resolved& resolved, const estimate::Estimate& estimate);
Error infeasible(const Resolved& resolved, const estimate::VideoEstimate& estimate);
// `resolved` is of training; its estimator tries the changes.
Error infeasible(const Resolved& resolved, const estimate::TrainingEstimate& estimate);

}  // namespace llmperf::request
