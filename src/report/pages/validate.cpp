// `llmperf validate` and `llmperf calibrate`: errors of predictions, and the fit that made them small.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/integer.h"
#include "base/list.h"
#include "base/match.h"
#include "base/number.h"
#include "base/text.h"
#include "measure/measurements.h"
#include "report/quantity.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"
#include "result/json.h"
#include "result/measured.h"

namespace llmperf::report {
namespace {

using measure::Calibration;
using measure::Cell;
using measure::GroupErrors;
using measure::Validation;

// ---- Errors by group

// What people call the kinds of group_rows().
constexpr std::pair<std::string_view, std::string_view> kKindTitles[] = {
    {"runtime_phase", "runtime, phase"},
    {"batch_band", "batch"},
    {"runtime_batch_band", "runtime, batch"},
    {"m_band", "rows of gemm"},
    {"layout", "heads"},
    {"site", "weight matrix"},
    {"scheme", "op, weights"},
    {"hardware_phase", "device, phase"},
    {"metric_hardware", "figure, device"},
    {"metric_model", "figure, model"},
    {"metric_tp", "figure, TP"},
    {"metric_load", "figure, load"},
    {"metric", "figure"},
};
std::string kind_title(const std::string& by) {
  for (const auto& [kind, title] : kKindTitles) {
    if (kind == by) return std::string(title);
  }
  return by;
}

// "83 %"
std::string whole_share(double share) { return fmt::format("{:.0f} %", 100 * share); }

// Few columns of figures, so that names have room; the document has the others. One of which nothing is known is left
// out.
Table error_table(std::string title, const std::vector<GroupErrors>& groups, bool baselines) {
  Table t = table_of(std::move(title), groups,
                     baselines ? "name: group, rows, mape: mean, p90_ape: p90, bias, roofline_mape: roof, "
                                 "fitted_roofline_mape: fitted, rule_mape: rule, inside_p90: in band"
                               : "name: group, rows, mape: mean, p90_ape: p90, bias, inside_p90: in band");
  for (std::size_t c = t.columns.size(); --c > 0;) {
    if (!std::ranges::all_of(t.rows, [&](const auto& row) { return row[c] == "-"; })) continue;
    const auto at = static_cast<std::ptrdiff_t>(c);
    t.columns.erase(t.columns.begin() + at);
    for (auto& row : t.rows) row.erase(row.begin() + at);
  }
  return t;
}

// A kind of groups with a single member says nothing that the summary does not, and one whose groups are those of the
// kind before it nothing that those do not; of one with many only the worst are shown, in a table of their own.
void add_error_tables(Document& doc, const std::string& title, std::span<const GroupErrors> groups, bool baselines) {
  constexpr std::size_t kMany = 16;
  constexpr std::ptrdiff_t kWorst = 10;
  std::vector<GroupErrors> small;
  std::vector<std::pair<std::size_t, std::string>> kinds;  // of these, where they begin
  std::vector<Table> large;
  std::vector<double> before;
  while (!groups.empty()) {
    const auto end = std::ranges::find_if(groups, [&](const GroupErrors& g) { return g.by != groups.front().by; });
    std::vector<GroupErrors> kind(groups.begin(), end);
    groups = groups.subspan(kind.size());
    std::vector<double> errors;
    for (const GroupErrors& g : kind) errors.push_back(g.errors.mape);
    if (kind.size() < 2 || errors == std::exchange(before, errors)) continue;
    const std::string by = kind_title(kind.front().by);
    if (kind.size() > kMany) {
      std::ranges::stable_sort(kind, std::greater(), [](const GroupErrors& g) { return g.errors.mape; });
      large.push_back(error_table(fmt::format("The {} worst of {} groups by {}", kWorst, kind.size(), by),
                                  {kind.begin(), kind.begin() + kWorst}, baselines));
      continue;
    }
    kinds.emplace_back(small.size() + kinds.size(), by);
    small.insert(small.end(), kind.begin(), kind.end());
  }
  if (!small.empty()) {
    Table t = error_table(title, small, baselines);
    for (auto& row : t.rows) row.front().insert(0, "  ");
    for (const auto& [at, by] : kinds) {
      t.rows.insert(t.rows.begin() + static_cast<std::ptrdiff_t>(at), std::vector<std::string>(t.columns.size()))
          ->front() = by;
    }
    doc.push_back(std::move(t));
  }
  for (Table& t : large) doc.push_back(std::move(t));
}

// ---- The rows of a validation as data, written straight to text: there may be tens of thousands

// A field of a row as a cell, empty where the row does not have it; text is that of the row.
class CellOf final : public result::Visitor {
 public:
  CellOf(const result::Field& field, const result::ValidatedRow& row) {
    if (field.there == nullptr || field.there(&row)) field.visit(&row, *this);
  }
  Cell cell;

 private:
  void nothing() override { cell = {}; }
  void truth(bool value) override { cell = value; }
  void number(double value) override { cell = value; }
  void text(std::string_view value) override { cell = value; }
  void object(const result::Type&, const void*) override {}
  void begin(bool) override {}
  void key(std::string_view) override {}
  void end() override {}
};
const std::vector<result::Field>& found_columns() { return result::type_of<result::ValidatedRow>().fields; }

// All keys in order. A column of the input that is called like one of the output becomes "input_…".
std::vector<std::string> keys_of_rows(const Validation& v) {
  std::vector<std::string> list = {"file", "line"};
  for (const std::string_view column : measure::row_columns()) list.emplace_back(column);
  for (const result::Field& column : found_columns()) list.emplace_back(column.key);
  for (std::string key : v.measurements.extra_columns) {
    while (std::find(list.begin(), list.end(), key) != list.end()) key.insert(0, "input_");
    list.push_back(std::move(key));
  }
  return list;
}

// One for every key.
void fill_cells(const Validation& v, const measure::ValidatedRow& r, std::vector<Cell>& cells) {
  const measure::Row& row = v.measurements.rows[r.row];
  cells.clear();
  cells.emplace_back(v.measurements.files[row.file].path);
  cells.emplace_back(static_cast<std::int64_t>(row.line));
  for (const Cell& cell : measure::row_cells(row)) cells.push_back(cell);
  for (const result::Field& column : found_columns()) cells.push_back(CellOf(column, {&v, &r}).cell);
  for (std::size_t i = 0; i < v.measurements.extra_columns.size(); ++i) {
    cells.push_back(i < row.extra.size() ? Cell(row.extra[i]) : Cell());
  }
}

// As CSV has it; plain() has no text for what JSON has no number for.
std::string csv_text(const Cell& cell) {
  return match(
      cell, [](std::monostate) { return std::string(); }, [](std::string_view text) { return std::string(text); },
      [](std::int64_t whole) { return std::to_string(whole); }, [](double value) { return plain(value); },
      [](bool truth) { return std::string(truth ? "true" : "false"); });
}

struct ValidatedRows {
  Table csv;         // a column for everything that some row has
  std::string json;  // an array, one object per line with the keys that the row has, indented by two
};
ValidatedRows write_rows(const Validation& v) {
  const std::vector<std::string> names = keys_of_rows(v);
  std::vector<std::string> keys;
  for (const std::string& key : names) keys.push_back(result::quoted(key) + ": ");
  std::vector<bool> used(names.size(), false);
  std::vector<Cell> cells;
  for (const measure::ValidatedRow& r : v.rows) {
    fill_cells(v, r, cells);
    for (std::size_t i = 0; i < cells.size(); ++i) used[i] = used[i] || cells[i].index() != 0;
  }

  ValidatedRows out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (used[i]) out.csv.columns.push_back({names[i]});
  }
  out.csv.rows.reserve(v.rows.size());
  out.json = "[";
  for (const measure::ValidatedRow& r : v.rows) {
    fill_cells(v, r, cells);
    std::vector<std::string>& row = out.csv.rows.emplace_back();
    row.reserve(out.csv.columns.size());
    out.json += out.json.size() > 1 ? ",\n    {" : "\n    {";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!used[i]) continue;
      row.push_back(csv_text(cells[i]));
      if (cells[i].index() == 0) continue;
      const bool text = std::holds_alternative<std::string_view>(cells[i]);
      out.json += (out.json.back() == '{' ? "" : ", ") + keys[i];
      out.json += text ? result::quoted(row.back()) : row.back().empty() ? "null" : row.back();
    }
    out.json += '}';
  }
  out.json += v.rows.empty() ? "]" : "\n  ]";
  return out;
}

// ---- Lines that were refused

// Each reason with its lines, "4, 7-12".
void add_refused(const std::vector<Diagnostic>& refused, bool files, Document& doc) {
  Fields f{"Refused lines", {}};
  std::vector<std::size_t> all(refused.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  for (const auto& [reason, which] : measure::rows_by_text(all, [&](std::size_t i) -> std::optional<std::string> {
         const Diagnostic& d = refused[i];
         return (files ? d.where.file + ": " : "") +
                (d.hint.empty() ? d.message : fmt::format("{} ({})", d.message, d.hint));
       })) {
    std::string lines;
    for (std::size_t i = 0, end = 0; i < which.size(); i = end) {
      const int first = refused[which[i]].where.line;
      for (end = i + 1; end < which.size() && refused[which[end]].where.line <= refused[which[end - 1]].where.line + 1;)
        ++end;
      const int last = refused[which[end - 1]].where.line;
      lines += fmt::format("{}{}", lines.empty() ? "" : ", ", first) + (first < last ? fmt::format("-{}", last) : "");
    }
    f.add(lines, reason);
  }
  if (!f.rows.empty()) doc.emplace_back(std::move(f));
}

// ---- The page of a validation

std::string counts_text(const Validation& v) {
  std::string text = fmt::format("{} scored", v.summary.errors.rows);
  const auto add = [&](std::int64_t n, std::string_view what) {
    if (n > 0) text += fmt::format(", {} {}", n, what);
  };
  const auto marked = [&](bool measure::ValidatedRow::*mark) {
    return std::count_if(v.rows.begin(), v.rows.end(), [&](const measure::ValidatedRow& r) { return r.*mark; });
  };
  add(static_cast<std::int64_t>(v.rows.size()) - v.summary.errors.rows, "listed, not scored");
  add(marked(&measure::ValidatedRow::extrapolated), "extrapolated");
  add(marked(&measure::ValidatedRow::class_default), "by defaults of the device's class");
  std::set<std::pair<std::string, int>> refused;
  for (const Diagnostic& d : v.measurements.refused) refused.emplace(d.where.file, d.where.line);
  add(static_cast<std::int64_t>(refused.size()), refused.size() == 1 ? "line refused" : "lines refused");
  return text;
}

Fields validation_headline(const Validation& v) {
  const measure::Summary& s = v.summary.errors;
  Fields f;
  f.add("mean error", "{}; median {}, 90 % of rows within {}, largest {}", Share{s.mape}, Share{s.median_ape},
        Share{s.p90_ape}, Share{s.max_ape});
  constexpr double kNoBias = 0.0005;  // prints as 0.0 %
  f.add("bias", signed_share(s.bias) + (s.bias >= kNoBias    ? " (predictions are too slow)"
                                        : s.bias <= -kNoBias ? " (predictions are too fast)"
                                                             : ""));
  std::string baselines = fmt::format("roofline {}; roofline with three constants fitted to these rows {}",
                                      Share{v.summary.roofline_mape}, Share{v.summary.fitted_roofline_mape});
  if (!std::isnan(v.summary.rule_mape)) {
    baselines += fmt::format("; rule of thumb (decode at 0.75 of the bandwidth, prefill at 0.5 of the peak) {}",
                             Share{v.summary.rule_mape});
  }
  f.add("baselines", std::move(baselines));
  if (!std::isnan(v.summary.band_factor)) {
    f.add("bands",
          "{} of rows inside the mean band, {} inside that of nine in ten; on the median the latter "
          "is a factor of {:.2f} wide",
          whole_share(v.summary.inside_mean), whole_share(v.summary.inside_p90), v.summary.band_factor);
  }
  f.add("rows", counts_text(v));
  std::vector<std::string> profiles;
  for (const measure::ValidatedRow& r : v.rows) {
    if (std::find(profiles.begin(), profiles.end(), r.profile) == profiles.end()) profiles.push_back(r.profile);
  }
  f.add("profiles", join(profiles, ", "));
  if (const auto unused = v.measurements.unused_columns(); !unused.empty()) {
    f.add("not used", "columns " + join(unused, ", ") + ": kept as they are, they change no prediction");
  }
  for (const std::string& warning : v.warnings) f.add("warning", warning);
  return f;
}

// One letter per mark, explained below the table.
std::string marks(const measure::ValidatedRow& r) {
  return std::string(r.extrapolated ? "x" : "") + (r.class_default ? "c" : "") + (r.scored ? "" : "-");
}

// Takes out what all rows of several have alike.
std::vector<std::string> take_shared(std::vector<std::vector<std::string>>& rows) {
  std::vector<std::string> shared = rows.size() < 2 ? std::vector<std::string>() : rows.front();
  for (const auto& row : rows) std::erase_if(shared, [&](const auto& part) { return !contains(row, part); });
  for (auto& row : rows) std::erase_if(row, [&](const auto& part) { return contains(shared, part); });
  return shared;
}

// On one line beside the figures: where that is too short, the last part, which says most, and those before it that
// have room. The line of the file says the rest.
std::string short_text(std::vector<std::string> parts) {
  constexpr int kRoom = 44;
  constexpr std::string_view kCut = "…";
  while (parts.size() > 2 && display_width(join(parts, " ")) > kRoom) {
    const bool cut = parts[parts.size() - 2] == kCut;
    parts.erase(parts.end() - (cut ? 3 : 2));
    if (!cut) parts.insert(parts.end() - 1, std::string(kCut));
  }
  return join(parts, " ");
}

// All rows while there are few, else the worst.
void add_rows(const Validation& v, Document& doc) {
  constexpr std::size_t kAll = 40;
  constexpr std::size_t kWorst = 20;
  const bool files = v.measurements.files.size() > 1;
  std::vector<const measure::ValidatedRow*> rows;
  for (const measure::ValidatedRow& r : v.rows) rows.push_back(&r);
  Table t = titled("Rows", "line, <measurement, measured, predicted, error, roof, <");
  if (rows.size() > kAll) {
    std::erase_if(rows, [](const measure::ValidatedRow* r) { return !r->scored; });
    std::stable_sort(rows.begin(), rows.end(), [&](const measure::ValidatedRow* a, const measure::ValidatedRow* b) {
      return std::abs(v.error(*a)) > std::abs(v.error(*b));
    });
    const std::size_t scored = rows.size();
    rows.resize(std::min(kWorst, scored));
    t.title = fmt::format("The {} worst of {} scored rows", rows.size(), scored);
  }
  std::vector<std::vector<std::string>> parts;
  for (const measure::ValidatedRow* r : rows) parts.push_back(configuration_parts(v.measurements.rows[r->row]));
  const std::vector<std::string> shared = take_shared(parts);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const measure::ValidatedRow* r = rows[i];
    const measure::Row& row = v.measurements.rows[r->row];
    add_row(t, files ? fmt::format("{}:{}", row.file + 1, row.line) : std::to_string(row.line),
            rows.size() > 1 ? short_text(parts[i]) : join(parts[i], " "), row.latency, Seconds{r->predicted},
            signed_share(v.error(*r)), Seconds{r->roofline}, marks(*r));
  }
  doc.emplace_back(std::move(t));
  if (!shared.empty()) doc.emplace_back(Paragraph{"All of them: " + join(shared, ", ")});
  if (std::any_of(v.rows.begin(), v.rows.end(), [](const measure::ValidatedRow& r) { return !marks(r).empty(); })) {
    doc.emplace_back(Paragraph{"x extrapolated; c by defaults of the device's class; - listed, not scored"});
  }
  if (files) {
    Fields f{"Files", {}};
    for (const auto& file : v.measurements.files) f.add(std::to_string(f.rows.size() + 1), file.path);
    doc.emplace_back(std::move(f));
  }
  std::map<std::string, std::int64_t> reasons;
  for (const measure::ValidatedRow& r : v.rows) {
    if (!r.scored) ++reasons[r.remark];
  }
  if (reasons.empty()) return;
  Fields f{"Listed, not scored", {}};
  for (const auto& [reason, count] : reasons) f.add(fmt::format("{} row{}", count, count == 1 ? "" : "s"), reason);
  doc.emplace_back(std::move(f));
}

// ---- The page of a calibration

std::string value_text(const ParameterFitted& p, double value) {
  if (p.unit == "s") return format_seconds(Seconds{value});
  if (p.unit == "B/s") return format_bandwidth(BytesPerSecond{value});
  return p.unit.empty() ? format_significant(value) : fmt::format("{} {}", Rounded{value}, p.unit);
}

std::string remark_on(const ParameterFitted& p) {
  switch (p.fitted.identified) {
    case measure::Identified::yes: break;
    case measure::Identified::no_effect: return "default: no row depends on it";
    case measure::Identified::weakly:
      return fmt::format("default: the rows narrow it down by {} only", Share{p.fitted.shrinkage});
  }
  if (!p.fitted.at_bound) return "";
  const bool lowest = p.fitted.value < std::sqrt(p.free.min * p.free.max);
  return lowest ? "at its lower bound" : "at its upper bound";
}

std::string summary_text(const std::vector<GroupErrors>& errors) {
  if (errors.empty()) return "n/a";
  const measure::Summary& s = errors.front().errors;
  return fmt::format("{}; median {}, 90 % of rows within {}, bias {}", Share{s.mape}, Share{s.median_ape},
                     Share{s.p90_ape}, signed_share(s.bias));
}

Fields calibration_headline(const Calibration& c, const std::vector<ParameterFitted>& parameters) {
  Fields f;
  if (!c.before.empty()) f.add("error, before", summary_text(c.before));
  for (const measure::LeftOut& left : c.left_out) {
    f.add("error, left out",
          left.folds > 0 ? fmt::format("{} (by {}, in {} folds)", summary_text(left.errors), left.by, left.folds)
                         : fmt::format("unknown: the rows are one group by {}", left.by));
  }
  f.add("error, fitted", summary_text(c.residuals));
  f.add("rows", std::to_string(c.residuals.empty() ? 0 : c.residuals.front().errors.rows));
  f.add("parameters", "{} of {} identified by the rows, the others at their defaults",
        std::count_if(parameters.begin(), parameters.end(), [](const auto& p) { return p.identified(); }),
        parameters.size());
  if (!c.converged) f.add("warning", "the fit had not converged after {} iterations", c.iterations);
  for (const std::string& warning : c.warnings) f.add("warning", warning);
  return f;
}

}  // namespace

Report validate_report(const Validation& v) {
  Document doc{Heading{"Predicted against measured", fmt::format("{} rows", v.rows.size())}, validation_headline(v)};
  add_error_tables(doc, "Errors by group", v.groups, true);
  add_rows(v, doc);
  add_refused(v.measurements.refused, v.measurements.files.size() > 1, doc);
  ValidatedRows rows = write_rows(v);
  // The rows are spliced in as text: building them as a tree takes longer than predicting them.
  std::string json = result::document("llmperf.validate", v);
  constexpr std::string_view kEnd = "[]\n}\n";
  json.replace(json.size() - kEnd.size(), 2, rows.json);
  return {std::move(doc), std::move(rows.csv), std::move(json)};
}

Report calibrate_report(const Calibration& c) {
  const std::vector<ParameterFitted> parameters = parameters_of(c);
  Table numbers = titled("Parameters (±: relative standard error, of rows and prior or of leaving groups out)",
                         "<parameter, value, ±, default, <");
  for (const ParameterFitted& p : parameters) {
    add_row(numbers, p.name, value_text(p, p.fitted.value), p.identified() ? format_share(p.uncertainty()) : "-",
            value_text(p, p.free.prior), remark_on(p));
  }
  Document doc{Heading{fmt::format("{} on {}", c.runtime, c.hardware), "calibrated"},
               calibration_headline(c, parameters), std::move(numbers)};
  if (!c.correlations.empty()) {
    doc.emplace_back(
        table_of("Parameters the rows know only together", correlated(c), "first, second, coefficient: correlation"));
  }
  if (!c.next.empty()) {
    Table t = titled("What further rows would tell", "<row, <narrows, before, after");
    for (const measure::Proposal& p : c.next) {
      std::string row = configuration(p.row);
      for (const measure::Narrowed& n : p.narrows) {
        add_row(t, std::exchange(row, ""), n.parameter, Share{n.before}, Share{n.after});
      }
    }
    doc.emplace_back(std::move(t));
  }
  for (const measure::LeftOut& left : c.left_out) {
    add_error_tables(doc, fmt::format("Errors of groups left out by {}", left.by), groups_of(left.errors), false);
  }
  add_error_tables(doc, "Residuals of the fit to all rows", groups_of(c.residuals), false);
  add_refused(c.refused, c.files.size() > 1, doc);
  return {std::move(doc), csv_of(parameters), result::document("llmperf.calibrate", c)};
}

}  // namespace llmperf::report
