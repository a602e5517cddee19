#include "report/sweep_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "base/number.h"
#include "report/json.h"
#include "report/result_row.h"
#include "report/study_view.h"

namespace llmperf::report {
namespace {

using sweep::Cell;

// Shown after the axes when nobody chose, those that the sweep has.
constexpr const char* kTelling[] = {"fits",   "ttft_s", "tpot_s",      "tokens_per_second", "generation_s",
                                    "step_s", "mfu",    "total_bytes", "largest_batch"};

std::vector<std::size_t> table_columns(const SweepResult& result) {
  if (!result.shown.empty()) return result.shown;
  std::vector<std::size_t> shown;
  const auto add = [&](const std::string& name) {
    const auto at = std::find(result.columns.begin(), result.columns.end(), name);
    if (at != result.columns.end()) shown.push_back(static_cast<std::size_t>(at - result.columns.begin()));
  };
  for (const SweptFlag& axis : result.axes) add(axis.column);
  if (result.axes.empty()) {  // of merged rows nobody knows
    for (const char* name : {"point", "model", "hardware", "batch", "weights"}) add(name);
  }
  for (const char* name : kTelling) add(name);
  const auto at = std::find(result.columns.begin(), result.columns.end(), "error");
  const auto error = static_cast<std::size_t>(at - result.columns.begin());
  const bool failed = at != result.columns.end() &&
                      std::any_of(result.rows.begin(), result.rows.end(),
                                  [&](const sweep::Row& row) { return row[error].kind != Cell::Kind::none; });
  if (failed) shown.push_back(error);
  return shown;
}

Table table(const SweepResult& result) {
  Table t;
  const std::vector<std::size_t> shown = table_columns(result);
  for (const std::size_t column : shown) {
    const bool text = std::any_of(result.rows.begin(), result.rows.end(),
                                  [&](const sweep::Row& row) { return row[column].kind == Cell::Kind::text; });
    t.columns.push_back({heading_of(result.columns[column]), text});
  }
  for (const sweep::Row& row : result.rows) {
    std::vector<std::string> cells;
    for (const std::size_t column : shown) cells.push_back(readable(result.columns[column], cell_text(row[column])));
    t.rows.push_back(std::move(cells));
  }
  return t;
}

std::vector<std::size_t> written_columns(const SweepResult& result) {
  if (!result.shown.empty()) return result.shown;
  std::vector<std::size_t> all(result.columns.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

Table csv(const SweepResult& result) {
  Table t;
  const std::vector<std::size_t> shown = written_columns(result);
  for (const std::size_t column : shown) t.columns.push_back({result.columns[column]});
  for (const sweep::Row& row : result.rows) {
    std::vector<std::string> cells;
    for (const std::size_t column : shown) cells.push_back(cell_text(row[column]));
    t.rows.push_back(std::move(cells));
  }
  return t;
}

Json cell_json(const Cell& cell) {
  switch (cell.kind) {
    case Cell::Kind::none: return nullptr;
    case Cell::Kind::number: return number(cell.number);
    case Cell::Kind::truth: return cell.number != 0;
    case Cell::Kind::text: return cell.text;
  }
  return nullptr;
}

Json row_json(const SweepResult& result, std::span<const std::size_t> shown, const sweep::Row& row) {
  Json object = Json::object();
  for (const std::size_t column : shown) object[result.columns[column]] = cell_json(row[column]);
  return object;
}

// Rows become text one by one: as one tree, many take several times the memory of the text.
std::string json(const SweepResult& result) {
  Json document = json_header("llmperf.sweep");
  document["points"] = result.points;
  document["failed"] = result.failed;
  document["selection"] = result.selection.empty() ? Json(nullptr) : Json(result.selection);
  document["axes"] = Json::array();
  for (const SweptFlag& axis : result.axes) {
    document["axes"].push_back({{"flag", axis.flag}, {"column", axis.column}, {"values", axis.values}});
  }
  document["columns"] = Json::array();
  const std::vector<std::size_t> shown = written_columns(result);
  for (const std::size_t column : shown) {
    const sweep::Better way = sweep::better(result.columns[column]);
    document["columns"].push_back({{"name", result.columns[column]},
                                   {"better", way == sweep::Better::lower    ? Json("lower")
                                              : way == sweep::Better::higher ? Json("higher")
                                                                             : Json(nullptr)}});
  }
  document["rows"] = Json::array();
  std::string text = dump(document);
  if (result.rows.empty()) return text;
  constexpr std::string_view kEnd = "]\n}\n";
  text.resize(text.size() - kEnd.size());
  for (const sweep::Row& row : result.rows) {
    text += text.back() == '[' ? "\n    " : ",\n    ";
    const std::string lines = dump(row_json(result, shown, row));
    for (const char c : std::string_view(lines).substr(0, lines.size() - 1)) {
      text += c;
      if (c == '\n') text += "    ";
    }
  }
  return text + "\n  " + std::string(kEnd);
}

}  // namespace

Report sweep_report(const SweepResult& result) {
  Document document{Heading{fmt::format("Sweep of {} points", format_count(static_cast<double>(result.points))), ""}};
  std::string text = fmt::format("{} rows", format_count(static_cast<double>(result.rows.size())));
  if (!result.selection.empty()) text += ": " + result.selection;
  if (result.failed > 0) {
    text += fmt::format("; {} points failed, first: {}", format_count(static_cast<double>(result.failed)),
                        result.first_error);
  }
  document.push_back(Paragraph{text});
  document.push_back(table(result));
  return {std::move(document), csv(result), json(result)};
}

}  // namespace llmperf::report
