// Words about the ops of a program, for every output of `llmperf graph`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/program_report.h"

namespace llmperf::report {

// At most `width` columns, the middle left out.
std::string shortened(std::string_view text, std::size_t width);
// Where the op's last instruction stands in the text.
int line_of(const graph::hlo::Program& program, const graph::hlo::LoweredOp& op);
// "stablehlo.add", "fusion of 5 (add, multiply …)".
std::string op_name(const graph::hlo::Program& program, const graph::hlo::LoweredOp& op);
// "bf16[8,512]" of its last instruction's results.
std::string result_text(const graph::hlo::Program& program, const graph::hlo::LoweredOp& op);
// "qkv" of a product in a transformer block; empty for all else.
std::string role_text(const ProgramStudy& study, const graph::hlo::LoweredOp& op);
// Of the program, the search for blocks and the setup.
std::vector<std::string> all_notes(const ProgramStudy& study);

std::string program_json(const ProgramStudy& study);

}  // namespace llmperf::report
