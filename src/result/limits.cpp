#include "result/limits.h"

#include <cmath>

#include "base/integer.h"
#include "result/basis.h"
#include "result/generation.h"

namespace llmperf::result {
namespace {

std::optional<double> truncated(const std::optional<double>& tokens) {
  return tokens ? std::optional(std::floor(*tokens)) : std::nullopt;
}
double giga(std::int64_t n) { return d(n) / kGiB; }

}  // namespace

Type fields_of(Fields<LimitsRow> f) {
  using R = LimitsRow;
  constexpr auto article = [](const R& r) { return r.article(); };
  return f.of("model", "its name", [](const R& r) { return *r.model; })
      .of("precision", "as asked for", [](const R& r) { return r.limits->precision.label; })
      .of("units", "as above", [](const R& r) { return r.limits->rates.units; })
      .of("decoder_layers_parameters: decoder layers", "matrices and biases of all layers, no norms",
          [](const R& r) { return r.limits->counts.decoder_layers; })
      .of("lm_head_parameters: LM head", "also when it is tied", [](const R& r) { return r.limits->counts.lm_head; })
      .of("activated_parameters", "layers as one token uses them, and lm_head",
          [](const R& r) { return r.limits->counts.activated; })
      .of("total_parameters", "all layers, lm_head and embedding, tied ones once",
          [](const R& r) { return r.limits->counts.total; })
      .of("kv_values_per_token: KV values of a token", "elements",
          [](const R& r) { return r.limits->counts.kv_values_per_token; })
      .of("kv_bytes_per_token", "of all layers", [](const R& r) { return r.limits->kv_per_token; })
      .of("kv_bytes_per_1024_tokens: KV cache of 1024 tokens", "likewise",
          [](const R& r) { return r.limits->kv_per_token * 1024; })
      .of("kv_tokens_that_fit", "null: the weights alone do not fit", [](const R& r) { return r.limits->kv_tokens; })
      .of("prefill_rough_first_tokens: first inflection point (rough)",
          "inflection point, truncated: weight reads give way to compute; lm_head charged for every token; null: there "
          "is none",
          [](const R& r) { return truncated(r.limits->rough.first); })
      .of("prefill_rough_second_tokens: second inflection point (rough)",
          "likewise: compute gives way to reads of the KV cache",
          [](const R& r) { return truncated(r.limits->rough.second); })
      .of("prefill_exact_first_tokens: first inflection point (exact)",
          "the first, lm_head charged for the last token only",
          [](const R& r) { return truncated(r.limits->exact.first); })
      .of("prefill_exact_second_tokens: second inflection point (exact)", "the second, likewise",
          [](const R& r) { return truncated(r.limits->exact.second); })
      .of("shortest_prompt_bound: bound of short prompts",
          "\"compute\" or \"memory\": what binds a prompt shorter than every inflection point, so every prompt where "
          "there is none",
          [](const R& r) { return r.limits->exact.compute_bound_at_zero ? "compute" : "memory"; })
      .of("decode_W_tokens_per_ms: decode W (tokens/ms)", "decoding token n takes (n - 1) / W + B",
          [](const R& r) { return r.limits->decode_tokens_per_ms; })
      .of("decode_B_s", "likewise", [](const R& r) { return r.limits->decode_base; })
      .only_where(article)
      .of("decoder_layers_GiParams: decoder layers (Gi parameters)", "article units only: in 2^30",
          [](const R& r) { return giga(r.limits->counts.decoder_layers); })
      .of("lm_head_GiParams: LM head (Gi parameters)", "likewise",
          [](const R& r) { return giga(r.limits->counts.lm_head); })
      .of("activated_GiParams: activated (Gi parameters)", "likewise",
          [](const R& r) { return giga(r.limits->counts.activated); })
      .of("total_GiParams: total (Gi parameters)", "likewise", [](const R& r) { return giga(r.limits->counts.total); })
      .of("kv_MiParams_per_token: KV of a token (Mi)", "article units only: in 2^20",
          [](const R& r) { return d(r.limits->counts.kv_values_per_token) / kMiB; })
      .of("kv_MiParams_per_1024_tokens: KV of 1024 tokens (Mi)", "likewise",
          [](const R& r) { return 1024 * d(r.limits->counts.kv_values_per_token) / kMiB; })
      .of("decode_B_ms: decode B (ms)", "article units only",
          [](const R& r) { return r.limits->decode_base.value * 1e3; });
}

Type fields_of(Fields<SpeculativeStudy> f) {
  using S = SpeculativeStudy;
  return f.of<&S::draft>("draft", "the draft model")
      .of<&S::draft_weights>("draft_weights", "scheme used")
      .of<&S::target_weights>("target_weights", "scheme used")
      .of("acceptance", "as given; of a table that of the first token",
          [](const S& s) { return s.speculation.acceptance.of(0); })
      .json("acceptance_table", "where it is one: chances of the first, second … token, the last also of further ones",
            [](const S& s) { return s.speculation.acceptance.rates; })
      .only_when([](const S& s) { return s.speculation.acceptance.rates.size() > 1; })
      .of("batch", "as given", [](const S& s) { return s.speculation.scenario.batch; })
      .of("context_tokens", "as given", [](const S& s) { return s.speculation.scenario.context; })
      .of("target_step_s: step of the target", "plain decoding", [](const S& s) { return s.speculation.target_step; })
      .of("best_draft_length", "0: no length is faster than plain decoding",
          [](const S& s) { return s.speculation.best_length; })
      .of("best_speedup", "1: likewise", [](const S& s) { return s.speculation.best_speedup; })
      .of("memory_bytes: GiB", "both models, caches, the larger activation peak and reserve",
          [](const S& s) { return s.speculation.memory; })
      .of("fits", "on one device", [](const S& s) { return s.speculation.fits; })
      .of("rounds", "by draft length", [](const S& s) { return s.speculation.rounds; });
}

std::vector<LimitsRow> Limits::rows() const {
  std::vector<LimitsRow> rows;
  for (const ModelLimits& m : models) {
    for (const cost::Limits& l : m.limits) rows.push_back({&m.model, &l});
  }
  return rows;
}

Type fields_of(Fields<Limits> f) {
  using L = Limits;
  return f.of("label", "\"closed form, uncalibrated\"", [](const L&) { return kClosedForm; })
      .of("hardware", "its name", [](const L& l) { return l.device->name; })
      .of("units", "\"si\" or \"article\"", [](const L& l) { return l.rates().units; })
      .of("devices", "that share every matrix", [](const L& l) { return l.rates().devices; })
      .of("capacity_bytes", "what was computed with, of all devices, in SI in either convention",
          [](const L& l) { return l.rates().capacity; })
      .of("bandwidth_bytes_per_s", "likewise", [](const L& l) { return l.rates().bandwidth; })
      .of("compute_flops_per_s", "likewise", [](const L& l) { return l.rates().compute; })
      .of<&L::rows>("rows", "one per model and precision")
      .of("notes", "what the closed form approximates, as \"model: text\"",
          [](const L& l) {
            std::vector<std::string> notes;
            for (const ModelLimits& m : l.models) {
              for (const std::string& note : m.limits.front().notes) notes.push_back(m.model + ": " + note);
            }
            return notes;
          })
      .of<&L::speculation>("speculation", "with `draft` only")
      .only_when([](const L& l) { return l.speculation.has_value(); });
}

Type fields_of(Fields<GgufRow> f) {
  using R = GgufRow;
  constexpr auto split = [](const R& r) { return r.row->offloaded.has_value(); };
  return f.of("hardware", "as above", [](const R& r) { return r.all->device->name; })
      .of("devices", "as above", [](const R& r) { return r.all->devices; })
      .of("model", "its name", [](const R& r) { return r.model->name; })
      .of("weights", "type, or \"as stored\"", [](const R& r) { return r.row->name; })
      .of("imatrix", "made with an importance matrix", [](const R& r) { return r.row->imatrix; })
      .of("tensor_bytes: tensors GiB", "as stored", [](const R& r) { return r.row->tensors; })
      .of("file_bytes: GiB", "metadata estimated", [](const R& r) { return r.row->file; })
      .of("bits_per_weight", "of the tensors", [](const R& r) { return r.row->bits_per_weight; })
      .of("device_weight_bytes: weights on the device GiB", "with everything offloaded",
          [](const R& r) { return r.row->memory.weights; })
      .of("kv_cache_bytes", "likewise", [](const R& r) { return r.row->memory.kv_cache; })
      .of("compute_buffer_bytes: GiB", "likewise", [](const R& r) { return r.row->memory.activation; })
      .of("reserve_bytes", "likewise", [](const R& r) { return r.row->memory.reserve; })
      .of("total_bytes", "of these four; of several devices on the fullest",
          [](const R& r) { return r.row->memory.total(); })
      .of("fits", "on the device, or on all of them", [](const R& r) { return r.row->fits; })
      .of("layers", "the head being one", [](const R& r) { return r.model->num_layers() + 1; })
      .of("layers_on_device", "most that fit, or all beside `cpu_moe_layers`; null: no split fits",
          [](const R& r) { return r.row->offloaded; })
      .of("cpu_moe_layers: layers with experts on the host",
          "whose experts are on the host; null: no split fits, or layers are the faster one",
          [](const R& r) { return r.row->cpu_moe; })
      .where(split)
      .of("prefill_tokens_per_second", "of that split, at most", [](const R& r) { return r.row->prefill.bound; })
      .of("decode_tokens_per_second", "of that split, at most", [](const R& r) { return r.row->decode.bound; })
      .where([](const R& r) { return r.row->prefill.predicted.has_value(); })
      .of("predicted_prefill_tokens_per_second", "of that split, under the runtime",
          [](const R& r) { return r.row->prefill.predicted->rate; })
      .of("predicted_prefill_low: predicted prefill from (tokens/s)",
          "in tokens per second: nine of ten are between this and `predicted_prefill_high`",
          [](const R& r) { return r.row->prefill.predicted->low(); })
      .of("predicted_prefill_high: predicted prefill to (tokens/s)", "likewise",
          [](const R& r) { return r.row->prefill.predicted->high(); })
      .of("predicted_decode_tokens_per_second", "of that split, under the runtime",
          [](const R& r) { return r.row->decode.predicted->rate; })
      .of("predicted_decode_low: predicted decode from (tokens/s)", "as above",
          [](const R& r) { return r.row->decode.predicted->low(); })
      .of("predicted_decode_high: predicted decode to (tokens/s)", "likewise",
          [](const R& r) { return r.row->decode.predicted->high(); });
}

std::vector<GgufRow> GgufLimits::rows() const {
  std::vector<GgufRow> rows;
  for (const GgufStudy& study : studies) {
    for (const estimate::GgufStudyRow& row : study.rows) rows.push_back({this, study.model, &row});
  }
  return rows;
}

Type fields_of(Fields<GgufLimits> f) {
  using G = GgufLimits;
  return f.of<&G::label>("label", "what the predicted times are; \"upper bound, uncalibrated\" without a profile")
      .of("hardware", "its name", [](const G& g) { return g.device->name; })
      .of<&G::devices>("devices", "that the layers are dealt to")
      .of<&G::runtime>("runtime", "of the profile; null: there are bounds alone")
      .when([](const G& g) { return !g.runtime.empty(); })
      .of("host", "its name; null: the device shares its memory with the CPU", [](const G& g) { return g.host->name; })
      .when([](const G& g) { return g.host != nullptr; })
      .of<&G::capacity>("capacity_bytes", "device memory")
      .of<&G::context>("context_tokens", "of the one sequence")
      .of<&G::prefill>("prefill_tokens", "of the prefill that is timed")
      .of("kv", "cache type", [](const G& g) { return g.kv.name(); })
      .of<&G::era>("gguf_era", "version of the quantisation rules")
      .of<&G::rows>("rows", "one per model and type")
      .of<&G::notes>("notes", "as text");
}

}  // namespace llmperf::result
