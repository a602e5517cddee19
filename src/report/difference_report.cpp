#include "report/difference_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "base/text.h"
#include "report/difference_text.h"
#include "report/json.h"
#include "report/quantity.h"

namespace llmperf::report {
namespace {

const char* runs(bool before, bool after) { return before && after ? "both" : before ? "before" : "after"; }

// ---- For people.

std::string figure_title(const std::string& key) {
  constexpr std::pair<std::string_view, std::string_view> titles[] = {{"ttft_s", "TTFT"},
                                                                      {"tpot_s", "TPOT"},
                                                                      {"total_s", "whole generation"},
                                                                      {"generation_s", "generation"},
                                                                      {"step_s", "step"},
                                                                      {"memory.total_bytes", "memory"},
                                                                      {"memory.weight_bytes", "weights"},
                                                                      {"memory.kv_cache_bytes", "KV cache"},
                                                                      {"mfu", "MFU"}};
  for (const auto& [known, title] : titles) {
    if (key == known) return std::string(title);
  }
  std::string text = key.substr(key.find('.') == std::string::npos ? 0 : key.find('.') + 1);
  for (const std::string_view unit : {"_bytes", "_s"}) {
    if (text.ends_with(unit)) text.resize(text.size() - unit.size());
  }
  for (char& c : text) c = c == '_' ? ' ' : c;
  return text;
}

Table input_table(const Difference& d) {
  Table t{"What changed", {{"input", true}, {"before", true}, {"after", true}}, {}};
  for (const InputChange& c : d.inputs) {
    t.rows.push_back({c.name, value_text(c.name, c.before), value_text(c.name, c.after)});
  }
  return t;
}

std::string figure_change(const FigureChange& f) {
  if (!f.before || !f.after || !differs(*f.before, *f.after)) return "-";
  const double change = *f.after - *f.before;
  if (is_share(f.key)) return fmt::format("{:+.1f} points", change * 100);
  return (change > 0 ? "+" : "-") + value_text(f.key, std::abs(change));
}

Table headline_table(const Difference& d) {
  Table t{"Headline", {{"number", true}, {"before"}, {"after"}, {"change"}, {"relative"}, {"", true}}, {}};
  const auto cell = [](const FigureChange& f, const std::optional<double>& value) {
    return value_text(f.key, value ? SavedValue(*value) : SavedValue());
  };
  if (d.before.fits != d.after.fits) {
    t.rows.push_back({"fits", d.before.fits ? "yes" : "no", d.after.fits ? "yes" : "no", "", "", ""});
  }
  for (const FigureChange& f : d.figures) {
    if (!f.before && !f.after) continue;
    const bool relates = f.before && f.after;
    const bool changes = relates && differs(*f.before, *f.after);
    t.rows.push_back({figure_title(f.key), cell(f, f.before), cell(f, f.after), figure_change(f),
                      relates ? relative_cell(*f.before, *f.after) : "-",
                      changes && f.inside_band.value_or(false) ? "inside the error bands" : ""});
  }
  return t;
}

std::string phase_title(const PhaseChange& p) {
  if (!p.before.present || !p.after.present) {
    return fmt::format("{} (one step), only {}: {}", p.name, p.before.present ? "before" : "after",
                       format_seconds(Seconds{p.before.present ? p.before.time : p.after.time}));
  }
  std::string bound = p.before.bound;
  if (p.before.bound != p.after.bound) bound += ", then by " + p.after.bound;
  return fmt::format("{} (one step; bound by {})", p.name, bound);
}

void add_op_row(const std::string& name, const OpState& before, const OpState& after, double whole, std::string why,
                Table& t) {
  const auto time = [](const OpState& state) {
    return state.present ? format_seconds(Seconds{state.time}) : std::string("-");
  };
  const double change = after.time - before.time;
  t.rows.push_back({name, time(before), time(after), change_cell(before.time, after.time),
                    before.present && after.present ? relative_cell(before.time, after.time) : "-",
                    differs(before.time, after.time) && whole != 0 ? share_cell(change / whole) : "-", std::move(why)});
}

Table phase_table(const PhaseChange& p) {
  Table t{
      phase_title(p), {{"op", true}, {"before"}, {"after"}, {"change"}, {"relative"}, {"of all"}, {"why", true}}, {}};
  const double whole = differs(p.before.time, p.after.time) ? p.change() : 0;
  OpState before;
  OpState after;
  std::int64_t same = 0;
  for (const OpChange& op : p.ops) {
    if (op.changes()) {
      add_op_row(op.place == "host" ? op.name + " (host)" : op.name, op.before, op.after, whole, reason(op), t);
      continue;
    }
    before.time += op.before.time;
    after.time += op.after.time;
    ++same;
  }
  before.present = after.present = true;
  if (same > 0) add_op_row(fmt::format("{} unchanged", same), before, after, whole, "", t);
  OpState first;
  OpState last;
  first.present = p.before.present;
  first.time = p.before.time;
  last.present = p.after.present;
  last.time = p.after.time;
  add_op_row("the step", first, last, whole, "", t);
  return t;
}

bool any_change(const Difference& d) {
  if (d.before.fits != d.after.fits) return true;
  for (const FigureChange& f : d.figures) {
    if (f.before.has_value() != f.after.has_value() || (f.before && differs(*f.before, *f.after))) return true;
  }
  return std::any_of(d.phases.begin(), d.phases.end(), [](const PhaseChange& p) { return p.changes(); });
}

std::string side_text(const SavedResult& r) {
  return r.label + (r.fits ? "" : "; does not fit, so that there are no times");
}

Document document(const Difference& d) {
  Fields sides;
  sides.rows = {{"before", d.before.source + ": " + side_text(d.before)},
                {"after", d.after.source + ": " + side_text(d.after)}};
  const bool changes = any_change(d);
  if (!changes) sides.rows.emplace_back("result", "no difference");
  if (changes && d.inputs.empty()) {
    sides.rows.emplace_back("inputs",
                            "the same: what stands behind a name (a model, a device, a profile) changed, or "
                            "llmperf did");
  }
  Document doc{Heading{"Difference of two results", ""}, std::move(sides)};
  if (!d.inputs.empty()) doc.emplace_back(input_table(d));
  doc.emplace_back(headline_table(d));
  std::vector<std::string> same;
  for (const PhaseChange& p : d.phases) {
    if (p.changes()) {
      doc.emplace_back(phase_table(p));
    } else {
      same.push_back(fmt::format("{} ({})", p.name, format_seconds(Seconds{p.before.time})));
    }
  }
  if (changes && !same.empty()) doc.emplace_back(Paragraph{"No difference in one step of: " + join(same, ", ")});
  return doc;
}

// ---- For scripts.

Json value_json(const SavedValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* number_value = std::get_if<double>(&value)) return number(*number_value);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

Json relative_json(const std::optional<double>& before, const std::optional<double>& after) {
  return before && after && *before != 0 ? number(*after / *before - 1) : Json(nullptr);
}

Json side_json(const SavedResult& r) {
  return {{"source", r.source}, {"label", r.label}, {"tool_version", r.version}, {"fits", r.fits}};
}

Json headline_json(const Difference& d) {
  Json json = Json::array();
  for (const FigureChange& f : d.figures) {
    json.push_back({{"name", f.key},
                    {"before", number(f.before)},
                    {"after", number(f.after)},
                    {"change", f.before && f.after ? number(*f.after - *f.before) : Json(nullptr)},
                    {"relative_change", relative_json(f.before, f.after)},
                    {"inside_error_band", f.inside_band ? Json(*f.inside_band) : Json(nullptr)}});
  }
  return json;
}

Json op_json(const OpChange& op, double whole) {
  Json json = {{"name", op.name},
               {"place", op.place.empty() ? Json(nullptr) : Json(op.place)},
               {"runs", runs(op.before.present, op.after.present)},
               {"before_s", number(op.before.time)},
               {"after_s", number(op.after.time)},
               {"change_s", number(op.change())},
               {"relative_change",
                op.before.present && op.after.present ? relative_json(op.before.time, op.after.time) : Json(nullptr)},
               {"share_of_change", whole != 0 ? number(op.change() / whole) : Json(nullptr)}};
  const auto both = [&](const char* what, double OpState::*part) {
    json[std::string(what) + "_before"] = number(op.before.*part);
    json[std::string(what) + "_after"] = number(op.after.*part);
  };
  both("count", &OpState::count);
  both("flops", &OpState::flops);
  both("bytes", &OpState::bytes);
  both("network_bytes", &OpState::network);
  const auto texts = [&](const char* what, std::string OpState::*part) {
    const auto text = [](const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); };
    json[std::string(what) + "_before"] = text(op.before.*part);
    json[std::string(what) + "_after"] = text(op.after.*part);
  };
  texts("shape", &OpState::shape);
  texts("weights", &OpState::weights);
  texts("bound", &OpState::bound);
  json["why"] = reason(op);
  return json;
}

Json phases_json(const Difference& d) {
  Json json = Json::array();
  for (const PhaseChange& p : d.phases) {
    const double whole = differs(p.before.time, p.after.time) ? p.change() : 0;
    Json ops = Json::array();
    for (const OpChange& op : p.ops) ops.push_back(op_json(op, whole));
    json.push_back({{"name", p.name},
                    {"runs", runs(p.before.present, p.after.present)},
                    {"before_s", number(p.before.time)},
                    {"after_s", number(p.after.time)},
                    {"change_s", number(p.change())},
                    {"relative_change",
                     p.before.present && p.after.present ? relative_json(p.before.time, p.after.time) : Json(nullptr)},
                    {"bound_before", p.before.present ? Json(p.before.bound) : Json(nullptr)},
                    {"bound_after", p.after.present ? Json(p.after.bound) : Json(nullptr)},
                    {"ops", std::move(ops)}});
  }
  return json;
}

std::string difference_json(const Difference& d) {
  Json json = json_header("llmperf.difference");
  json["before"] = side_json(d.before);
  json["after"] = side_json(d.after);
  json["inputs"] = Json::array();
  for (const InputChange& c : d.inputs) {
    json["inputs"].push_back({{"name", c.name}, {"before", value_json(c.before)}, {"after", value_json(c.after)}});
  }
  json["headline"] = headline_json(d);
  json["phases"] = phases_json(d);
  return dump(json);
}

Table csv(const Difference& d) {
  Table t{"", {}, {}};
  for (const char* column :
       {"phase", "name", "place", "runs", "before_s", "after_s", "change_s", "share_of_change", "count_before",
        "count_after", "flops_before", "flops_after", "bytes_before", "bytes_after", "network_bytes_before",
        "network_bytes_after", "bound_before", "bound_after"}) {
    t.columns.push_back({column});
  }
  for (const PhaseChange& p : d.phases) {
    const double whole = differs(p.before.time, p.after.time) ? p.change() : 0;
    for (const OpChange& op : p.ops) {
      t.rows.push_back({p.name, op.name, op.place, runs(op.before.present, op.after.present), plain(op.before.time),
                        plain(op.after.time), plain(op.change()), whole != 0 ? plain(op.change() / whole) : "",
                        plain(op.before.count), plain(op.after.count), plain(op.before.flops), plain(op.after.flops),
                        plain(op.before.bytes), plain(op.after.bytes), plain(op.before.network),
                        plain(op.after.network), op.before.bound, op.after.bound});
    }
  }
  return t;
}

}  // namespace

Report difference_report(const Difference& difference) {
  return {document(difference), csv(difference), difference_json(difference)};
}

}  // namespace llmperf::report
