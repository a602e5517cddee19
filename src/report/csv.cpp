#include "base/number.h"
#include "report/document.h"
#include "report/single_line.h"

namespace llmperf::report {
namespace {

std::string cell(const std::string& text) {
  std::string value = single_line(text);  // CSV is printed to terminals too
  // A spreadsheet may drop the blanks in front of a formula.
  const std::size_t first = value.find_first_not_of(' ');
  if (first != std::string::npos && std::string_view("=+-@").find(value[first]) != std::string_view::npos &&
      !parse_double(value)) {
    value.insert(value.begin(), '\'');
  }
  if (value.find_first_of(",\"") == std::string::npos) return value;
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

std::string render_csv(const Table& table) {
  std::string out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) out += (i ? "," : "") + cell(table.columns[i].header);
  out += "\n";
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) out += (i ? "," : "") + cell(row[i]);
    out += "\n";
  }
  return out;
}

}  // namespace llmperf::report
