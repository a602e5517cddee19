#include "report/html_cards.h"

#include <algorithm>

#include "base/number.h"

namespace llmperf::report {
namespace {

// Of documents without phases of their own: what is worth a card, by schema.
struct Card {
  std::string_view schema;
  std::string_view path;
};
constexpr Card kCards[] = {
    {"llmperf.validate", "summary.mape"},
    {"llmperf.validate", "summary.median_ape"},
    {"llmperf.validate", "summary.p90_ape"},
    {"llmperf.validate", "summary.bias"},
    {"llmperf.validate", "summary.roofline_mape"},
    {"llmperf.validate", "summary.rows"},
    {"llmperf.calibrate", "converged"},
    {"llmperf.calibrate", "residuals.summary.mape"},
    {"llmperf.calibrate", "residuals.summary.rows"},
    {"llmperf.calibrate", "residual_scale"},
    {"llmperf.sweep", "points"},
    {"llmperf.sweep", "failed"},
    {"llmperf.mapping", "time_s"},
    {"llmperf.mapping", "bound_s"},
    {"llmperf.mapping", "of_bound"},
    {"llmperf.mapping", "bound.resource"},
    {"llmperf.graph", "time_s"},
    {"llmperf.graph", "roof_s"},
    {"llmperf.graph", "bound"},
    {"llmperf.graph", "utilisation"},
    {"llmperf.parallel", "plans.0.plan.text"},
    {"llmperf.parallel", "plans.0.step_s"},
    {"llmperf.parallel", "fitting"},
    {"llmperf.parallel", "legal"},
    {"llmperf.limits", "capacity_bytes"},
    {"llmperf.limits", "bandwidth_bytes_per_s"},
    {"llmperf.limits", "compute_flops_per_s"},
    {"llmperf.collective", "rows.0.algorithm"},
    {"llmperf.collective", "rows.0.time_s"},
    {"llmperf.collective", "rows.0.bound"},
    {"llmperf.model", "parameters.total"},
    {"llmperf.model", "parameters.activated"},
    {"llmperf.model", "weight_bytes"},
    {"llmperf.model", "kv_bytes_per_token"},
    {"llmperf.video_model", "parameters.total"},
    {"llmperf.hardware", "peaks.0.flops_per_s"},
    {"llmperf.replay", "phases.0.ops_time_s"},
    {"llmperf.replay", "phases.0.whole_step.time_s"},
    {"llmperf.replay", "phases.0.predicted_step_s"},
    {"llmperf.self_test", "passed"},
};

// "plan.text" is a plan.
std::string last_key(std::string_view path) {
  if (path.ends_with(".text")) path.remove_suffix(std::string_view(".text").size());
  return std::string(path.substr(path.rfind('.') + 1));
}

constexpr double kMostWhole = 1e8;  // a count with more digits is too wide for a card: "46.7 B"
std::string short_count(double count) {
  if (count >= 1e12) return format_significant(count / 1e12) + " T";
  return count >= 1e9 ? format_significant(count / 1e9) + " B" : format_significant(count / 1e6) + " M";
}

// Of what the value at the path is a part: "memory" of "memory.weight_bytes".
std::string_view parent_key(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  path = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
  return path.substr(path.rfind('.') + 1);
}

class Cards {
 public:
  Cards(const Json& document, const Labels& labels) : document_(document), labels_(labels) {}

  std::string shown_at(std::string_view path) const {
    const Json* value = find(document_, path);
    return value == nullptr || !is_scalar(*value) ? std::string()
                                                  : shown(*value, last_key(path), parent_key(path), labels_).text;
  }
  bool has(std::string_view path) const {
    const Json* value = find(document_, path);
    return value != nullptr && is_scalar(*value) && !value->is_null();
  }
  // Two notes as one.
  std::string joined(const std::string& first, const std::string& second) const {
    return first.empty() || second.empty() ? first + second : labels_.text("two_notes", {first, second});
  }
  void add(HtmlCard card) { cards_.push_back(std::move(card)); }
  void scalar(std::string_view path, std::string note = {}) {
    if (!has(path)) return;
    const Json& value = *find(document_, path);
    Tone tone = Tone::plain;
    if (value.is_boolean()) tone = value.get<bool>() ? Tone::good : Tone::bad;
    if (path == "failed" && find_number(document_, path).value_or(0) > 0) tone = Tone::warn;
    std::string text = shown_at(path);
    if (value.is_number() && value.get<double>() >= kMostWhole && text == format_count(value.get<double>())) {
      note = joined(text, note);
      text = short_count(value.get<double>());
    }
    add({labels_.title(last_key(path)), std::move(text), std::move(note), tone});
  }
  // A predicted time with what such predictions were wrong by.
  void timed(std::string_view path, const std::string& band) {
    const auto mean = find_number(document_, band + ".mean_error");
    const auto most = find_number(document_, band + ".p90_error");
    const auto rows = find_number(document_, band + ".rows");
    if (!mean || !most) return scalar(path);
    const std::vector<std::string> places = {format_share(*mean), format_share(*most), format_count(rows.value_or(0))};
    scalar(path, labels_.text(rows.value_or(0) > 0 ? "band_note" : "band_assumed", places));
  }
  std::vector<HtmlCard> done() { return std::move(cards_); }

  const Json& document_;
  const Labels& labels_;

 private:
  std::vector<HtmlCard> cards_;
};

// "prefill: matrix; decode: memory", the phase that takes longest as the card's value.
struct PhaseNote {
  std::string longest;
  std::string all;
};
template <class Text>
PhaseNote of_phases(const Cards& c, Text&& text) {
  PhaseNote note;
  double most = -1;
  const Json* phases = find(c.document_, "phases");
  if (phases == nullptr || !is_list_of_objects(*phases)) return note;
  for (const Json& phase : *phases) {
    const std::string said = text(phase);
    if (said.empty()) continue;
    const double time = find_number(phase, "total_s").value_or(0);
    if (time > most) note.longest = said;
    most = std::max(most, time);
    const std::string name = c.labels_.value("name", find_text(phase, "name"));
    note.all = c.joined(note.all, c.labels_.text("one_phase", {name, said}));
  }
  return note;
}

void add_bounds(Cards& c) {
  const PhaseNote bound = of_phases(c, [&](const Json& p) { return c.labels_.value("bound", find_text(p, "bound")); });
  if (!bound.longest.empty()) c.add({c.labels_.text("bound"), bound.longest, bound.all});
  const PhaseNote roof = of_phases(c, [](const Json& p) {
    const double time = find_number(p, "time_s").value_or(0);
    const double roof_s = find_number(p, "roof_s").value_or(0);
    return time > 0 ? format_share(roof_s / time) : std::string();
  });
  if (!roof.longest.empty()) c.add({c.labels_.text("of_roof"), roof.longest, roof.all});
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

void add_basis(Cards& c) {
  const Json* band = find(c.document_, "error_band");
  const bool none = band == nullptr || !band->is_object() ||
                    std::all_of(band->begin(), band->end(), [](const Json& part) { return part.is_null(); });
  const Json* times = find(c.document_, "phases");
  const bool timed = times != nullptr && !times->empty();
  if (none && timed) {
    c.add({c.labels_.text("error_band"), c.labels_.text("none"), c.labels_.text("band_none"), Tone::warn});
  }
  const Json* extrapolated = find(c.document_, "extrapolated");
  if (extrapolated != nullptr && extrapolated->is_boolean() && extrapolated->get<bool>()) {
    std::string why;
    if (const Json* ways = find(c.document_, "extrapolations"); ways != nullptr && ways->is_array()) {
      for (const Json& way : *ways) why = c.joined(why, way.is_string() ? way.get<std::string>() : std::string());
    }
    c.add({c.labels_.text("extrapolated"), c.labels_.text("yes"), why, Tone::warn});
  }
}

void estimate_cards(Cards& c) {
  c.timed("ttft_s", "error_band.prefill");
  c.timed("tpot_s", "error_band.decode");
  c.timed("generation_s", "error_band.generation");
  c.scalar("step_s");
  const std::string each = c.has("tokens_per_second_per_request") ? "tokens_per_second_per_request" : "";
  c.scalar("tokens_per_second",
           each.empty() ? std::string() : c.labels_.text("per_request", {c.shown_at("tokens_per_second_per_request")}));
  c.scalar("tokens_per_second_per_device");
  c.scalar("mfu");
  c.scalar("hfu");
  c.scalar("generation_utilisation");
  add_bounds(c);
  add_fit(c);
  c.scalar("largest_batch");
  c.scalar("longest_context_tokens");
  add_basis(c);
}

void difference_cards(Cards& c) {
  const Json* rows = find(c.document_, "headline");
  if (rows == nullptr || !is_list_of_objects(*rows)) return;
  for (const Json& row : *rows) {
    const std::string path = find_text(row, "name");
    const std::string key = last_key(path);
    const auto before = find_number(row, "before");
    const auto after = find_number(row, "after");
    if (key.empty() || !before || !after) continue;
    const auto text = [&](double v) { return shown(number(v), key, parent_key(path), c.labels_).text; };
    const double change = *before != 0 ? *after / *before - 1 : 0;
    Tone tone = Tone::plain;
    const Json* inside = find(row, "inside_error_band");
    const bool noise = inside != nullptr && inside->is_boolean() && inside->get<bool>();
    if (key.ends_with("_s") && change != 0 && !noise) tone = change < 0 ? Tone::good : Tone::warn;
    std::string note = (change > 0 ? "+" : "") + format_share(change);
    if (noise) note = c.joined(note, c.labels_.key("inside_error_band"));
    c.add({c.labels_.title(key), text(*before) + " → " + text(*after), std::move(note), tone});
  }
}

}  // namespace

std::vector<HtmlCard> headline_cards(const Json& document, const Labels& labels) {
  Cards cards(document, labels);
  const std::string schema = find_text(document, "schema");
  if (schema == "llmperf.estimate" || schema == "llmperf.training") {
    estimate_cards(cards);
  } else if (schema == "llmperf.difference") {
    difference_cards(cards);
  } else {
    for (const Card& card : kCards) {
      if (card.schema == schema) cards.scalar(card.path);
    }
  }
  return cards.done();
}

}  // namespace llmperf::report
