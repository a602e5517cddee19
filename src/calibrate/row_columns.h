// The columns that say which measurement a row is, named as in the input: what files and reports are written from.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "calibrate/measurements.h"

namespace llmperf::calibrate {

// Nothing where the row has no such column. Text refers to the row.
using Cell = std::variant<std::monostate, std::int64_t, double, bool, std::string_view>;

struct RowColumn {
  std::string_view name;
  Cell (*value)(const Row& row);
};
// All but the latency, in the order in which they are written.
std::span<const RowColumn> row_columns();

}  // namespace llmperf::calibrate
