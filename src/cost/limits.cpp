// Limits of single-user inference, after a public study of Qwen1.5 single-user inference limits on an RTX 4090 (2024),
// stated here for every decoder.
//
// Let w and a be the bytes of a weight and of a KV value, BW the memory bandwidth, C the peak rate, and of the model
//   Lp  weights of the layers a token is multiplied with: matrices and biases, without norms
//   Hp  weights of lm_head; Ap = Lp + Hp are the activated parameters
//   Rp  Ap plus the experts a token does not use; equal to Ap in dense models
//   K   KV values one token adds
//   M   multiply-adds per visible (query, key) pair: sum over layers of heads (qk_dim + v_dim). With query and key
//   heads of
//       one width and g query heads per KV head this is K g.
// Memory: the weights stay on the device, the embedding table, of which a token reads one row, is left out:
//   tokens = floor((capacity - Rp w) / (K a));  out of memory when the bracket is negative.
// Decode: token n reads the activated weights and the n - 1 tokens before it, and nothing is reused, so that reading
// dominates:
//   t(n) = (Ap w + (n - 1) K a) / BW = (n - 1) / W + B,   W = BW / (K a),  B = Ap w / BW.
// Prefill of n tokens has n (n + 1) / 2 visible pairs. Every pair reads its key and value (no reuse across queries) and
// every weight is read once; a prompt reaches all experts (with 8 experts of which 2 are used, 17 tokens reach 99 % of
// them):
//   read(n)    = (Rp w + n (n + 1) / 2 K a) / BW
//   compute(n) = 2 (Lp n + n (n + 1) / 2 M + Hp) / C           exact: lm_head for the last token only
//              = 2 (Ap n + n (n + 1) / 2 M) / C                rough: for every token
//   latency    = max(read, compute).
// compute(n) - read(n) is a quadratic in n,
//   (p / 2) n^2 + (2 Lp / C + p / 2) n + (2 Hp / C - Rp w / BW),   p = 2 M / C - K a / BW
// (rough: Ap for Lp and no Hp), and its positive roots are where one bound gives way to the other. p is negative on
// most devices: a pair costs more to read than to compute. A chunk of n tokens on top of c cached ones has n c more
// pairs, which adds p c n.
#include "cost/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "graph/expert_load.h"
#include "model/parameters.h"
#include "model/quantization.h"

namespace llmperf::cost {
namespace {

// Positive roots of a n^2 + b n + c, and whether the polynomial goes up or down through them. The root that would lose
// digits to cancellation comes from the product of the roots.
Inflection inflection(double a, double b, double c) {
  Inflection result;
  result.compute_bound_at_zero = c > 0 || (c == 0 && b > 0);
  double roots[2] = {-1, -1};
  if (a == 0) {
    if (b != 0) roots[0] = -c / b;
  } else {
    const double discriminant = b * b - 4 * a * c;
    if (discriminant <= 0) return result;  // a double root touches and changes nothing
    const double q = -(b + std::copysign(std::sqrt(discriminant), b)) / 2;
    roots[0] = q / a;
    roots[1] = c / q;
    if (roots[0] > roots[1]) std::swap(roots[0], roots[1]);
  }
  // The bound changes at every positive root; the polynomial is positive where compute bounds.
  bool compute_bound = result.compute_bound_at_zero;
  for (const double root : roots) {
    if (!(root > 0)) continue;
    (compute_bound ? result.second : result.first) = root;
    compute_bound = !compute_bound;
  }
  return result;
}

// compute(n) - read(n) of a chunk of n tokens after `context` cached ones.
struct Balance {
  double square, linear, constant;
};
Balance balance(const Limits& l, bool head_for_every_token, std::int64_t context) {
  const double c = l.rates.compute.value;
  const double bandwidth = l.rates.bandwidth.value;
  const double per_pair = 2 * d(l.counts.attention_macs_per_pair) / c - l.kv_per_token.value / bandwidth;
  const double every_token = 2 * d(head_for_every_token ? l.counts.activated : l.counts.decoder_layers_activated) / c;
  const double once = head_for_every_token ? 0 : 2 * d(l.counts.lm_head) / c;
  return {per_pair / 2, every_token + per_pair / 2 + per_pair * d(context),
          once - l.resident_weights.value / bandwidth};
}
Inflection inflection(const Balance& b) { return inflection(b.square, b.linear, b.constant); }

std::vector<std::string> notes_on(const model::Decoder& model) {
  bool window = false;
  bool latent = false;
  const model::Experts* experts = nullptr;
  for (const model::Layer& layer : model.kinds) {
    window = window || layer.attention.window;
    latent = latent || layer.attention.latent;
    if (layer.feed_forward.experts) experts = &*layer.feed_forward.experts;
  }
  std::vector<std::string> notes;
  if (window) {
    notes.emplace_back("sliding windows are ignored: KV cache, KV reads and attention are upper bounds");
  }
  if (experts) {
    const auto most = [&](std::int64_t tokens) {
      return graph::expert_load({}, experts->count, experts->per_token, tokens).active >= 0.99 * d(experts->count);
    };
    std::int64_t fewer = 0;
    std::int64_t enough = 1;
    for (; !most(enough); enough *= 2) fewer = enough;
    while (enough - fewer > 1) (most((fewer + enough) / 2) ? enough : fewer) = (fewer + enough) / 2;
    notes.push_back(fmt::format(
        "mixture of experts: all experts have to fit and a prefill reads all of them (a prompt of {} tokens reaches "
        "99 %), a decode step reads those of one token",
        enough));
  }
  if (latent) {
    notes.emplace_back(
        "latent attention: the cache holds latents, a prefill is charged for expanded keys and values, and the work of "
        "expanding them again for a later chunk is left out");
  }
  return notes;
}

}  // namespace

std::string_view name(UnitConvention units) { return units == UnitConvention::si ? "si" : "article"; }

LimitPrecision parse_limit_precision(std::string_view text, double kv_bits) {
  const auto width = [&](std::string_view digits, std::string_view what) {
    const std::optional<double> bits = parse_double(digits);
    if (!bits || !(*bits > 0) || *bits > 64) {
      throw Error::bad_input(
          fmt::format("{} in {}: bits have to be above 0 and at most 64, not {}", what, quote(text), quote(digits)),
          "a limit precision looks like w4kv16, w8kv8, bf16 or w4a16-g128kv16");
    }
    return *bits;
  };
  LimitPrecision precision{.label = std::string(text), .kv_bits = kv_bits};
  std::string_view weights = text;
  if (const std::size_t kv = text.rfind("kv"); kv != std::string_view::npos) {
    precision.kv_bits = width(text.substr(kv + 2), "KV width");
    precision.names_kv = true;
    weights = text.substr(0, kv);
  }
  // "w4" is a width, "w4a16" a scheme.
  if (weights.starts_with('w') && weights.find('a') == std::string_view::npos) {
    precision.weight_bits = precision.stored_weight_bits = width(weights.substr(1), "weight width");
    if (precision.weight_bits != 16) precision.scheme = fmt::format("{}", precision.weight_bits);
    return precision;
  }
  const model::WeightScheme scheme = model::parse_weight_scheme(weights);
  const model::StoredFormat& format = scheme.linear;
  if (scheme.expert.bits != format.bits) {
    throw Error::bad_input(
        fmt::format("{} stores experts and other matrices at different widths; the closed-form limits "
                    "need one",
                    quote(weights)),
        "give the width as wBITS, for example w4kv16, or use estimate, which counts every tensor");
  }
  precision.scheme = scheme.name;
  precision.weight_bits = precision.stored_weight_bits = format.bits;
  if (format.group > 0) precision.stored_weight_bits += format.bits_per_group / format.group;
  if (format.block > 0) precision.stored_weight_bits += format.bits_per_block / (d(format.block) * d(format.block));
  return precision;
}

LimitRates limit_rates(const hardware::Device& device, UnitConvention units, std::int64_t devices) {
  using hardware::Engine;
  const bool article = units == UnitConvention::article;
  const hardware::Peak* peak = nullptr;
  if (!article) {
    peak = device.find_peak(Engine::matrix, Dtype::fp16);
    if (!peak) peak = device.find_peak(Engine::matrix, Dtype::bf16);
  }
  if (!peak) peak = device.find_peak(Engine::vector, Dtype::fp32);
  if (!peak) {
    throw Error::bad_input(fmt::format("{} has no {} to compute limits with", device.name,
                                       article ? "plain fp32 rate" : "fp16, bf16 or fp32 rate"));
  }
  LimitRates rates{.units = units,
                   .capacity = *device.dram().capacity,
                   .bandwidth = *device.dram().bandwidth,
                   .compute = peak->rate,
                   .peak = *peak};
  if (article) {
    rates.bandwidth = rates.bandwidth * (kGiB / 1e9);
    rates.compute = rates.compute * (kGiB * 1024 / 1e12);
    const bool whole_mib = std::fmod(rates.capacity.value, kMiB) == 0;
    if (!whole_mib) rates.capacity = rates.capacity * (kGiB / 1e9);
    rates.capacity = device.dram().board.value_or(rates.capacity);  // the study leaves ECC and the driver out
  }
  rates.devices = devices;
  rates.capacity = rates.capacity * d(devices);
  rates.bandwidth = rates.bandwidth * d(devices);
  rates.compute = rates.compute * d(devices);
  return rates;
}

LimitCounts limit_counts(const model::Decoder& model) {
  const model::ParameterCounts parameters = model::count_parameters(model);
  LimitCounts counts;
  counts.decoder_layers = parameters.layer_matrices;
  counts.decoder_layers_activated = parameters.layer_matrices_activated;
  counts.lm_head = parameters.lm_head;
  counts.resident = counts.decoder_layers + counts.lm_head;
  counts.activated = counts.decoder_layers_activated + counts.lm_head;
  const std::int64_t shared = model.tied_embeddings ? model.vocab * model.hidden : 0;
  counts.total = counts.resident + parameters.embedding - shared;
  counts.kv_values_per_token = model::kv_values_per_token(model);
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    const model::Attention& a = model.kinds[kind].attention;
    counts.attention_macs_per_pair += model.count_of_kind(kind) * a.heads * (a.head_dim + a.v_head_dim);
  }
  return counts;
}

Limits compute_limits(const model::Decoder& model, const hardware::Device& device, const LimitPrecision& precision,
                      UnitConvention units, std::int64_t devices) {
  Limits l;
  l.precision = precision;
  l.rates = limit_rates(device, units, devices);
  l.counts = limit_counts(model);
  const bool article = units == UnitConvention::article;
  l.bytes_per_weight = (article ? precision.weight_bits : precision.stored_weight_bits) / 8;
  l.bytes_per_kv_value = precision.kv_bits / 8;
  l.resident_weights = Bytes{d(l.counts.resident) * l.bytes_per_weight};
  l.activated_weights = Bytes{d(l.counts.activated) * l.bytes_per_weight};
  // Devices hold a KV head each at least, and latents whole.
  double kept = 0;
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    const model::Attention& a = model.kinds[kind].attention;
    const double copies = a.latent ? d(devices) : std::max(1.0, d(devices) / d(std::max<std::int64_t>(1, a.kv_heads)));
    kept += copies * d(model.count_of_kind(kind) * model::kv_values_per_token(a));
  }
  l.kv_per_token = Bytes{kept * l.bytes_per_kv_value};

  const Bytes room = l.rates.capacity - l.resident_weights;
  // Far below 2^63 for any real device; the bound keeps the conversion defined for invented ones.
  if (room.value >= 0) l.kv_tokens = static_cast<std::int64_t>(std::min(std::floor(room / l.kv_per_token), 9e18));
  l.rough = inflection(balance(l, true, 0));
  l.exact = inflection(balance(l, false, 0));
  l.decode_tokens_per_ms = l.rates.bandwidth.value / l.kv_per_token.value / 1e3;
  l.decode_base = l.activated_weights / l.rates.bandwidth;
  l.notes = notes_on(model);
  return l;
}

std::optional<double> free_chunk(const Limits& limits, std::int64_t context) {
  const Inflection chunk = inflection(balance(limits, false, context));
  if (chunk.compute_bound_at_zero) return 0.0;
  return chunk.first;
}

}  // namespace llmperf::cost
