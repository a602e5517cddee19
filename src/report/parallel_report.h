// The outputs of `llmperf parallel`.
#pragma once

#include "report/document.h"
#include "result/parallel.h"

namespace llmperf::report {

Report parallel_report(const ParallelStudy& study);
Report strategy_report(const StrategyStudy& study);

}  // namespace llmperf::report
