#include "report/validated_rows.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <variant>

#include "calibrate/row_columns.h"
#include "report/json.h"

namespace llmperf::report {
namespace {

using calibrate::Cell;
using calibrate::Row;
using calibrate::RowColumn;
using calibrate::ValidatedRow;
using calibrate::Validation;

// What was found out about a row.
struct ResultColumn {
  std::string_view name;
  Cell (*value)(const Validation& v, const ValidatedRow& r);
};
template <auto Member>
Cell of_result(const Validation&, const ValidatedRow& r) {
  return r.*Member;
}
constexpr ResultColumn kResultColumns[] = {
    {"measured_s", [](const Validation& v, const ValidatedRow& r) { return Cell(v.measured(r)); }},
    {"predicted_s", of_result<&ValidatedRow::predicted>},
    {"error", [](const Validation& v, const ValidatedRow& r) { return Cell(v.error(r)); }},
    {"roofline_s", of_result<&ValidatedRow::roofline>},
    {"fitted_roofline_s", of_result<&ValidatedRow::fitted_roofline>},
    {"profile", of_result<&ValidatedRow::profile>},
    {"extrapolated", of_result<&ValidatedRow::extrapolated>},
    {"class_default", of_result<&ValidatedRow::class_default>},
    {"scored", of_result<&ValidatedRow::scored>},
    {"remark", of_result<&ValidatedRow::remark>},
};

// All keys in order. A column of the input that is called like one of the output becomes "input_…".
std::vector<std::string> keys(const Validation& v) {
  std::vector<std::string> list = {"file", "line"};
  for (const RowColumn& column : calibrate::row_columns()) list.emplace_back(column.name);
  for (const ResultColumn& column : kResultColumns) list.emplace_back(column.name);
  for (std::string key : v.measurements.extra_columns) {
    while (std::find(list.begin(), list.end(), key) != list.end()) key.insert(0, "input_");
    list.push_back(std::move(key));
  }
  return list;
}

// One for every key.
void fill(const Validation& v, const ValidatedRow& r, std::vector<Cell>& cells) {
  const Row& row = v.measurements.rows[r.row];
  cells.clear();
  cells.emplace_back(v.measurements.files[row.file].path);
  cells.emplace_back(static_cast<std::int64_t>(row.line));
  for (const RowColumn& column : calibrate::row_columns()) cells.push_back(column.value(row));
  for (const ResultColumn& column : kResultColumns) cells.push_back(column.value(v, r));
  for (std::size_t i = 0; i < v.measurements.extra_columns.size(); ++i) {
    cells.push_back(i < row.extra.size() ? Cell(row.extra[i]) : Cell());
  }
}

std::string csv_text(const Cell& cell) {
  if (const auto* text = std::get_if<std::string_view>(&cell)) return std::string(*text);
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return std::to_string(*whole);
  if (const auto* value = std::get_if<double>(&cell)) return plain(*value);
  if (const auto* truth = std::get_if<bool>(&cell)) return *truth ? "true" : "false";
  return {};
}

std::string json_string(std::string_view text) {
  const bool simple =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (simple) return '"' + std::string(text) + '"';
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void append_json(std::string& out, const std::string& key, const Cell& cell, const std::string& text) {
  if (std::holds_alternative<std::monostate>(cell)) return;
  if (out.back() != '{') out += ", ";
  out += key;
  out += ": ";
  if (const auto* string = std::get_if<std::string_view>(&cell)) {
    out += json_string(*string);
  } else {
    out += text.empty() ? "null" : text;  // plain() has no text for what JSON has no number for
  }
}

}  // namespace

ValidatedRows write_rows(const Validation& v) {
  const std::vector<std::string> names = keys(v);
  std::vector<std::string> quoted;
  for (const std::string& key : names) quoted.push_back(json_string(key));
  std::vector<bool> used(names.size(), false);
  std::vector<Cell> cells;
  for (const ValidatedRow& r : v.rows) {
    fill(v, r, cells);
    for (std::size_t i = 0; i < cells.size(); ++i) used[i] = used[i] || cells[i].index() != 0;
  }

  ValidatedRows out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (used[i]) out.csv.columns.push_back({names[i]});
  }
  out.csv.rows.reserve(v.rows.size());
  out.json = "[";
  for (const ValidatedRow& r : v.rows) {
    fill(v, r, cells);
    std::vector<std::string>& row = out.csv.rows.emplace_back();
    row.reserve(out.csv.columns.size());
    out.json += out.json.size() > 1 ? ",\n    {" : "\n    {";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!used[i]) continue;
      row.push_back(csv_text(cells[i]));
      append_json(out.json, quoted[i], cells[i], row.back());
    }
    out.json += '}';
  }
  out.json += v.rows.empty() ? "]" : "\n  ]";
  return out;
}

}  // namespace llmperf::report
