// Helpers shared by the JSON writers. Included by .cpp files only.
#pragma once

#include <optional>

#include "base/units.h"
#include "report/document.h"
#include "result/json.h"
#include "result/row.h"

namespace llmperf::report {

using result::Json;
using result::number;
template <class Dimension>
Json number(Quantity<Dimension> q) {
  return number(q.value);
}
template <class T>
Json number(const std::optional<T>& value) {
  return value ? number(*value) : Json(nullptr);
}

inline Json json_header(const char* schema) { return result::header(schema); }
// The CSV of rows that have the same keys: a column for each, null an empty cell. At least one row.
Table csv_of(const Json& rows);

}  // namespace llmperf::report
