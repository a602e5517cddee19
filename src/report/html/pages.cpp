// The answer first: cards with the headline, then charts, then tables; what the answer rests on is folded below. Every
// key of a document that no section of its own has shown stands in the details at the end.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>

#include "base/number.h"
#include "base/text.h"
#include "report/html/assets.h"
#include "report/html/values.h"
#include "report/quantity.h"

namespace llmperf::report {
namespace {

// ---- What is special, by schema.

// What is worth a card: paths of the document.
constexpr std::pair<std::string_view, const char*> kCards[] = {
    {"validate", "summary.mape summary.median_ape summary.p90_ape summary.bias summary.roofline_mape summary.rows"},
    {"calibrate", "converged residuals.summary.mape residuals.summary.rows residual_scale"},
    {"sweep", "points failed"},
    {"mapping", "time_s bound_s of_bound bound.resource"},
    {"step_mapping", "time_s apart_s gain dram_bytes apart_dram_bytes"},
    {"graph", "time_s roof_s bound utilisation"},
    {"parallel", "plans.0.plan.text plans.0.step_s fitting legal"},
    {"limits", "capacity_bytes bandwidth_bytes_per_s compute_flops_per_s"},
    {"collective", "rows.0.algorithm rows.0.time_s rows.0.bound"},
    {"model", "parameters.total parameters.activated weight_bytes kv_bytes_per_token"},
    {"video_model", "parameters.total"},
    {"hardware", "peaks.0.flops_per_s"},
    {"replay", "phases.0.ops_time_s phases.0.whole_step.time_s phases.0.predicted_step_s"},
    {"self_test", "passed"},
    {"serve", "goodput_per_second cost_per_million_output_tokens preemptions utilisation"},
};
// Of an estimate, below its charts.
constexpr const char* kMoreFigures =
    "tokens_per_second_per_device hfu generation_utilisation largest_batch longest_context_tokens";

// A chart: of the list at a path of the document, of a phase, or of both.
struct Chart {
  std::string_view schema;
  const char* chart;
  const char* path;
  const char* phase;
  const char* title;
};
constexpr Chart kCharts[] = {{"sweep", "sweep-pareto", "pareto", "", "pareto"},  // what was asked for comes first
                             {"sweep", "sweep-heatmap", "rows", "", "heatmap"},
                             {"sweep", "sweep-pareto", "rows", "", "pareto"},
                             {"validate", "validation", "rows", "", "predicted_measured"},
                             {"parallel", "bars", "plans", "", "plans_by_time"},
                             {"collective", "bars", "rows", "", "algorithms_by_time"},
                             {"difference", "bars", "results", "", "results_by_time"},
                             {"calibrate", "bars", "residuals.groups", "", "errors_fitted"},
                             {"calibrate", "bars", "cross_validation.0.groups", "", "errors_held_out"},
                             {"graph", "time-by-op", "ops", "program", "time_by_op"},
                             {"graph", "roofline", "ops", "program", "roofline"},
                             {"mapping", "schedule", "schedule.lanes", "", "drawing"},
                             {"mapping", "bars", "mappings", "", "mappings_by_time"},
                             {"serve", "serving-timeline", "timeline", "", "serving_timeline"},
                             {"serve", "percentiles", "percentiles", "", "percentiles"},
                             {"serve", "causes", "causes", "", "causes"},
                             {"capacity", "capacity-front", "candidates", "", "capacity_front"}};

// The list that a reader came for: before the details.
constexpr std::pair<std::string_view, const char*> kLists[] = {
    {"sweep", "rows"},        {"parallel", "plans"},     {"mapping", "mappings"},
    {"step_mapping", "ops"},  {"difference", "results"}, {"difference", "inputs"},
    {"difference", "phases"}, {"serve", "slo"},          {"serve", "classes"}};

// The columns of an estimate's ops.
constexpr const char* kOpColumns[] = {"name",     "kind",    "class",        "shape",   "count", "time_s",
                                      "share",    "of_roof", "bound",        "flops",   "bytes", "network_bytes",
                                      "hidden_s", "roof_s",  "matrix_dtype", "weights", "place"};

// ---- Cards.

// "plan.text" is a plan.
std::string last_key(std::string_view path) {
  if (path.ends_with(".text")) path.remove_suffix(std::string_view(".text").size());
  return last_of(std::string(path));
}

constexpr double kMostWhole = 1e8;  // a count with more digits is too wide for a card: "46.7 B"
std::string short_count(double count) {
  if (count >= 1e12) return format_significant(count / 1e12) + " T";
  return count >= 1e9 ? format_significant(count / 1e9) + " B" : format_significant(count / 1e6) + " M";
}

class Cards {
 public:
  Cards(const Json& document, const Labels& labels) : document_(document), labels_(labels) {}

  // Two notes as one.
  std::string joined(const std::string& first, const std::string& second) const {
    return first.empty() || second.empty() ? first + second : labels_.text("two_notes", {first, second});
  }
  void add(HtmlCard card) { cards_.push_back(std::move(card)); }
  void scalar(std::string_view path, std::string note = {}) {
    const Json* value = find(document_, path);
    if (value == nullptr || !is_scalar(*value) || value->is_null()) return;
    Tone tone = Tone::plain;
    if (value->is_boolean()) tone = value->get<bool>() ? Tone::good : Tone::bad;
    if (path == "failed" && find_number(document_, path).value_or(0) > 0) tone = Tone::warn;
    std::string text = shown(*value, last_key(path), parent_of(std::string(path), {}), labels_).text;
    if (value->is_number() && value->get<double>() >= kMostWhole && text == format_count(value->get<double>())) {
      note = joined(text, note);
      text = short_count(value->get<double>());
    }
    add({labels_.title(last_key(path)), std::move(text), std::move(note), tone});
  }
  void scalars(std::string_view paths) {
    for (const std::string_view path : split(paths, ' ')) scalar(path);
  }
  // A predicted time with what such predictions were wrong by.
  void timed(std::string_view path, const std::string& band) {
    const auto mean = find_number(document_, band + ".mean_error");
    const auto most = find_number(document_, band + ".p90_error");
    const double rows = find_number(document_, band + ".rows").value_or(0);
    if (!mean || !most) return scalar(path);
    scalar(path, labels_.text(rows > 0 ? "band_note" : "band_assumed",
                              {format_share(*mean), format_share(*most), format_count(rows)}));
  }
  std::vector<HtmlCard> done() { return std::move(cards_); }

  const Json& document_;
  const Labels& labels_;

 private:
  std::vector<HtmlCard> cards_;
};

// What binds the phase that takes longest, and of every phase what does and how near it comes to the roof.
void add_bound(Cards& c) {
  std::string longest;
  std::string all;
  double most = -1;
  for (const Json& phase : list_at(c.document_, "phases")) {
    const double total = find_number(phase, "total_s").value_or(0);
    const double time = find_number(phase, "time_s").value_or(0);
    const std::string bound = c.labels_.value("bound", find_text(phase, "bound"));
    if (total > most) longest = bound;
    most = std::max(most, total);
    std::string said = bound;
    if (time > 0)
      said = c.labels_.text("bound_at", {bound, format_share(find_number(phase, "roof_s").value_or(0) / time)});
    const std::string name = c.labels_.value("name", find_text(phase, "name"));
    all = c.joined(all, c.labels_.text("one_phase", {name, said}));
  }
  if (!longest.empty()) c.add({c.labels_.text("bound"), longest, all});
}

void add_fit(Cards& c) {
  const Json* fits = find(c.document_, "fits");
  if (fits == nullptr || !fits->is_boolean()) return;
  const auto needs = find_number(c.document_, "memory.total_bytes");
  const auto has = find_number(c.document_, "memory.capacity_bytes");
  std::string note;
  if (needs && has) {
    note = c.labels_.text("needs", {format_bytes_binary(Bytes{*needs}), format_bytes_binary(Bytes{*has})});
  }
  const bool good = fits->get<bool>();
  c.add({c.labels_.text("memory"), c.labels_.text(good ? "fits_yes" : "does_not_fit"), note,
         good ? Tone::good : Tone::bad});
}

// What there is to doubt: no error is known, or it is known of other things.
void add_basis(Cards& c) {
  const Json* band = find(c.document_, "error_band");
  const bool none = band == nullptr || !band->is_object() ||
                    std::all_of(band->begin(), band->end(), [](const Json& part) { return part.is_null(); });
  const Json* times = find(c.document_, "phases");
  if (none && times != nullptr && !times->empty()) {
    c.add({c.labels_.text("error_band"), c.labels_.text("none"), c.labels_.text("band_none"), Tone::warn});
  }
  if (!is_true(c.document_, "extrapolated")) return;
  std::string why = c.labels_.sentence(find_text(c.document_, "extrapolations.0"));
  if (find(c.document_, "extrapolations.1") != nullptr) why += " …";  // all are among the assumptions
  c.add({c.labels_.text("extrapolated"), c.labels_.text("yes"), why, Tone::warn});
}

void estimate_cards(Cards& c) {
  c.timed("ttft_s", "error_band.prefill");
  c.timed("tpot_s", "error_band.decode");
  c.timed("generation_s", "error_band.generation");
  c.timed("step_s", "error_band.step");
  const auto each = find_number(c.document_, "tokens_per_second_per_request");
  const auto batch = find_number(c.document_, "inputs.batch");
  c.scalar("tokens_per_second",
           each && batch && *batch > 1 ? c.labels_.text("per_request", {format_significant(*each)}) : std::string());
  c.scalar("mfu");
  add_fit(c);
  add_bound(c);
  add_basis(c);
}

// What people ask of a service: throughput, waiting, and whether it keeps what it promises.
void serving_cards(Cards& c) {
  c.scalar("output_tokens_per_second",
           c.labels_.text("requests_rate",
                          {format_significant(find_number(c.document_, "requests_per_second").value_or(0))}));
  if (is_false(c.document_, "stable")) {
    const double growth = find_number(c.document_, "queue_growth_per_second").value_or(0);
    c.add({c.labels_.key("stable"), c.labels_.text("no"), c.labels_.text("queue_grows", {format_significant(growth)}),
           Tone::bad});
  }
  for (const std::string key : {"ttft_s", "tpot_s"}) {
    const auto median = find_number(c.document_, key + ".p50");
    const auto most = find_number(c.document_, key + ".p99");
    if (!median || !most) continue;
    c.add({c.labels_.title(key), quantity_text(key, *median),
           c.labels_.text("percentile_99", {quantity_text(key, *most)})});
  }
  if (const Json& slo = list_at(c.document_, "slo"); !slo.empty()) {
    std::string missed;
    for (const Json& bound : slo) {
      if (is_false(bound, "met")) missed = c.joined(missed, find_text(bound, "name"));
    }
    c.add({c.labels_.title("slo"), c.labels_.text(missed.empty() ? "slo_met" : "slo_missed"), missed,
           missed.empty() ? Tone::good : Tone::bad});
  }
  if (const auto peak = find_number(c.document_, "kv.peak_share")) {
    c.add({c.labels_.title("kv_share"), format_share(*peak), c.labels_.text("at_most")});
  }
  add_basis(c);
}

// "3 x tp 4"; of prompts and decode apart "4 + 2 x tp 1", or "4 x tp 1 + 2 x h200-sxm, tp 2".
std::string replicas_text(const Json& candidate, const Labels& labels) {
  const auto number = [&](const char* key) { return format_count(find_number(candidate, key).value_or(0)); };
  const std::string plan = find_text(candidate, "plan");
  const bool apart = find_number(candidate, "decode_replicas").value_or(0) > 0;
  if (const std::string own = find_text(candidate, "decode_plan"); !own.empty()) {
    const std::string hardware = find_text(candidate, "decode_hardware");
    const bool unlike = hardware != find_text(candidate, "hardware");
    return labels.text("replicas_unlike",
                       {number("replicas"), plan, number("decode_replicas"), unlike ? hardware + ", " + own : own});
  }
  return apart ? labels.text("replicas_apart", {number("replicas"), number("decode_replicas"), plan})
               : labels.text("replicas_of", {number("replicas"), plan});
}

// "12 x h100-sxm", and how they are dealt.
void candidate_card(Cards& c, const std::string& title, const Json& candidate, const std::string& note, Tone tone) {
  const std::string devices = format_count(find_number(candidate, "devices").value_or(0));
  const std::string what = c.joined(replicas_text(candidate, c.labels_), find_text(candidate, "weights"));
  std::string hardware = find_text(candidate, "hardware");
  const std::string other = find_text(candidate, "decode_hardware");
  if (!other.empty() && other != hardware) hardware += " + " + other;
  c.add({title, c.labels_.text("devices_of", {devices, hardware}), c.joined(what, note), tone});
}

// What should be bought, what it costs, what comes next, and what ends it.
void capacity_cards(Cards& c) {
  const Json* best = find(c.document_, "candidates.0");
  if (best == nullptr) return;
  if (!is_true(c.document_, "feasible")) {
    const std::string nearest =
        find_text(*best, "hardware") + ", " + find_text(*best, "plan") + ", " + find_text(*best, "weights");
    c.add({c.labels_.text("capacity_answer"), c.labels_.text("capacity_none"),
           c.labels_.text("capacity_nearest", {nearest}), Tone::bad});
    return;
  }
  candidate_card(c, c.labels_.text("capacity_answer"), *best, {}, Tone::good);
  if (const auto hour = find_number(*best, "cost_per_hour")) {
    const auto million = find_number(*best, "cost_per_million_output_tokens");
    c.add({c.labels_.title("cost_per_hour"), format_significant(*hour) + " " + find_text(*best, "currency"),
           c.labels_.text("per_million", {format_significant(million.value_or(0), 3)})});
  }
  if (const Json* next = find(c.document_, "candidates.1")) {
    if (const auto beyond = find_number(*next, "beyond_best")) {
      const std::string what = c.labels_.value("minimise", find_text(c.document_, "minimise"));
      const char* than = find_text(c.document_, "minimise") == "rate" ? "less_of" : "more_of";
      const std::string more =
          *beyond > 0 ? c.labels_.text(than, {format_share(*beyond), what}) : c.labels_.text("same_of", {what});
      candidate_card(c, c.labels_.text("runner_up"), *next, more, Tone::plain);
    }
  }
  if (find_text(*best, "binding") != "none")
    c.add({c.labels_.title("binding"), c.labels_.value("binding", find_text(*best, "binding")),
           c.labels_.text("beyond_rate",
                          {format_significant(find_number(*best, "max_requests_per_second").value_or(0), 3)})});
  if (const auto joules = find_number(*best, "joules_per_output_token"))
    c.add({c.labels_.title("joules_per_output_token"), format_significant(*joules, 3), c.labels_.text("at_most")});
  if (is_true(*best, "extrapolated"))
    c.add({c.labels_.text("extrapolated"), c.labels_.text("yes"), c.labels_.text("not_measured_on"), Tone::warn});
}

// Of several results each against the first, as many as leave the chart of all of them on the first screen.
void result_cards(Cards& c, const Json& results) {
  constexpr std::size_t kMost = 4;
  for (std::size_t i = 0; i < std::min(kMost, results.size()); ++i) {
    const Json& row = results[i];
    const auto time = find_number(row, "time_s");
    const double speed = find_number(row, "times_as_fast").value_or(1);
    const Tone tone = !time ? Tone::bad : speed > 1 ? Tone::good : speed < 1 ? Tone::warn : Tone::plain;
    c.add({find_text(row, "name"), time ? quantity_text("time_s", *time) : c.labels_.text("does_not_fit"),
           time ? c.labels_.text("factor", {c.labels_.key("times_as_fast"), format_significant(speed, 3)}) : "", tone});
  }
}

void difference_cards(Cards& c) {
  if (const Json& results = list_at(c.document_, "results"); !results.empty()) return result_cards(c, results);
  for (const Json& row : list_at(c.document_, "headline")) {
    const std::string path = find_text(row, "name");
    // "ttft_s.p99" is a time as "ttft_s" is, and says which.
    const std::size_t statistic = path.find("_s.");
    const bool of_many = statistic != std::string::npos;
    const std::string key = of_many ? path.substr(0, statistic + 2) : last_key(path);
    const auto before = find_number(row, "before");
    const auto after = find_number(row, "after");
    if (key.empty() || !before || !after) continue;
    const auto text = [&](double v) { return quantity_text(key, v, parent_of(std::string(path), {})); };
    const double change = *before != 0 ? *after / *before - 1 : 0;
    Tone tone = Tone::plain;
    const bool noise = is_true(row, "inside_error_band");
    if (key.ends_with("_s") && change != 0 && !noise) tone = change < 0 ? Tone::good : Tone::warn;
    std::string note = (change > 0 ? "+" : "") + format_share(change);
    if (noise) note = c.joined(note, c.labels_.key("inside_error_band"));
    const std::string title =
        c.labels_.title(path == "kv.peak_share" ? "kv_share" : key) + (of_many ? " " + path.substr(statistic + 3) : "");
    c.add({title, c.labels_.text("two_sides", {text(*before), text(*after)}), std::move(note), tone});
  }
}

std::vector<HtmlCard> headline_cards(const Json& document, const std::string& schema, const Labels& labels) {
  Cards cards(document, labels);
  if (schema == "estimate" || schema == "training") estimate_cards(cards);
  if (schema == "difference") difference_cards(cards);
  if (schema == "serve") serving_cards(cards);
  if (schema == "capacity") capacity_cards(cards);
  for (const auto& [of, paths] : kCards) {
    if (of == schema) cards.scalars(paths);
  }
  return cards.done();
}

// ---- The sections of an estimate.

struct Section {
  HtmlWriter& page;
  const Json& document;
  const Labels& labels;
  std::set<std::string>& done;

  const Json* take(const char* key) const {
    const Json* value = find(document, key);
    if (value == nullptr || value->is_null() || is_scalar(*value) || value->empty()) return nullptr;
    done.insert(key);
    return value;
  }
  std::string phase_name(const Json& phase) const { return labels.value("name", find_text(phase, "name")); }
  std::string of_phase(std::string_view text, const Json& phase) const {
    return labels.text("one_phase", {labels.text(text), phase_name(phase)});
  }
  void figures(const Json& phases, std::initializer_list<std::pair<const char*, const char*>> charts) const {
    page.open_figures();
    for (const Json& phase : phases) {
      for (const auto& [chart, title] : charts) page.figure(chart, find_text(phase, "name"), of_phase(title, phase));
    }
    page.close_figures();
  }
  // A list of the document as a table with a caption of its own.
  void table(const Json& rows, const char* key, const char* caption, const std::set<std::string>& skip = {}) const {
    HtmlTable table = table_of(rows, key, labels, {}, skip);
    table.caption = labels.text(caption);
    write_table(page, std::move(table), labels);
  }
};

void write_assumptions(const Section& s) {
  s.page.open_fold("section", "assumptions", s.labels.text("assumptions"));
  if (const Json* inputs = s.take("inputs")) write_object(s.page, *inputs, "inputs", 3, s.labels);
  for (const char* key : {"error_band", "extrapolations", "notes"}) {
    const Json* value = s.take(key);
    if (value == nullptr) continue;
    s.page.open_section({}, s.labels.title(key), 3);
    write_value(s.page, *value, key, 4, s.labels);
    s.page.close_section();
  }
  if (const Json* roofs = s.take("roofs")) {
    for (const auto& [key, title] : {std::pair{"memory", "memory_roofs"}, std::pair{"compute", "compute_roofs"}}) {
      if (const Json& rows = list_at(*roofs, key); !rows.empty()) s.table(rows, key, title);
    }
  }
  s.page.close_fold();
}

// Times of a phase's ops added up by what binds them, less what runs at the same time: they add up to the phase.
Json times_by_bound(const Section& s, const Json& phases) {
  Json rows = Json::array();
  for (const Json& phase : phases) {
    std::vector<std::pair<std::string, double>> times;
    double all = 0;
    for (const Json& op : list_at(phase, "ops")) {
      const std::string bound = s.labels.value("bound", find_text(op, "bound"));
      const double time = find_number(op, "time_s").value_or(0);
      all += time;
      const auto found = std::ranges::find(times, bound, &std::pair<std::string, double>::first);
      (found == times.end() ? times.emplace_back(bound, 0) : *found).second += time;
    }
    for (const char* key : {"overlapped_s", "pipelined_s"}) {
      const double saved = find_number(phase, key).value_or(0);
      if (saved != 0) times.emplace_back(s.labels.key(key), -saved);
    }
    for (const auto& [bound, time] : times) {
      rows.push_back({{"phase", s.phase_name(phase)},
                      {"bound", bound},
                      {"time_s", number(time)},
                      {"share", number(all > 0 ? time / all : 0)}});
    }
  }
  return rows;
}

// The op as a row, with its share of the phase and of its roof.
Json op_row(const Json& op, double all) {
  Json row = Json::object();
  const double time = find_number(op, "time_s").value_or(0);
  for (const std::string key : kOpColumns) {
    if (key == "share") {
      row[key] = number(all > 0 ? time / all : 0);
    } else if (key == "of_roof") {
      const auto roof = find_number(op, "roof_s");
      row[key] = roof && time > 0 ? number(*roof / time) : Json(nullptr);
    } else if (const auto value = op.find(key); value != op.end() && is_scalar(*value)) {
      row[key] = *value;
    }
  }
  return row;
}

void write_ops(const Section& s, const Json& phases) {
  s.page.open_section("ops", s.labels.text("op_table"), 2);
  for (const Json& phase : phases) {
    const Json& ops = list_at(phase, "ops");
    if (ops.empty()) continue;
    double all = 0;
    for (const Json& op : ops) all += find_number(op, "time_s").value_or(0);
    Json rows = Json::array();
    Json exchanges = Json::array();
    for (const Json& op : ops) {
      rows.push_back(op_row(op, all));
      if (const auto collective = op.find("collective"); collective != op.end() && collective->is_object()) {
        exchanges.push_back({{"name", find_text(op, "name")}});
        exchanges.back().update(*collective);
      }
    }
    s.page.open_section({}, s.phase_name(phase), 3);
    HtmlTable table = table_of(rows, "ops", s.labels);
    table.caption = s.of_phase("op_table", phase);
    write_table(s.page, std::move(table), s.labels);
    if (!exchanges.empty()) s.table(exchanges, "exchanges", "exchanges");
    s.page.close_section();
  }
  s.page.close_section();
}

// The parts of a memory, the largest part of a part left to the details below: they add up to the total.
void write_memory_table(const Section& s, const char* key) {
  const Json* memory = s.take(key);
  if (memory == nullptr || !memory->is_object()) return;
  Json rows = Json::array();
  const double capacity = find_number(*memory, "capacity_bytes").value_or(0);
  const auto add = [&](const std::string& label, double bytes) {
    rows.push_back({{"part", label}, {"size_bytes", number(bytes)}});
    if (capacity > 0) rows.back()["share"] = number(bytes / capacity);
  };
  for (const auto& [name, value] : memory->items()) {
    if (value.is_number() && name.ends_with("_bytes")) add(s.labels.key(name), value.get<double>());
  }
  const auto total = find_number(*memory, "total_bytes");
  if (total && capacity > *total) add(s.labels.text("free"), capacity - *total);
  s.table(rows, key, std::string_view(key) == "memory" ? "memory_device" : "memory_host");
}

void write_estimate(const Section& s) {
  const Json& phases = list_at(s.document, "phases");
  const bool timed = !phases.empty();
  if (timed) {
    s.figures(phases, {{"time-by-op", "time_by_op"}, {"roofline", "roofline"}});
    s.figures(phases, {{"timeline", "timeline"}});
    s.figures(phases, {{"time-by-bound", "time_by_bound"}});
  }
  Cards more(s.document, s.labels);
  more.scalars(kMoreFigures);
  s.page.cards(more.done());
  const Json* curve = s.take("context_curve");
  s.page.open_figures();
  s.page.figure("memory", {}, s.labels.text("memory_device"));
  if (curve != nullptr) s.page.figure("context", {}, s.labels.text("context_caption"));
  s.page.close_figures();
  if (timed) write_ops(s, phases);

  write_assumptions(s);
  s.page.open_fold("section", "time", s.labels.text("time"));
  if (timed) {
    s.done.insert("phases");
    s.table(phases, "phases", "phases", {"ops"});
    s.table(times_by_bound(s, phases), "time-by-bound", "time_by_bound");
  }
  if (const Json* classes = s.take("classes")) write_value(s.page, *classes, "classes", 3, s.labels);
  s.page.close_fold();
  s.page.open_fold("section", "memory", s.labels.text("memory"));
  write_memory_table(s, "memory");
  write_memory_table(s, "host_memory");
  if (const Json* stages = s.take("stages")) write_value(s.page, *stages, "stages", 3, s.labels);
  if (curve != nullptr && is_list_of_objects(*curve)) s.table(*curve, "context_curve", "context_caption");
  s.page.close_fold();
}

// ---- The candidates of a capacity: those that meet the bounds with what they cost and how quick they are, then why
// the others do not.

// A candidate as a row: `at` has the bounded statistics by their names, "tpot_p99_s".
Json candidate_row(const Json& candidate, bool meets, const Labels& labels) {
  Json row = Json::object();
  const auto take = [&](std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
      if (const auto value = candidate.find(key); value != candidate.end() && is_scalar(*value)) row[key] = *value;
    }
  };
  const auto bounds = [&] {
    for (const Json& bound : list_at(candidate, "at.slo")) {
      const auto value = find_number(bound, "value_s");
      row[find_text(bound, "metric") + "_" + find_text(bound, "statistic") + "_s"] = value ? number(*value) : Json();
    }
  };
  if (!meets) {
    take({"hardware", "plan", "weights", "engine", "binding", "cause", "why", "ceiling_requests_per_second"});
    if (const auto most = find_number(candidate, "max_requests_per_second"); most && *most > 0)
      row["max_requests_per_second"] = number(*most);
    bounds();
    return row;
  }
  take({"hardware"});
  row["replicas"] = replicas_text(candidate, labels);
  take(
      {"fleet_requests_per_second", "cost_per_hour", "weights", "engine", "devices", "cost_per_million_output_tokens"});
  take({"tokens_per_second_per_user", "tokens_per_second_per_device"});
  bounds();
  take({"max_requests_per_second", "binding", "beyond_best", "pareto"});
  for (const char* key : {"ttft_mean_s", "tpot_mean_s", "e2e_mean_s", "mean_batch", "utilisation"}) {
    if (const auto value = find_number(candidate, std::string("at.") + key)) row[key] = number(*value);
  }
  take({"power_w", "joules_per_output_token", "runtime", "extrapolated"});
  return row;
}

void write_candidates(const Section& s) {
  const Json* all = s.take("candidates");
  if (all == nullptr || !is_list_of_objects(*all)) return;
  Json met = Json::array();
  Json others = Json::array();
  for (const Json& candidate : *all) {
    const bool yes = is_true(candidate, "meets");
    (yes ? met : others).push_back(candidate_row(candidate, yes, s.labels));
  }
  if (!met.empty()) {
    s.page.open_section("candidates", s.labels.text("capacity_met"), 2);
    write_table(s.page, table_of(met, "candidates", s.labels), s.labels);
    s.page.close_section();
  }
  if (others.empty()) return;
  const std::string title = s.labels.text(met.empty() ? "capacity_none" : "capacity_others");
  met.empty() ? s.page.open_section("others", title, 2) : s.page.open_fold("section", "others", title);
  HtmlTable table = table_of(others, "others", s.labels);
  table.caption = s.labels.text("capacity_others");
  write_table(s.page, std::move(table), s.labels);
  met.empty() ? s.page.close_section() : s.page.close_fold();
}

// ---- The sections of a study: its words, commands and tables.

constexpr std::size_t kMostCommands = 4;  // the others differ in a flag

void write_paragraphs(const Section& s, const char* key) {
  const Json* texts = find(s.document, key);
  if (!is_list_of_texts(texts)) return;
  s.done.insert(key);
  for (const Json& text : *texts) s.page.paragraph(text.get<std::string>());
}

void write_commands(const Section& s) {
  const Json* commands = find(s.document, "commands");
  if (!is_list_of_texts(commands)) return;
  s.done.insert("commands");
  const std::size_t count = std::min(commands->size(), kMostCommands);
  for (std::size_t i = 0; i < count; ++i) s.page.command((*commands)[i].get<std::string>());
  if (count < commands->size()) {
    const std::string text = s.labels.text("first_rows", {std::to_string(count), std::to_string(commands->size())});
    s.page.paragraph(s.labels.text("one_phase", {s.labels.title("commands"), text}));
  }
}

// Rows of cells that `columns` name, as a list of objects; null where they are none. Empty cells are shown as such.
Json named_rows(const Json& section) {
  const Json* columns = find(section, "columns");
  const Json* rows = find(section, "rows");
  if (!is_list_of_texts(columns) || rows == nullptr || !rows->is_array()) return nullptr;
  Json named = Json::array();
  for (const Json& row : *rows) {
    if (!row.is_array() || !std::all_of(row.begin(), row.end(), is_scalar)) return nullptr;
    Json& object = named.emplace_back(Json::object());
    for (std::size_t c = 0; c < std::min(row.size(), columns->size()); ++c) object[(*columns)[c]] = row[c];
  }
  return named;
}

void write_study_section(const Section& s, std::size_t index) {
  std::string title = find_text(s.document, "title");
  if (title.empty()) title = s.labels.title("sections") + " " + std::to_string(index + 1);
  s.done.merge(std::set<std::string>{"name", "title"});
  s.page.open_section("section-" + std::to_string(index + 1), title, 2);
  write_paragraphs(s, "text");
  if (find_number(s.document, "status") == 0.0) s.done.insert("status");  // any other is among the fields
  if (const Json rows = named_rows(s.document); !rows.is_null()) {
    s.done.merge(std::set<std::string>{"columns", "rows"});
    if (rows.size() > 1) s.page.figure("table", {}, title, "sections." + std::to_string(index));
    HtmlTable table = table_of(rows, "rows", s.labels);
    table.name = find_text(s.document, "name");
    table.caption = title;
    for (std::vector<HtmlCell>& row : table.rows) {
      for (HtmlCell& cell : row) cell.text = cell.text.empty() ? "-" : cell.text;
    }
    s.page.table(table);
  }
  write_commands(s);
  write_paragraphs(s, "notes");
  write_object(s.page, s.document, "sections", 3, s.labels, s.done);
  s.page.close_section();
}

void write_study(const Section& s) {
  s.done.insert("title");
  write_paragraphs(s, "description");
  const Json& sections = list_at(s.document, "sections");
  if (!sections.empty()) s.done.insert("sections");
  for (std::size_t i = 0; i < sections.size(); ++i) {
    std::set<std::string> done;
    write_study_section({s.page, sections[i], s.labels, done}, i);
  }
}

// ---- Any other page.

void write_charts(const Section& s, const std::string& schema) {
  bool open = false;
  bool pareto = false;
  const auto figure = [&](const char* chart, const std::string& phase, const std::string& title, const char* rows) {
    if (!std::exchange(open, true)) s.page.open_figures();
    s.page.figure(chart, phase, title, rows);
  };
  for (const Chart& c : kCharts) {
    const Json* data = find(s.document, c.path);
    const bool front = std::string_view(c.chart) == "sweep-pareto";
    if (c.schema != schema || data == nullptr || !data->is_structured() || data->empty() || (front && pareto)) continue;
    pareto = pareto || front;
    figure(c.chart, c.phase, s.labels.text(c.title), c.path);
  }
  for (const Json& phase : list_at(s.document, "phases")) {
    if (schema == "difference") figure("compare", find_text(phase, "name"), s.of_phase("differences", phase), "");
  }
  if (open) s.page.close_figures();
  const std::string svg = find_text(s.document, "drawing_svg");
  if (!svg.empty()) s.page.svg_image(svg, s.labels.text("drawing"), !html_assets().script.empty());
}

// The numbers of several results beside each other. Below stands each against the first, but the first itself.
void write_side_by_side(const Section& s, Json results) {
  HtmlTable table{"headline", s.labels.list_title("headline"), {{"name", s.labels.key("name"), false}}, {}};
  for (const Json& result : results) {
    table.columns.push_back({"after", find_text(result, "name"), true});
    const Json& list = list_at(result, "headline");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string path = find_text(list[i], "name");
      const Json* after = find(list[i], "after");
      if (i == table.rows.size()) table.rows.push_back({{s.labels.title(last_key(path)), {}}});
      table.rows[i].resize(table.columns.size() - 1);  // results before it may say less
      table.rows[i].push_back(shown(after != nullptr && is_scalar(*after) ? *after : Json(), last_key(path),
                                    parent_of(path, {}), s.labels));
    }
  }
  s.page.table(table);
  results.erase(0);
  write_value(s.page, results, "results", 3, s.labels);
}

void write_lists(const Section& s, const std::string& schema) {
  for (const auto& [of, key] : kLists) {
    const Json* list = of == schema ? s.take(key) : nullptr;
    if (list == nullptr) continue;
    s.page.open_section(key, s.labels.list_title(key), 2);
    if (schema == "sweep" && is_list_of_objects(*list)) {
      // What was asked for, then what came out of it, then what it rests on.
      std::vector<std::string> leading;
      for (const auto& [from, name] : {std::pair{"axes", "column"}, std::pair{"columns", "name"}}) {
        for (const Json& c : list_at(s.document, from)) {
          if (from == std::string_view("axes") || !find_text(c, "better").empty())
            leading.push_back(find_text(c, name));
        }
      }
      write_table(s.page, table_of(*list, key, s.labels, leading), s.labels);
    } else if (key == std::string_view("results") && is_list_of_objects(*list)) {
      write_side_by_side(s, *list);
    } else {
      write_value(s.page, *list, key, 3, s.labels);
    }
    s.page.close_section();
  }
}

}  // namespace

void write_page(HtmlWriter& page, const Json& document, const Labels& labels) {
  std::string schema = find_text(document, "schema");
  schema.erase(0, std::string_view("llmperf.").size());
  const HtmlAssets& assets = html_assets();
  if (assets.script.empty()) {
    page.paragraph(labels.text("charts_missing", {std::string(assets.missing)}), "no-charts");
  } else {
    page.without_script(labels.text("charts_need_script"));
  }
  page.cards(headline_cards(document, schema, labels));
  std::set<std::string> done = {"schema", "schema_version", "tool", "command", "request", "drawing_svg"};
  // Every bar of a schedule, every point that is beaten: drawn, and in the document.
  if (schema == "mapping") done.insert("schedule");
  if (schema == "sweep") done.insert({"columns", "pareto"});
  const std::size_t known = done.size();
  const Section s{page, document, labels, done};
  if (schema == "estimate" || schema == "training") {
    write_estimate(s);
  } else if (schema == "study") {
    write_study(s);
  } else {
    write_charts(s, schema);
    write_lists(s, schema);
    if (schema == "capacity") write_candidates(s);
  }
  if (std::any_of(document.items().begin(), document.items().end(),
                  [&](const auto& m) { return !done.contains(m.key()); })) {
    // Folded where all that a reader came for has been shown.
    const bool folded = done.size() > known;
    folded ? page.open_fold("section", "details", labels.text("details"))
           : page.open_section("details", labels.text("details"), 2);
    write_object(page, document, {}, 3, labels, done);
    folded ? page.close_fold() : page.close_section();
  }
  if (const std::string command = find_text(document, "command"); !command.empty()) {
    page.open_section("reproduce", labels.text("reproduce"), 2);
    page.command(command);
    page.close_section();
  }
}

}  // namespace llmperf::report
