// Closed-form limits of single-user inference: how many tokens of KV cache fit, from and up to which prompt length the
// prefill is bound by compute, and the line that decode latency follows. No op graph, no kernels, no runtime: what a
// device's memory size, bandwidth and peak rate alone allow. limits.cpp derives the formulas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "hardware/device.h"
#include "model/decoder.h"

namespace llmperf::cost {

// si: datasheet figures as they are; compute at the matrix peak (fp16, else bf16, else plain fp32); weights with the
// scales of their quantisation groups.
// article: as the study that published these limits counts, K = 1024 in every figure: GB/s read as GiB/s, TFLOP/s as
// 2^40, a decimal GB of memory as GiB; compute at the plain fp32 vector rate; weights without scales.
enum class UnitConvention : unsigned char { si, article };
std::string_view name(UnitConvention units);

// One width for every activated weight and one for every KV value; real quantisers leave some tensors wide, which an
// estimate counts and this closed form does not.
struct LimitPrecision {
  std::string label;               // as given: "w4kv16", "w4a16-g128"
  double weight_bits = 16;         // payload per weight
  double stored_weight_bits = 16;  // with the scales of groups and blocks; equal to weight_bits for "wNkvM"
  double kv_bits = 16;             // per KV value
  bool names_kv = false;           // the text said kvBITS
  std::string scheme = "bf16";     // what an estimate takes for it: the scheme named, or the width as bits per weight
};
// WEIGHTS[kvBITS]: WEIGHTS is wBITS ("w16kv16", "w4kv8", "w6") or a weight scheme (bf16, fp8, w8a8, w4a16-g64, 4.5);
// without kvBITS the cache takes `kv_bits`. Throws Error(bad_input), also for schemes whose layer matrices have no one
// width (mxfp4).
LimitPrecision parse_limit_precision(std::string_view text, double kv_bits = 16);

// What the limits are computed with, in bytes, bytes per second and FLOP/s whatever the convention.
struct LimitRates {
  UnitConvention units = UnitConvention::si;
  std::int64_t devices = 1;  // that share every matrix: capacity, bandwidth and compute are those of all together
  Bytes capacity;
  BytesPerSecond bandwidth;
  FlopsPerSecond compute;
  hardware::Peak peak;  // the datasheet figure `compute` comes from, unscaled
};
// Throws Error(bad_input) when the device has no rate to compute with.
LimitRates limit_rates(const hardware::Device& device, UnitConvention units, std::int64_t devices = 1);

struct LimitCounts {
  std::int64_t decoder_layers = 0;            // matrices and biases of all layers, norms left out; all experts
  std::int64_t decoder_layers_activated = 0;  // … that one token is multiplied with
  std::int64_t lm_head = 0;
  std::int64_t resident = 0;   // decoder_layers + lm_head: what has to be in device memory
  std::int64_t activated = 0;  // decoder_layers_activated + lm_head: what a decode step reads
  std::int64_t total = 0;      // resident + embeddings; a tied embedding is counted once
  std::int64_t kv_values_per_token = 0;
  std::int64_t attention_macs_per_pair = 0;  // multiply-adds of all layers per visible (query, key) pair
};
LimitCounts limit_counts(const model::Decoder& model);

// Prompt lengths in tokens, real numbers (published tables truncate them), at which reading and computing take equally
// long. Between the two the prefill is compute bound. `first`: weight reads give way to compute; `second`: compute
// gives way to KV reads. first alone: compute bound from there on. second alone: compute bound up to there. Neither:
// one bound at every length, and compute_bound_at_zero says which.
struct Inflection {
  std::optional<double> first;
  std::optional<double> second;
  bool compute_bound_at_zero = false;  // the bound of the shortest prompts
};

// All of these for one model, device and precision.
struct Limits {
  LimitPrecision precision;
  LimitRates rates;
  LimitCounts counts;
  double bytes_per_weight = 2;  // as the unit convention counts them
  double bytes_per_kv_value = 2;

  Bytes resident_weights;   // counts.resident at that width
  Bytes activated_weights;  // counts.activated at that width
  Bytes kv_per_token;
  std::optional<std::int64_t> kv_tokens;  // that fit beside the resident weights; nothing: the weights alone do not fit
  Inflection rough;                       // lm_head charged for every prompt token
  Inflection exact;                       // … for the last one only
  double decode_tokens_per_ms = 0;        // W: cached tokens that cost one more millisecond per decoded token
  Seconds decode_base;                    // B: latency without a cache
  std::vector<std::string> notes;         // what the closed form leaves out or approximates for this model
};
Limits compute_limits(const model::Decoder& model, const hardware::Device& device, const LimitPrecision& precision,
                      UnitConvention units = UnitConvention::si, std::int64_t devices = 1);

// The shortest chunk of a chunked prefill that costs nothing extra, because computing it takes as long as reading the
// weights again and everything cached, when `context` tokens are cached already. For the first chunk that is
// exact.first. Where a pair costs more to read than to compute, later chunks have to be longer, and from some context
// on none is long enough: the rule "a prompt above the first inflection point may be cut into chunks of at least that
// length for free" holds for the weights alone. Nothing: no length is free. 0: every length is.
std::optional<double> free_chunk(const Limits& limits, std::int64_t context = 0);

}  // namespace llmperf::cost
