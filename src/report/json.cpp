#include "report/json.h"

#include <fmt/format.h>

namespace llmperf::report {

Json json_header(const char* schema) {
  return {{"schema", schema}, {"schema_version", 1}, {"tool", {{"name", "llmperf"}, {"version", LLMPERF_VERSION}}}};
}

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string plain(double value) {
  if (!std::isfinite(value)) return "";
  if (value == std::floor(value) && std::abs(value) < 9007199254740992.0) {
    return fmt::format("{}", static_cast<std::int64_t>(value));
  }
  return fmt::format("{}", value);
}

Table csv_of(const Json& rows) {
  Table t;
  for (const auto& [key, value] : rows.front().items()) t.columns.push_back({key});
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const auto& [key, value] : row.items()) {
      cells.push_back(value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump());
    }
    t.rows.push_back(std::move(cells));
  }
  return t;
}

}  // namespace llmperf::report
