// What the reports of comparisons share. Included by .cpp files only.
#pragma once

#include <string>
#include <vector>

#include "estimate/compare.h"
#include "report/document.h"
#include "report/json.h"

namespace llmperf::report {

// The profile both sets run under, or that there is none.
std::string compare_label(const estimate::Platform& platform);
// Less than what sums of steps are rounded to counts as nothing.
bool differs(Seconds gain, Seconds of);
// "-" for nothing.
std::string gain_cell(Seconds gain, Seconds before);
std::string gain_share_cell(Seconds gain, Seconds before);
// "+ static_kv", "- fused_qkv"; without an option `options`, those that the comparison starts from.
std::string option_cell(const std::string& option, const std::string& options);
// "2.1 s to 1.4 s: 700 ms less (33.3 %), 1.5 times as fast".
std::string change_text(Seconds before, Seconds after);

std::string difference_name(const estimate::OpDifference& op);
// A row of a table of op, before, after, gain, and bytes and launches of both.
void add_difference_row(const std::string& name, const estimate::OpSide& before, const estimate::OpSide& after,
                        Table& table);
Table difference_table(const estimate::PhaseDifference& phase);
Json phases_json(const std::vector<estimate::PhaseDifference>& phases);

}  // namespace llmperf::report
