#include "report/validate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/number.h"
#include "base/text.h"
#include "report/error_table.h"
#include "report/json.h"
#include "report/validated_rows.h"

namespace llmperf::report {
namespace {

using calibrate::Row;
using calibrate::ValidatedRow;
using calibrate::Validation;

std::int64_t count(const Validation& v, bool ValidatedRow::*mark) {
  return std::count_if(v.rows.begin(), v.rows.end(), [&](const ValidatedRow& r) { return r.*mark; });
}

std::string rows_text(const Validation& v) {
  std::string text = fmt::format("{} scored", v.summary.errors.rows);
  const auto add = [&](std::int64_t n, std::string_view what) {
    if (n > 0) text += fmt::format(", {} {}", n, what);
  };
  add(static_cast<std::int64_t>(v.rows.size()) - v.summary.errors.rows, "listed, not scored");
  add(count(v, &ValidatedRow::extrapolated), "extrapolated");
  add(count(v, &ValidatedRow::class_default), "by defaults of the device's class");
  return text;
}

std::string profiles_text(const Validation& v) {
  std::vector<std::string> names;
  for (const ValidatedRow& r : v.rows) {
    if (std::find(names.begin(), names.end(), r.profile) == names.end()) names.push_back(r.profile);
  }
  return join(names, ", ");
}

Fields headline(const Validation& v) {
  const calibrate::Summary& s = v.summary.errors;
  Fields f;
  f.rows.emplace_back("mean error",
                      fmt::format("{}; median {}, 90 % of rows within {}, largest {}", error_text(s.mape),
                                  error_text(s.median_ape), error_text(s.p90_ape), error_text(s.max_ape)));
  const std::string_view side = s.bias > 0   ? " (predictions are too slow)"
                                : s.bias < 0 ? " (predictions are too fast)"
                                             : "";
  f.rows.emplace_back("bias", fmt::format("{}{}", signed_error_text(s.bias), side));
  f.rows.emplace_back("baselines",
                      fmt::format("roofline {}; roofline with three constants fitted to these rows {}",
                                  error_text(v.summary.roofline_mape), error_text(v.summary.fitted_roofline_mape)));
  f.rows.emplace_back("rows", rows_text(v));
  f.rows.emplace_back("profiles", profiles_text(v));
  if (const auto unused = v.measurements.unused_columns(); !unused.empty()) {
    f.rows.emplace_back("not used", "columns " + join(unused, ", ") + ": kept as they are, they change no prediction");
  }
  for (const std::string& warning : v.warnings) f.rows.emplace_back("warning", warning);
  return f;
}

// One letter per mark, explained in the table's title.
std::string marks(const ValidatedRow& r) {
  std::string text;
  if (r.extrapolated) text += 'x';
  if (r.class_default) text += 'c';
  if (!r.scored) text += '-';
  return text;
}

Table row_table(const Validation& v, std::string title, std::span<const ValidatedRow* const> rows) {
  const bool files = v.measurements.files.size() > 1;
  Table t{std::move(title),
          {{"line"}, {"measurement", true}, {"measured"}, {"predicted"}, {"error"}, {"roofline"}, {"", true}},
          {}};
  for (const ValidatedRow* r : rows) {
    const Row& row = v.measurements.rows[r->row];
    const std::string line = std::to_string(row.line);
    t.rows.push_back({files ? fmt::format("{}:{}", row.file + 1, line) : line, configuration(row),
                      format_seconds(row.latency), format_seconds(Seconds{r->predicted}),
                      signed_error_text(v.error(*r)), format_seconds(Seconds{r->roofline}), marks(*r)});
  }
  return t;
}

void add_rows(const Validation& v, Document& doc) {
  constexpr std::size_t kAll = 40;
  constexpr std::size_t kWorst = 20;
  std::vector<const ValidatedRow*> rows;
  for (const ValidatedRow& r : v.rows) rows.push_back(&r);
  if (rows.size() <= kAll) {
    doc.emplace_back(row_table(v, "Rows", rows));
  } else {
    std::erase_if(rows, [](const ValidatedRow* r) { return !r->scored; });
    std::stable_sort(rows.begin(), rows.end(), [&](const ValidatedRow* a, const ValidatedRow* b) {
      return std::abs(v.error(*a)) > std::abs(v.error(*b));
    });
    const std::size_t scored = rows.size();
    rows.resize(std::min(kWorst, scored));
    doc.emplace_back(row_table(v, fmt::format("The {} worst of {} scored rows", rows.size(), scored), rows));
  }
  const auto marked = [](const ValidatedRow& r) { return !marks(r).empty(); };
  if (std::any_of(v.rows.begin(), v.rows.end(), marked)) {
    doc.emplace_back(Paragraph{"x extrapolated; c by defaults of the device's class; - listed, not scored"});
  }
  if (v.measurements.files.size() > 1) {
    Fields f{"Files", {}};
    for (std::size_t i = 0; i < v.measurements.files.size(); ++i) {
      f.rows.emplace_back(std::to_string(i + 1), v.measurements.files[i].path);
    }
    doc.emplace_back(std::move(f));
  }
}

void add_unscored(const Validation& v, Document& doc) {
  std::map<std::string, std::int64_t> reasons;
  for (const ValidatedRow& r : v.rows) {
    if (!r.scored) ++reasons[r.remark];
  }
  if (reasons.empty()) return;
  Fields f{"Listed, not scored", {}};
  for (const auto& [reason, rows] : reasons) {
    f.rows.emplace_back(fmt::format("{} row{}", rows, rows == 1 ? "" : "s"), reason);
  }
  doc.emplace_back(std::move(f));
}

// The rows are spliced in as text: building them as a tree takes longer than predicting them.
std::string document_json(const Validation& v, const std::string& rows) {
  Json json = json_header("llmperf.validate");
  json["files"] = Json::array();
  for (const auto& file : v.measurements.files) json["files"].push_back({{"path", file.path}, {"notes", file.notes}});
  json["summary"] = errors_json(v.summary, true);
  json["groups"] = groups_json(v.groups, true);
  json["unused_columns"] = v.measurements.unused_columns();
  json["warnings"] = v.warnings;
  std::string text = dump(json);
  text.resize(text.rfind("\n}"));
  return text + ",\n  \"rows\": " + rows + "\n}\n";
}

}  // namespace

Report validate_report(const Validation& v) {
  Document doc{Heading{"Predicted against measured", fmt::format("{} rows", v.rows.size())}, headline(v)};
  for (Table& t : error_tables("Errors by group", v.groups, true)) doc.emplace_back(std::move(t));
  add_rows(v, doc);
  add_unscored(v, doc);
  ValidatedRows rows = write_rows(v);
  return {std::move(doc), std::move(rows.csv), document_json(v, rows.json)};
}

}  // namespace llmperf::report
