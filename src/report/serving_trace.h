// A run of the serving simulation as a trace: the steps of every replica, and what each request waits for, computes and
// generates.
#pragma once

#include <string>

#include "report/document.h"
#include "result/serving.h"

namespace llmperf::report {

// What Report::trace takes; nothing for a run without a timeline. It outlives the run.
Trace serving_trace(const result::Serving& serving);

}  // namespace llmperf::report
