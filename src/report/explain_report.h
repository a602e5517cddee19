// The output of `llmperf explain`.
#pragma once

#include <string>
#include <vector>

#include "estimate/explain.h"
#include "report/document.h"

namespace llmperf::report {

// One number: its value, formula, the formula with the values in place, and the formulas of its parts.
Report explain_report(const estimate::Explanation& explanation);

// The paths that can be explained, with their values.
struct PathValue {
  std::string path;
  double value = 0;
  std::string unit;
};
Report explainable_report(const std::vector<PathValue>& paths);

}  // namespace llmperf::report
