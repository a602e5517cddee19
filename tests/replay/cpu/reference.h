// What ops must compute, written from replay/operands.h in the plainest way: loops and doubles.
#pragma once

#include <vector>

#include "measure/op_row.h"

namespace llmperf::replay::cpu {

// Operands are rounded to the op's type, the result is not.
std::vector<double> reference(const measure::OpRow& op);

// fill_value(operand, i) times scale plus offset, as an element of that type holds it.
double operand(Dtype dtype, unsigned number, std::int64_t i, double scale = 1, double offset = 0);

}  // namespace llmperf::replay::cpu
