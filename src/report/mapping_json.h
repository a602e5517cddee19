// The JSON document of `llmperf map`. Included by .cpp files only.
#pragma once

#include "report/json.h"
#include "report/mapping_drawing.h"
#include "report/mapping_report.h"

namespace llmperf::report {

// One mapping in a flat row, as in a CSV: rank, times, splits, blocks, memory and traffic.
Json mapping_row(const MappingStudy& study, std::size_t rank);
Json mapping_json(const MappingStudy& study, const Json& rows, const Drawing& drawing);

}  // namespace llmperf::report
