// llmperf import: what the files of a profiler hold, by class and type, and what became measurements.
#pragma once

#include "import/import.h"
#include "report/document.h"

namespace llmperf::report {

Report import_report(const import::Imported& imported);

}  // namespace llmperf::report
