// The outputs of `llmperf compare` of two results.
#pragma once

#include "report/difference.h"
#include "report/document.h"

namespace llmperf::report {

Report difference_report(const Difference& difference);

}  // namespace llmperf::report
