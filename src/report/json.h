// Helpers shared by the JSON writers. Included by .cpp files only.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/units.h"
#include "report/document.h"

namespace llmperf::report {

using Json = nlohmann::ordered_json;

// JSON has no NaN or infinity: both become null. Whole numbers that a double holds exactly are written without a
// fraction.
inline Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < 9007199254740992.0) return static_cast<std::int64_t>(value);
  return value;
}
template <class Dimension>
Json number(Quantity<Dimension> q) {
  return number(q.value);
}
template <class T>
Json number(const std::optional<T>& value) {
  return value ? number(*value) : Json(nullptr);
}

// Every document says what it is: {"schema": "llmperf.estimate", "schema_version": 1, "tool": …}.
Json json_header(const char* schema);
std::string dump(const Json& json);
// The CSV of rows that have the same keys: a column for each, null an empty cell. At least one row.
Table csv_of(const Json& rows);
// Plain decimal text of a number for CSV cells: shortest that reads back the same.
std::string plain(double value);

}  // namespace llmperf::report
