#include "report/json.h"

namespace llmperf::report {

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
