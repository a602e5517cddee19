// A difference in words and cells. Included by .cpp files only.
#pragma once

#include <string>

#include "report/difference.h"

namespace llmperf::report {

// "-3.2 ms", "+12 ms"; "-" for none.
std::string change_cell(double before, double after);
// "-38.2 %"; "-" for none and where there is nothing to relate to.
std::string relative_cell(double before, double after);
// Without "-0.0 %".
std::string share_cell(double share);
// A value of an input or a headline figure, with the unit that the key ends in.
std::string value_text(const std::string& key, const SavedValue& value);
// Why an op's time changes; empty where nothing does: "weights bf16 -> w4a16-g128, bytes x 0.266, bound memory ->
// matrix".
std::string reason(const OpChange& op);

}  // namespace llmperf::report
