// Sets of ops that identify a profile's parameters: shapes spread so that each parameter decides some of the times.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "calibrate/op_row.h"

namespace llmperf::replay {

const std::vector<std::string>& sweep_names();
// The ops of the sweep of that name, products in `dtype`. Throws Error(bad_input) with the nearest names.
std::vector<calibrate::OpRow> sweep(std::string_view name, Dtype dtype);

}  // namespace llmperf::replay
