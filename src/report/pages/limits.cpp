// `llmperf limits`.
#include "result/limits.h"

#include <cctype>
#include <cmath>

#include "base/integer.h"
#include "base/number.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
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
  Table t = titled(units == UnitConvention::article ? "Parameters in 2^30, KV cache in 2^20 values"
                                                    : "Parameters in 10^9, KV cache in values",
                   "<model, layers, lm_head, activated, total, KV / token, KV / 1024");
  for (const ModelLimits& m : limits.models) {
    const cost::LimitCounts& c = m.limits.front().counts;
    const double kv = d(c.kv_values_per_token);
    add_row(t, m.model, parameters_text(c.decoder_layers, units), parameters_text(c.lm_head, units),
            parameters_text(c.activated, units), parameters_text(c.total, units), kv_values(kv, units),
            kv_values(1024 * kv, units));
  }
  return t;
}

Table limit_table(const Limits& limits) {
  Table t = titled("Limits (a prefill between two prompt lengths is bound by compute; token n takes (n - 1) / W + B)",
                   "<model, <precision, KV tokens, rough, to, exact, to, W [1/ms], B");
  for (const LimitsRow& row : limits.rows()) {
    const cost::Limits& l = *row.limits;
    add_row(t, *row.model, l.precision.label, l.kv_tokens ? format_count(d(*l.kv_tokens)) : "oom",
            end_text(l.rough.first, l.rough), end_text(l.rough.second, l.rough), end_text(l.exact.first, l.exact),
            end_text(l.exact.second, l.exact), fmt::format("{:.0f}", l.decode_tokens_per_ms),
            fmt::format("{:.2f} ms", l.decode_base.value * 1e3));
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
                      l.precision.label, Count(std::ceil(*chunk)))
                : fmt::format("{}: reading takes longer than computing at every prompt length, so no chunk is free",
                              l.precision.label));
    }
  }
  for (const ModelLimits& m : limits.models) {
    for (const std::string& note : m.limits.front().notes) f.add(m.model, note);
  }
  return f;
}

void add_speculation(Document& doc, const SpeculativeStudy& study, const std::string& target, std::int64_t devices) {
  const estimate::Speculation& s = study.speculation;
  Fields f{fmt::format("Speculative decoding: {} ({}) drafts for {} ({})", study.draft, study.draft_weights, target,
                       study.target_weights),
           {}};
  f.add("acceptance", "{} per draft token, batch {}, {} cached tokens", s.acceptance.text(), s.scenario.batch,
        Count(s.scenario.context));
  f.add("plain decoding", format_seconds(s.target_step) + " per token");
  f.add("best draft length",
        s.best()
            ? fmt::format("{}: at most {:.2f} times faster, at the speed of light and if {} of the drafted tokens are "
                          "accepted; {} per token",
                          s.best_length, s.best_speedup, s.acceptance.text(), s.best()->time_per_token())
            : "none: no draft length is faster than plain decoding");
  f.add("memory", "both models need {} of {}{}: {}", Held{s.memory}, Held{s.capacity},
        devices > 1 ? " of each device" : "", s.fits ? "fits" : "does NOT fit");
  for (const std::string& note : study.notes) f.add("note", note);
  std::vector<estimate::SpeculativeRound> rounds = s.rounds;
  std::erase_if(rounds, [&](const estimate::SpeculativeRound& r) {
    return r.length > 8 && r.length % 8 != 0 && r.length != s.best_length;
  });
  doc.push_back(std::move(f));
  doc.push_back(table_of("", "draft length, tokens / round, draft, verify, per token, speed-up", rounds,
                         [](const estimate::SpeculativeRound& r) {
                           return cells(r.length, fmt::format("{:.2f}", r.expected_tokens), r.draft, r.verify,
                                        r.time_per_token(), fmt::format("{:.2f}", r.speedup));
                         }));
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// Tokens per second: what is predicted, nine of ten, and the bound; without a profile the bound alone.
void add_rate(std::vector<std::string>& cells, const estimate::StudyRate& rate, bool split, bool predicted) {
  const auto& p = rate.predicted;
  if (predicted) {
    cells.push_back(split ? format_significant(p->rate, 3) : "-");
    cells.push_back(split ? format_significant(p->low(), 2) + "-" + format_significant(p->high(), 2) : "-");
  }
  cells.push_back(split ? format_significant(rate.bound, predicted ? 3 : 4) : "-");
}

Table gguf_table(const GgufStudy& study, const GgufLimits& limits) {
  const bool predicted = !limits.runtime.empty();
  const std::string layers = std::to_string(study.model->num_layers() + 1);
  Table t = titled(study.model->name, "<type, file");
  if (!predicted) t.columns.push_back({"BPW"});  // where there is room
  t.columns.insert(t.columns.end(), {{limits.host != nullptr ? "on device" : "memory"}, {"fits", true}});
  const std::vector<const char*> rates =
      predicted ? std::vector{"prefill", "9 of 10", "at most", "decode", "9 of 10", "at most"}
                : std::vector{"prefill", "decode"};
  for (const char* rate : rates) t.columns.push_back({rate});
  for (const estimate::GgufStudyRow& row : study.rows) {
    const bool split = row.offloaded.has_value();
    std::vector<std::string> cells = {upper(row.name), format_bytes(row.file)};
    if (!predicted) cells.push_back(fmt::format("{:.2f}", row.bits_per_weight));
    cells.push_back(format_bytes_binary(row.memory.total()));
    if (row.fits || !split) {
      cells.emplace_back(row.fits ? "yes" : "no");
    } else {
      cells.push_back(row.cpu_moe ? fmt::format("moe {}", *row.cpu_moe) : fmt::format("{}/{}", *row.offloaded, layers));
    }
    add_rate(cells, row.prefill, split, predicted);
    add_rate(cells, row.decode, split, predicted);
    t.rows.push_back(std::move(cells));
  }
  return t;
}

}  // namespace

Report limits_report(const Limits& limits) {
  const cost::LimitRates& rates = limits.rates();
  Document doc{Heading{"Single-user limits on " + limits.device->title, kClosedForm},
               Paragraph{fmt::format("{} units{}: memory {}, bandwidth {}, compute {} ({} {}, {})", name(rates.units),
                                     rates.devices > 1 ? fmt::format(", {} devices together", rates.devices) : "",
                                     Held{rates.capacity}, rates.bandwidth, rates.compute, name(rates.peak.engine),
                                     name(rates.peak.dtype), name(rates.peak.provenance))},
               counts_table(limits), limit_table(limits)};
  if (rates.units == UnitConvention::article) {
    doc.push_back(Paragraph{
        "Article units count K = 1024 throughout: GB/s and TFLOP/s of the datasheet are read as 2^30 and 2^40."});
  }
  if (Fields f = remarks_on(limits); !f.rows.empty()) doc.push_back(std::move(f));
  if (limits.speculation) add_speculation(doc, *limits.speculation, limits.models.front().model, rates.devices);
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
  const std::string cards = g.devices > 1 ? fmt::format("{} x ", g.devices) : "";
  Document doc{
      Heading{fmt::format("GGUF file types on {}{}", cards, g.device->title), g.label},
      Paragraph{fmt::format("one sequence of {} token{}, KV cache {}; rules of {}; {}{} of memory{}", Count(g.context),
                            g.context == 1 ? "" : "s", g.kv.name(), name(g.era), cards, Held{g.capacity()},
                            g.host && g.devices == 1 ? "; what does not fit stays on " + g.host->title : "")}};
  for (const GgufStudy& study : g.studies) doc.push_back(gguf_table(study, g));
  Fields notes;
  const char* const fullest = g.devices > 1 ? "; of the fullest device" : "";
  if (g.host) {
    notes.add("on device",
              "weights but the token embedding, KV cache, compute buffers and the runtime "
              "reserve, everything offloaded{}",
              fullest);
  } else {
    notes.add("memory", "weights, KV cache, compute buffers and the runtime reserve{}", fullest);
  }
  if (g.host && g.devices == 1) {
    notes.add("fits",
              "N/M: the most that fit, the head being one, the rest on the host (--gpu-layers N); moe N: the "
              "experts of N layers there (--n-cpu-moe N), where that is faster; no: neither, the host is too small");
  }
  notes.add("speeds", "tokens per second of a prefill of {} and of decoding the last of the context{}",
            Count(g.prefill()),
            g.runtime.empty() ? ": the speed of light"
                              : "; 9 of 10: as many of like times lie between; at most: the "
                                "speed of light");
  notes.add("file", "tensors as stored, and an estimate of the metadata");
  for (const std::string& note : g.notes) notes.add("note", note);
  doc.push_back(std::move(notes));
  return {std::move(doc), csv_of(g.rows()), result::document("llmperf.gguf", g)};
}

}  // namespace llmperf::report
