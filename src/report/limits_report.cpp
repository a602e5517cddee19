#include "report/limits_report.h"

#include <fmt/format.h>

#include <cmath>

#include "base/number.h"
#include "report/json.h"

namespace llmperf::report {
namespace {

using cost::Inflection;
using cost::LimitCounts;
using cost::Limits;
using cost::UnitConvention;

// Counts as the unit convention writes them: 6.03 (2^30) or 6.476 (10^9). The exact ones are in the CSV and JSON
// outputs.
std::string parameters(std::int64_t n, UnitConvention units) {
  if (units == UnitConvention::article) return fmt::format("{:.2f}", static_cast<double>(n) / kGiB);
  return fmt::format("{:.3f}", static_cast<double>(n) / 1e9);
}

// An end of the compute-bound range. Without any: no length is compute bound ("none"), or every one is ("all").
std::string tokens(const std::optional<double>& n, const Inflection& range) {
  if (n) return format_count(std::floor(*n));
  return range.compute_bound_at_zero && !range.first && !range.second ? "all" : "none";
}

std::string kv_tokens(const Limits& l) { return l.kv_tokens ? format_count(static_cast<double>(*l.kv_tokens)) : "oom"; }

std::string kv_values(double values, UnitConvention units) {
  return units == UnitConvention::article ? format_significant(values / kMiB, 7) : format_count(values);
}

Table parameter_table(const std::vector<ModelLimits>& models, UnitConvention units) {
  const bool article = units == UnitConvention::article;
  Table t{article ? "Parameters in 2^30, KV cache in 2^20 values" : "Parameters in 10^9, KV cache in values",
          {{"model", true}, {"layers"}, {"lm_head"}, {"activated"}, {"total"}, {"KV / token"}, {"KV / 1024"}},
          {}};
  for (const ModelLimits& m : models) {
    const LimitCounts& c = m.limits.front().counts;
    const double kv = static_cast<double>(c.kv_values_per_token);
    t.rows.push_back({m.model, parameters(c.decoder_layers, units), parameters(c.lm_head, units),
                      parameters(c.activated, units), parameters(c.total, units), kv_values(kv, units),
                      kv_values(1024 * kv, units)});
  }
  return t;
}

Table limit_table(const std::vector<ModelLimits>& models) {
  Table t{
      "Limits (a prefill between two prompt lengths is bound by compute; token n takes (n - 1) / W + B)",
      {{"model", true}, {"precision", true}, {"KV tokens"}, {"rough"}, {"to"}, {"exact"}, {"to"}, {"W [1/ms]"}, {"B"}},
      {}};
  for (const ModelLimits& m : models) {
    for (const Limits& l : m.limits) {
      t.rows.push_back({m.model, l.precision.label, kv_tokens(l), tokens(l.rough.first, l.rough),
                        tokens(l.rough.second, l.rough), tokens(l.exact.first, l.exact),
                        tokens(l.exact.second, l.exact), fmt::format("{:.0f}", l.decode_tokens_per_ms),
                        fmt::format("{:.2f} ms", l.decode_base.value * 1e3)});
    }
  }
  return t;
}

// What the first inflection point means for serving, in one sentence per model and precision.
std::vector<std::string> consequences(const std::vector<ModelLimits>& models) {
  std::vector<std::string> lines;
  if (models.size() > 1 || models.front().limits.size() > 3) return lines;
  for (const Limits& l : models.front().limits) {
    const std::optional<double> chunk = free_chunk(l);
    lines.push_back(
        chunk ? fmt::format(
                    "{}: below {} prompt tokens a prefill only waits for the weights, do not split it; a "
                    "first chunk of at least that length costs nothing extra (later ones also read the cache again)",
                    l.precision.label, format_count(std::ceil(*chunk)))
              : fmt::format("{}: reading takes longer than computing at every prompt length, so no chunk is free",
                            l.precision.label));
  }
  return lines;
}

Document document(const std::vector<ModelLimits>& models, const hardware::Device& device) {
  const Limits& first = models.front().limits.front();
  const bool article = first.rates.units == UnitConvention::article;
  Document doc{
      Heading{"Single-user limits on " + device.title, "closed form, uncalibrated"},
      Paragraph{fmt::format("{} units: memory {}, bandwidth {}, compute {} ({} {}, {})", cost::name(first.rates.units),
                            format_bytes_binary(first.rates.capacity), format_bandwidth(first.rates.bandwidth),
                            format_flops_rate(first.rates.compute), hardware::name(first.rates.peak.engine),
                            name(first.rates.peak.dtype), hardware::name(first.rates.peak.provenance))},
      parameter_table(models, first.rates.units), limit_table(models)};
  if (article) {
    doc.push_back(Paragraph{
        "Article units count K = 1024 throughout: GB/s and TFLOP/s of the datasheet are read as 2^30 and 2^40."});
  }
  Fields notes;
  for (const std::string& line : consequences(models)) notes.rows.emplace_back("chunked prefill", line);
  for (const ModelLimits& m : models) {
    for (const std::string& note : m.limits.front().notes) notes.rows.emplace_back(m.model, note);
  }
  if (!notes.rows.empty()) doc.push_back(notes);
  return doc;
}

// Key and value pairs of one row, for JSON and CSV alike.
Json row_json(const std::string& model, const Limits& l) {
  const LimitCounts& c = l.counts;
  const auto truncated = [](const std::optional<double>& n) { return n ? number(std::floor(*n)) : Json(nullptr); };
  const double kv = static_cast<double>(c.kv_values_per_token);
  Json json = {{"model", model},
               {"precision", l.precision.label},
               {"units", std::string(cost::name(l.rates.units))},
               {"decoder_layers_parameters", c.decoder_layers},
               {"lm_head_parameters", c.lm_head},
               {"activated_parameters", c.activated},
               {"total_parameters", c.total},
               {"kv_values_per_token", c.kv_values_per_token},
               {"kv_bytes_per_token", number(l.kv_per_token)},
               {"kv_bytes_per_1024_tokens", number(l.kv_per_token * 1024)},
               {"kv_tokens_that_fit", l.kv_tokens ? Json(*l.kv_tokens) : Json(nullptr)},
               {"prefill_rough_first_tokens", truncated(l.rough.first)},
               {"prefill_rough_second_tokens", truncated(l.rough.second)},
               {"prefill_exact_first_tokens", truncated(l.exact.first)},
               {"prefill_exact_second_tokens", truncated(l.exact.second)},
               {"shortest_prompt_bound", l.exact.compute_bound_at_zero ? "compute" : "memory"},
               {"decode_W_tokens_per_ms", number(l.decode_tokens_per_ms)},
               {"decode_B_s", number(l.decode_base)}};
  if (l.rates.units == UnitConvention::article) {
    const auto giga = [](std::int64_t n) { return number(static_cast<double>(n) / kGiB); };
    json["decoder_layers_GiParams"] = giga(c.decoder_layers);
    json["lm_head_GiParams"] = giga(c.lm_head);
    json["activated_GiParams"] = giga(c.activated);
    json["total_GiParams"] = giga(c.total);
    json["kv_MiParams_per_token"] = number(kv / kMiB);
    json["kv_MiParams_per_1024_tokens"] = number(1024 * kv / kMiB);
    json["decode_B_ms"] = number(l.decode_base.value * 1e3);
  }
  return json;
}

void add_speculation(const SpeculativeStudy& study, const std::string& target, Document& doc, Json& json) {
  const estimate::Speculation& s = study.speculation;
  Fields f{fmt::format("Speculative decoding: {} ({}) drafts for {} ({})", study.draft, study.draft_weights, target,
                       study.target_weights),
           {{"acceptance",
             fmt::format("{} per draft token, batch {}, {} cached tokens", format_significant(s.scenario.acceptance),
                         s.scenario.batch, format_count(static_cast<double>(s.scenario.context)))},
            {"plain decoding", format_seconds(s.target_step) + " per token"},
            {"best draft length", s.best() ? fmt::format("{}: {:.2f} times faster, {} per token", s.best_length,
                                                         s.best_speedup, format_seconds(s.best()->time_per_token()))
                                           : std::string("none: no draft length is faster than plain decoding")},
            {"memory", fmt::format("both models need {} of {}: {}", format_bytes_binary(s.memory),
                                   format_bytes_binary(s.capacity), s.fits ? "fits" : "does NOT fit on one device")}}};
  for (const std::string& note : s.notes) f.rows.emplace_back("note", note);
  Table t{"", {{"draft length"}, {"tokens / round"}, {"draft"}, {"verify"}, {"per token"}, {"speed-up"}}, {}};
  Json rounds = Json::array();
  for (const estimate::SpeculativeRound& r : s.rounds) {
    if (r.length <= 8 || r.length % 8 == 0 || r.length == s.best_length) {
      t.rows.push_back({std::to_string(r.length), fmt::format("{:.2f}", r.expected_tokens), format_seconds(r.draft),
                        format_seconds(r.verify), format_seconds(r.time_per_token()),
                        fmt::format("{:.2f}", r.speedup)});
    }
    rounds.push_back({{"draft_length", r.length},
                      {"expected_tokens", number(r.expected_tokens)},
                      {"draft_s", number(r.draft)},
                      {"verify_s", number(r.verify)},
                      {"speedup", number(r.speedup)}});
  }
  doc.push_back(f);
  doc.push_back(t);
  json["speculation"] = {{"draft", study.draft},
                         {"draft_weights", study.draft_weights},
                         {"target_weights", study.target_weights},
                         {"acceptance", number(s.scenario.acceptance)},
                         {"batch", s.scenario.batch},
                         {"context_tokens", s.scenario.context},
                         {"target_step_s", number(s.target_step)},
                         {"best_draft_length", s.best_length},
                         {"best_speedup", number(s.best_speedup)},
                         {"memory_bytes", number(s.memory)},
                         {"fits", s.fits},
                         {"rounds", rounds}};
}

}  // namespace

Report limits_report(const std::vector<ModelLimits>& models, const hardware::Device& device,
                     const std::optional<SpeculativeStudy>& study) {
  Json rows = Json::array();
  for (const ModelLimits& m : models) {
    for (const Limits& l : m.limits) rows.push_back(row_json(m.model, l));
  }
  const Limits& first = models.front().limits.front();
  Json json = json_header("llmperf.limits");
  json["label"] = "closed form, uncalibrated";
  json["hardware"] = device.name;
  json["units"] = std::string(cost::name(first.rates.units));
  json["capacity_bytes"] = number(first.rates.capacity);
  json["bandwidth_bytes_per_s"] = number(first.rates.bandwidth);
  json["compute_flops_per_s"] = number(first.rates.compute);
  json["rows"] = rows;
  json["notes"] = Json::array();
  for (const ModelLimits& m : models) {
    for (const std::string& note : m.limits.front().notes) json["notes"].push_back(m.model + ": " + note);
  }
  Document doc = document(models, device);
  if (study) add_speculation(*study, models.front().model, doc, json);
  return {std::move(doc), csv_of(rows), dump(json)};
}

}  // namespace llmperf::report
