// The outputs of `llmperf compare`.
#pragma once

#include <string>

#include "estimate/compare.h"
#include "report/document.h"

namespace llmperf::report {

// `setup`: of the first set. `execution`: as asked for, empty for the runtime's own.
Report compare_report(const estimate::Setup& setup, const estimate::Scenario& scenario, const std::string& execution,
                      const estimate::Comparison& comparison);
// `setup`: of the first set.
Report compare_report(const estimate::VideoSetup& setup, const estimate::Comparison& comparison);

}  // namespace llmperf::report
