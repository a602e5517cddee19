// The outputs of `llmperf validate`.
#pragma once

#include "calibrate/validation.h"
#include "report/document.h"

namespace llmperf::report {

// Tables list every row while there are few, else the worst; CSV and JSON hold all.
Report validate_report(const calibrate::Validation& validation);

}  // namespace llmperf::report
