// Errors by group, as validate and calibrate print them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibrate/validation.h"
#include "report/document.h"
#include "report/json.h"

namespace llmperf::report {

// "4.2 %" with one decimal; "n/a" of no rows.
std::string error_text(double share);
// The same with its sign: "+1.3 %".
std::string signed_error_text(double share);

// A kind of groups with a single member says nothing that the summary does not; of one with many only the worst are
// shown, in a table of their own.
std::vector<Table> error_tables(const std::string& title, std::span<const calibrate::GroupErrors> groups,
                                bool baselines);

// {"rows": …, "mape": …, "median_ape": …, "p90_ape": …, "max_ape": …, "bias": …}, and with `baselines` their mape.
Json errors_json(const calibrate::GroupErrors& errors, bool baselines);
// The same behind "by" and "name".
Json groups_json(std::span<const calibrate::GroupErrors> groups, bool baselines);

}  // namespace llmperf::report
