// The outputs of `llmperf estimate`.
#pragma once

#include "report/document.h"
#include "report/step_trace.h"
#include "result/generation.h"

namespace llmperf::report {

enum class Detail { summary, ops };

Report estimate_report(const Generation& result, Detail detail, Trace trace = {});

}  // namespace llmperf::report
