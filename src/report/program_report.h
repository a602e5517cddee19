// What `llmperf graph` prints.
#pragma once

#include <string>
#include <vector>

#include "estimate/program.h"
#include "graph/hlo/blocks.h"
#include "report/document.h"
#include "report/estimate_report.h"

namespace llmperf::report {

struct ProgramStudy {
  const graph::hlo::Program* program = nullptr;
  const estimate::ProgramSetup* setup = nullptr;
  const estimate::ProgramEstimate* estimate = nullptr;
  const graph::hlo::Blocks* blocks = nullptr;
};

// `json`: whether it is wanted; of a program of many ops it is by far the largest part.
Report program_report(const ProgramStudy& study, Detail detail, bool json);

}  // namespace llmperf::report
