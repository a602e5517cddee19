// `llmperf limits`.
#include "result/limits.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "base/integer.h"
#include "base/number.h"
#include "report/reports.h"
#include "report/rows.h"
#include "result/basis.h"
#include "result/document.h"

namespace llmperf::report {
namespace {

using cost::UnitConvention;

// Counts as the unit convention writes them: 6.03 (2^30) or 6.476 (10^9). The exact ones are in the CSV and JSON
// outputs.
std::string parameters_text(std::int64_t n, UnitConvention units) {
  return units == UnitConvention::article ? fmt::format("{:.2f}", d(n) / kGiB) : fmt::format("{:.3f}", d(n) / 1e9);
}

std::string kv_values(double values, UnitConvention units) {
  return units == UnitConvention::article ? format_significant(values / kMiB, 7) : format_count(values);
}

// An end of the compute-bound range. Without any: no length is compute bound ("none"), or every one is ("all").
std::string end_text(const std::optional<double>& n, const cost::Inflection& range) {
  if (n) return format_count(std::floor(*n));
  return range.compute_bound_at_zero && !range.first && !range.second ? "all" : "none";
}

Table counts_table(const Limits& limits) {
  const UnitConvention units = limits.rates().units;
  Table t{units == UnitConvention::article ? "Parameters in 2^30, KV cache in 2^20 values"
                                           : "Parameters in 10^9, KV cache in values",
          {{"model", true}, {"layers"}, {"lm_head"}, {"activated"}, {"total"}, {"KV / token"}, {"KV / 1024"}},
          {}};
  for (const ModelLimits& m : limits.models) {
    const cost::LimitCounts& c = m.limits.front().counts;
    const double kv = d(c.kv_values_per_token);
    t.rows.push_back({m.model, parameters_text(c.decoder_layers, units), parameters_text(c.lm_head, units),
                      parameters_text(c.activated, units), parameters_text(c.total, units), kv_values(kv, units),
                      kv_values(1024 * kv, units)});
  }
  return t;
}

Table limit_table(const Limits& limits) {
  Table t{
      "Limits (a prefill between two prompt lengths is bound by compute; token n takes (n - 1) / W + B)",
      {{"model", true}, {"precision", true}, {"KV tokens"}, {"rough"}, {"to"}, {"exact"}, {"to"}, {"W [1/ms]"}, {"B"}},
      {}};
  for (const LimitsRow& row : limits.rows()) {
    const cost::Limits& l = *row.limits;
    t.rows.push_back({*row.model, l.precision.label, l.kv_tokens ? format_count(d(*l.kv_tokens)) : "oom",
                      end_text(l.rough.first, l.rough), end_text(l.rough.second, l.rough),
                      end_text(l.exact.first, l.exact), end_text(l.exact.second, l.exact),
                      fmt::format("{:.0f}", l.decode_tokens_per_ms),
                      fmt::format("{:.2f} ms", l.decode_base.value * 1e3)});
  }
  return t;
}

// What the first inflection point means for serving, in one sentence per model and precision; and the notes.
Fields remarks_on(const Limits& limits) {
  Fields f;
  if (limits.models.size() == 1 && limits.models.front().limits.size() <= 3) {
    for (const cost::Limits& l : limits.models.front().limits) {
      const std::optional<double> chunk = free_chunk(l);
      f.add("chunked prefill",
            chunk
                ? fmt::format(
                      "{}: below {} prompt tokens a prefill only waits for the weights, do not split it; a "
                      "first chunk of at least that length costs nothing extra (later ones also read the cache again)",
                      l.precision.label, format_count(std::ceil(*chunk)))
                : fmt::format("{}: reading takes longer than computing at every prompt length, so no chunk is free",
                              l.precision.label));
    }
  }
  for (const ModelLimits& m : limits.models) {
    for (const std::string& note : m.limits.front().notes) f.add(m.model, note);
  }
  return f;
}

void add_speculation(Document& doc, const SpeculativeStudy& study, const std::string& target) {
  const estimate::Speculation& s = study.speculation;
  Fields f{fmt::format("Speculative decoding: {} ({}) drafts for {} ({})", study.draft, study.draft_weights, target,
                       study.target_weights),
           {}};
  f.add("acceptance",
        fmt::format("{} per draft token, batch {}, {} cached tokens", format_significant(s.scenario.acceptance),
                    s.scenario.batch, format_count(d(s.scenario.context))));
  f.add("plain decoding", format_seconds(s.target_step) + " per token");
  f.add("best draft length", s.best() ? fmt::format("{}: {:.2f} times faster, {} per token", s.best_length,
                                                    s.best_speedup, format_seconds(s.best()->time_per_token()))
                                      : "none: no draft length is faster than plain decoding");
  f.add("memory", fmt::format("both models need {} of {}: {}", format_bytes_binary(s.memory),
                              format_bytes_binary(s.capacity), s.fits ? "fits" : "does NOT fit on one device"));
  for (const std::string& note : s.notes) f.add("note", note);
  Table t{"", {{"draft length"}, {"tokens / round"}, {"draft"}, {"verify"}, {"per token"}, {"speed-up"}}, {}};
  for (const estimate::SpeculativeRound& r : s.rounds) {
    if (r.length > 8 && r.length % 8 != 0 && r.length != s.best_length) continue;
    t.rows.push_back({std::to_string(r.length), fmt::format("{:.2f}", r.expected_tokens), format_seconds(r.draft),
                      format_seconds(r.verify), format_seconds(r.time_per_token()), fmt::format("{:.2f}", r.speedup)});
  }
  doc.push_back(std::move(f));
  doc.push_back(std::move(t));
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

Table gguf_table(const GgufStudy& study, const GgufLimits& limits) {
  const bool host = limits.host != nullptr;
  Table t{study.model->name,
          {{"type", true},
           {"file"},
           {"BPW"},
           {host ? "device memory" : "memory"},
           {"fits", true},
           {host ? "layers on device" : "layers"},
           {fmt::format("prefill {} [t/s]", limits.prefill())},
           {"decode [t/s]"}},
          {}};
  for (const estimate::GgufStudyRow& row : study.rows) {
    const bool split = row.offloaded.has_value();
    t.rows.push_back({upper(row.name), format_bytes(row.file), fmt::format("{:.2f}", row.bits_per_weight),
                      format_bytes_binary(row.memory.total()),
                      row.fits ? "yes"
                      : split  ? "split"
                               : "no",
                      split ? fmt::format("{}/{}", *row.offloaded, study.model->num_layers() + 1) : "-",
                      split ? format_significant(row.prefill_tokens_per_second) : "-",
                      split ? format_significant(row.decode_tokens_per_second) : "-"});
  }
  return t;
}

}  // namespace

Report limits_report(const Limits& limits) {
  const cost::LimitRates& rates = limits.rates();
  Document doc{Heading{"Single-user limits on " + limits.device->title, kClosedForm},
               Paragraph{fmt::format("{} units: memory {}, bandwidth {}, compute {} ({} {}, {})", name(rates.units),
                                     format_bytes_binary(rates.capacity), format_bandwidth(rates.bandwidth),
                                     format_flops_rate(rates.compute), name(rates.peak.engine), name(rates.peak.dtype),
                                     name(rates.peak.provenance))},
               counts_table(limits), limit_table(limits)};
  if (rates.units == UnitConvention::article) {
    doc.push_back(Paragraph{
        "Article units count K = 1024 throughout: GB/s and TFLOP/s of the datasheet are read as 2^30 and 2^40."});
  }
  if (Fields f = remarks_on(limits); !f.rows.empty()) doc.push_back(std::move(f));
  if (limits.speculation) add_speculation(doc, *limits.speculation, limits.models.front().model);
  Table csv = csv_of(limits.rows());
  if (rates.units != UnitConvention::article) {  // the last columns count in its units
    std::size_t shown = 0;
    while (!csv.columns[shown].header.ends_with("GiParams")) ++shown;
    csv.columns.resize(shown);
    for (auto& row : csv.rows) row.resize(shown);
  }
  return {std::move(doc), std::move(csv), result::document("llmperf.limits", limits)};
}

Report gguf_report(const GgufLimits& g) {
  Document doc{Heading{"GGUF file types on " + g.device->title, kUncalibrated},
               Paragraph{fmt::format("one sequence of {} token{}, KV cache {}; rules of {}; {} of memory{}",
                                     format_count(d(g.context)), g.context == 1 ? "" : "s", g.kv.name(), name(g.era),
                                     format_bytes_binary(g.capacity()),
                                     g.host ? "; what does not fit stays on " + g.host->title : "")}};
  for (const GgufStudy& study : g.studies) doc.push_back(gguf_table(study, g));
  Fields notes;
  if (g.host) {
    notes.add("device memory",
              "weights but the token embedding, KV cache, compute buffers and the runtime reserve, everything "
              "offloaded");
    notes.add("fits", "split: with some layers on the host; no: neither, the host is too small");
    notes.add("layers on device", "the most that fit, the head being one; speeds are of that split");
  } else {
    notes.add("memory", "weights, KV cache, compute buffers and the runtime reserve");
  }
  notes.add("file", "tensors as stored, and an estimate of the metadata");
  for (const std::string& note : g.notes) notes.add("note", note);
  doc.push_back(std::move(notes));
  return {std::move(doc), csv_of(g.rows()), result::document("llmperf.gguf", g)};
}

}  // namespace llmperf::report
