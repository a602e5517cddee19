// `llmperf compare`: what lies between two results, or between one and several others.
#include "result/difference.h"

#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "base/text.h"
#include "report/quantity.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"

namespace llmperf::report {
namespace {

// ---- Cells

// "-3.2 ms", "+12 ms"; "-" for none.
std::string change_cell(double before, double after) {
  if (!differs(before, after)) return "-";
  return (after > before ? "+" : "-") + format_seconds(Seconds{std::abs(after - before)});
}

// "-38.2 %"; "-" for none and where there is nothing to relate to.
std::string relative_cell(const std::optional<double>& before, const std::optional<double>& after) {
  const auto change = relative_change(before, after);
  if (!change || !differs(*before, *after)) return "-";
  return std::abs(*change) < 0.0005 ? "0.0 %" : fmt::format("{:+.1f} %", *change * 100);
}

// "x 0.62": the value as a multiple of the reference's.
std::string factor_text(double factor) { return "x " + format_significant(factor, 3); }

std::string value_cell(const std::string& key, const Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return "-";
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  if (const auto* number = std::get_if<double>(&value)) return quantity_text(key, *number);
  return std::get<std::string>(value);
}
// "ttft_s.p99" is a time, as "ttft_s" is.
std::string unit_key(const std::string& key) {
  const std::size_t statistic = key.find("_s.");
  return statistic == std::string::npos ? key : key.substr(0, statistic + 2);
}
std::string figure_cell(const std::string& key, const std::optional<double>& value) {
  return value ? quantity_text(unit_key(key), *value) : "-";
}

std::string figure_title(const std::string& key) {
  if (key.starts_with("kv.")) return "KV cache in use, " + label_of(key.substr(3));
  const std::string unit = unit_key(key);
  return unit == key ? label_of(key.substr(key.rfind('.') + 1))
                     : label_of(unit) + key.substr(unit.size()).replace(0, 1, " ");
}

std::string side_text(const SavedResult& r) {
  return r.source + (r.label.empty() ? "" : ": " + r.label) +
         (r.fits ? "" : fmt::format("; {}, so that there are no times", r.kind->unfit));
}

// ---- Two results

Table input_table(const Difference& d) {
  Table t = titled("What changed", "<input, <before, <after");
  for (const InputChange& c : d.inputs) {
    add_row(t, c.name, value_cell(c.name, c.before), value_cell(c.name, c.after));
  }
  return t;
}

std::string figure_change(const FigureChange& f) {
  if (!f.before || !f.after || !differs(*f.before, *f.after)) return "-";
  const double change = *f.change();
  if (is_share(f.key)) return fmt::format("{:+.1f} points", change * 100);
  return (change > 0 ? "+" : "-") + quantity_text(unit_key(f.key), std::abs(change));
}

Table headline_table(const Difference& d) {
  Table t = titled("Headline", "<number, before, after, change, relative, <");
  if (d.before->fits != d.after->fits) {
    add_row(t, "fits", d.before->fits ? "yes" : "no", d.after->fits ? "yes" : "no", "", "", "");
  }
  for (const FigureChange& f : d.figures) {
    if (!f.before && !f.after) continue;
    const bool inside = f.inside_band.value_or(false) && differs(*f.before, *f.after);
    add_row(t, figure_title(f.key), figure_cell(f.key, f.before), figure_cell(f.key, f.after), figure_change(f),
            relative_cell(f.before, f.after), inside ? "inside the error bands" : "");
  }
  return t;
}

std::string phase_title(const PhaseChange& p) {
  if (!p.before.present || !p.after.present) {
    return fmt::format("{} (one step), only {}: {}", p.name, p.before.present ? "before" : "after",
                       Seconds{p.before.present ? p.before.time : p.after.time});
  }
  const bool same = p.before.bound == p.after.bound;
  if (p.of_requests) {
    return fmt::format("{} (on the mean, by what it passes with: most of it {}{})", p.name, p.before.bound,
                       same ? "" : ", then " + p.after.bound);
  }
  return fmt::format("{} (one step; bound by {}{})", p.name, p.before.bound, same ? "" : ", then by " + p.after.bound);
}

template <class State>
void add_op_row(const std::string& name, const State& before, const State& after, double whole, std::string why,
                Table& t) {
  const auto time = [](const State& state) { return state.present ? format_seconds(Seconds{state.time}) : "-"; };
  const double share = whole != 0 ? (after.time - before.time) / whole : 0;
  t.rows.push_back(
      {name, time(before), time(after), change_cell(before.time, after.time),
       before.present && after.present ? relative_cell(before.time, after.time) : "-",
       differs(before.time, after.time) && whole != 0 ? format_share(std::abs(share) < 5e-4 ? 0 : share) : "-",
       std::move(why)});
}

Table phase_table(const PhaseChange& p) {
  Table t = titled(phase_title(p), fmt::format("<{}, before, after, change, relative, of all, <{}",
                                               p.of_requests ? "cause" : "op", p.of_requests ? "" : "why"));
  const double whole = p.ops.empty() ? 0 : p.ops.front().whole;
  PhaseState before{.present = true, .bound = {}};
  PhaseState after = before;
  std::int64_t same = 0;
  for (const OpChange& op : p.ops) {
    if (op.changes()) {
      add_op_row(op.place == "host" ? op.name + " (host)" : op.name, op.before, op.after, whole, op.why(), t);
      continue;
    }
    before.time += op.before.time;
    after.time += op.after.time;
    ++same;
  }
  if (same > 0) add_op_row(fmt::format("{} unchanged", same), before, after, whole, "", t);
  add_op_row(p.of_requests ? "in all" : "the step", p.before, p.after, whole, "", t);
  return t;
}

Document document(const Difference& d) {
  Fields sides;
  sides.rows = {{"before", side_text(*d.before)}, {"after", side_text(*d.after)}};
  const bool changes = d.any_change();
  if (!changes) sides.add("result", "no difference");
  if (changes && d.inputs.empty()) {
    sides.add("inputs", "the same: what stands behind a name (a model, a device, a profile) changed, or llmperf did");
  }
  Document doc{Heading{"Difference of two results", ""}, std::move(sides)};
  if (!d.inputs.empty()) doc.emplace_back(input_table(d));
  doc.emplace_back(headline_table(d));
  std::vector<std::string> same;
  for (const PhaseChange& p : d.phases) {
    if (p.changes()) {
      doc.emplace_back(phase_table(p));
    } else if (!p.of_requests) {
      same.push_back(fmt::format("{} ({})", p.name, Seconds{p.before.time}));
    }
  }
  if (changes && !same.empty()) doc.emplace_back(Paragraph{"No difference in one step of: " + join(same, ", ")});
  return doc;
}

// ---- Several results

// As many columns beside the first result's as a page has room for.
constexpr std::size_t kBeside = 4;

// A file without its folder and ending, or the flags.
std::string short_name(const SavedResult& r) {
  std::string name = r.source;
  if (!name.ends_with(".json")) return name;
  name.resize(name.size() - std::string_view(".json").size());
  return name.substr(name.rfind('/') + 1);
}

Table headline_table(const Differences& d, std::size_t from) {
  const std::size_t to = std::min(d.results.size(), from + kBeside);
  Table t{"Headline", {{"number", true}, {short_name(*d.results.front().after), true}}, {}};
  for (std::size_t i = from; i < to; ++i) t.columns.push_back({short_name(*d.results[i].after), true});
  const auto all_null = [](const Difference& one, std::size_t figure) { return !one.figures[figure].after; };
  for (std::size_t figure = 0; figure < d.results.front().figures.size(); ++figure) {
    if (std::all_of(d.results.begin(), d.results.end(), [&](const auto& one) { return all_null(one, figure); }))
      continue;
    const FigureChange& first = d.results.front().figures[figure];
    std::vector<std::string>& row = t.rows.emplace_back();
    row = {figure_title(first.key), figure_cell(first.key, first.before)};
    for (std::size_t i = from; i < to; ++i) {
      const FigureChange& f = d.results[i].figures[figure];
      std::string text = figure_cell(f.key, f.after);
      if (const auto change = relative_change(f.before, f.after); change && differs(*f.before, *f.after)) {
        text += fmt::format(" ({})", factor_text(1 + *change));
      }
      row.push_back(std::move(text));
    }
  }
  return t;
}

// "bytes x 0.27, memory bandwidth x 3.32, kernels x 0.87".
std::string factors_text(const Reason& reason) {
  std::vector<std::string> parts;
  for (const Factor& f : reason.factors) {
    const bool work = f.what == "bytes" || f.what == "flops";
    if (work && std::abs(f.factor - 1) > 0.005)
      parts.push_back((f.what == "flops" ? "FLOPs " : "bytes ") + factor_text(f.factor));
  }
  if (const std::string speed = speed_text(reason.factors); !speed.empty()) parts.push_back(speed);
  return parts.empty() ? "-" : join(parts, ", ");
}

Table why_table(const Differences& d) {
  Table t = titled("Why (speed of one step; it is the peak and what kernels reach of it, over the work)",
                   "<result, <phase, before, after, speed, <why");
  for (const Difference& one : d.results) {
    for (const Reason& reason : one.reasons()) {
      const PhaseChange& phase = *std::ranges::find(one.phases, reason.phase, &PhaseChange::name);
      if (!phase.changes()) continue;
      add_row(t, short_name(*one.after), reason.phase, Seconds{phase.before.time}, Seconds{phase.after.time},
              factor_text(reason.times_as_fast), factors_text(reason));
    }
  }
  return t;
}

Document document(const Differences& d) {
  Fields sides;
  for (const Difference& one : d.results) sides.add(std::to_string(sides.rows.size() + 1), side_text(*one.after));
  Document doc{Heading{fmt::format("{} results, each against the first", d.results.size()), ""}, std::move(sides)};
  for (std::size_t from = 1; from < d.results.size(); from += kBeside) doc.emplace_back(headline_table(d, from));
  if (Table why = why_table(d); !why.rows.empty()) doc.emplace_back(std::move(why));
  Table inputs = titled("What changed", "<result, <input, <first, <here");
  for (const Difference& one : d.results) {
    for (const InputChange& c : one.inputs) {
      inputs.rows.push_back(
          {short_name(*one.after), c.name, value_cell(c.name, c.before), value_cell(c.name, c.after)});
    }
  }
  if (!inputs.rows.empty()) doc.emplace_back(std::move(inputs));
  return doc;
}

Table changes_csv(const Difference& d) {
  return csv_of(d.ops(),
                "phase, name, place, runs, before_s, after_s, change_s, share_of_change, count_before, count_after, "
                "flops_before, flops_after, bytes_before, bytes_after, network_bytes_before, network_bytes_after, "
                "bound_before, bound_after");
}

}  // namespace

Report difference_report(const Difference& difference) {
  return {document(difference), changes_csv(difference), result::document("llmperf.difference", difference)};
}

Report differences_report(const Differences& differences) {
  Table csv;
  for (const Difference& one : differences.results) {
    Table rows = changes_csv(one);
    csv.columns = std::move(rows.columns);
    for (auto& row : rows.rows) {
      row.insert(row.begin(), one.after->source);
      csv.rows.push_back(std::move(row));
    }
  }
  csv.columns.insert(csv.columns.begin(), {"result"});
  return {document(differences), std::move(csv), result::document("llmperf.difference", differences)};
}

}  // namespace llmperf::report
