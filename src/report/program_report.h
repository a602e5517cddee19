// What `llmperf graph` prints.
#pragma once

#include "report/estimate_report.h"
#include "result/program.h"

namespace llmperf::report {

// `json`: whether it is wanted; of a program of many ops it is by far the largest part.
Report program_report(const ProgramStudy& study, Detail detail, bool json);

}  // namespace llmperf::report
