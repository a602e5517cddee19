// Measurements as a file: a column is written when some row fills it in.
#include <fmt/format.h>

#include <algorithm>

#include "calibrate/measurements.h"
#include "calibrate/row_columns.h"

namespace llmperf::calibrate {
namespace {

// RFC 4180. A comment sign at the start of a record would make it a comment.
std::string csv_field(std::string_view text) {
  if (text.find_first_of("\",\r\n#") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c == '\n' || c == '\r' ? ' ' : c;  // a record is one line
  }
  return quoted + '"';
}

struct CellText {
  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{:.12g}", value); }
  std::string operator()(bool value) const { return value ? "1" : "0"; }
  std::string operator()(std::string_view text) const { return csv_field(text); }
};

std::string line(const std::vector<std::string>& fields) { return fmt::format("{}\n", fmt::join(fields, ",")); }

}  // namespace

std::string format_measurements(const Measurements& measurements) {
  std::string text;
  for (const Measurements::File& file : measurements.files) {
    for (const std::string& note : file.notes) text += fmt::format("# {}\n", note);
  }
  std::vector<const RowColumn*> columns;
  for (const RowColumn& column : row_columns()) {
    const bool used = std::any_of(measurements.rows.begin(), measurements.rows.end(),
                                  [&](const Row& row) { return column.value(row).index() != 0; });
    if (used) columns.push_back(&column);
  }
  const bool steps = !measurements.rows.empty() && std::holds_alternative<StepRow>(measurements.rows.front().of);
  std::vector<std::string> fields;
  for (const RowColumn* column : columns) fields.emplace_back(column->name);
  fields.emplace_back(steps ? "latency_ms" : "latency_us");
  for (const std::string& name : measurements.extra_columns) fields.push_back(csv_field(name));
  text += line(fields);
  for (const Row& row : measurements.rows) {
    fields.clear();
    for (const RowColumn* column : columns) fields.push_back(std::visit(CellText{}, column->value(row)));
    fields.push_back(fmt::format("{:.6g}", row.latency.value * (steps ? 1e3 : 1e6)));
    for (std::size_t i = 0; i < measurements.extra_columns.size(); ++i) {
      fields.push_back(i < row.extra.size() ? csv_field(row.extra[i]) : std::string());
    }
    text += line(fields);
  }
  return text;
}

}  // namespace llmperf::calibrate
