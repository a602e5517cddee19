// `llmperf sweep` and `llmperf merge`: the outputs that need all rows at once.

#include <algorithm>

#include "base/integer.h"
#include "base/number.h"
#include "report/quantity.h"
#include "report/reports.h"
#include "report/table.h"
#include "result/document.h"
#include "result/row.h"
#include "result/study.h"

namespace llmperf::report {
namespace {

// Shown after the axes when nobody chose, those that the sweep has.
constexpr const char* kTelling[] = {
    "fits", "ttft_s", "tpot_s", "tokens_per_second", "generation_s", "step_s", "mfu", "total_bytes", "largest_batch",
    // Of servers.
    "meets", "ttft_p50_s", "ttft_p99_s", "tpot_p95_s", "e2e_mean_s", "output_tokens_per_second",
    "tokens_per_second_per_user", "tokens_per_second_per_device"};

bool any_cell(const SweepResult& result, std::size_t column, auto is) {
  return std::any_of(result.rows.begin(), result.rows.end(),
                     [&](const points::Row& row) { return is(row[column].kind); });
}

std::vector<std::size_t> table_columns(const SweepResult& result) {
  if (!result.shown.empty()) return result.shown;
  std::vector<std::size_t> shown;
  const auto add = [&](const std::string& name, auto wanted) {
    const auto at = std::find(result.columns.begin(), result.columns.end(), name);
    const auto column = static_cast<std::size_t>(at - result.columns.begin());
    if (at != result.columns.end() && wanted(column)) shown.push_back(column);
  };
  const auto always = [](std::size_t) { return true; };
  for (const SweptFlag& axis : result.axes) add(axis.column, always);
  if (result.axes.empty()) {  // of merged rows nobody knows
    for (const char* name : {"point", "model", "hardware", "batch", "weights"}) add(name, always);
  }
  for (const char* name : kTelling) add(name, always);
  add("error", [&](std::size_t column) {
    return any_cell(result, column, [](points::Cell::Kind kind) { return kind != points::Cell::Kind::none; });
  });
  return shown;
}

// The columns, as they are called and as they are written for people and for spreadsheets.
template <class Text>
Table rows_as(const SweepResult& result, const std::vector<std::size_t>& shown, Text text) {
  Table t;
  for (const points::Row& row : result.rows) {
    std::vector<std::string>& cells = t.rows.emplace_back();
    for (const std::size_t column : shown) cells.push_back(text(result.columns[column], cell_text(row[column])));
  }
  return t;
}

}  // namespace

Report sweep_report(const SweepResult& result) {
  std::string text = format_count(d(static_cast<std::int64_t>(result.rows.size()))) + " rows";
  if (!result.selection.empty()) text += ": " + result.selection;
  if (result.failed > 0) {
    text += fmt::format("; {} points failed, first: {}", Count(result.failed), result.first_error);
  }
  for (const std::string& note : result.notes) text += "; " + note;
  const std::vector<std::size_t> telling = table_columns(result);
  Table people = rows_as(result, telling, readable);
  for (const std::size_t column : telling) {
    const bool left =
        any_cell(result, column, [](points::Cell::Kind kind) { return kind == points::Cell::Kind::text; });
    people.columns.push_back({label_of(result.columns[column]), left});
  }
  const std::vector<std::size_t> written = result.written();
  Table csv = rows_as(result, written, [](const std::string&, std::string cell) { return cell; });
  for (const std::size_t column : written) csv.columns.push_back({result.columns[column]});
  return {{Heading{fmt::format("Sweep of {} points", Count(result.points)), ""}, Paragraph{text}, std::move(people)},
          std::move(csv),
          sweep_document(result)};
}

}  // namespace llmperf::report
