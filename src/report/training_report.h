// The outputs of `llmperf estimate --training`.
#pragma once

#include "report/estimate_report.h"
#include "result/training.h"

namespace llmperf::report {

Report training_report(const Training& training, Detail detail, Trace trace = {});

}  // namespace llmperf::report
