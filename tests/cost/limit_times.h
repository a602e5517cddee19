// Reading and computing as src/cost/limits.cpp derives its limits from them, in whole numbers of tokens.
#pragma once

#include <algorithm>

#include "base/integer.h"
#include "cost/limits.h"

namespace llmperf::cost {

// Visible pairs of n new tokens after `context` cached ones.
inline double pairs(std::int64_t n, std::int64_t context) { return d(n) * d(context) + d(n) * (d(n) + 1) / 2; }

// Prefill of n >= 1 tokens on top of `context` cached ones (0: a whole prompt, else a later chunk of one).
inline Bytes prefill_bytes(const Limits& limits, std::int64_t n, std::int64_t context = 0) {
  return limits.resident_weights + limits.kv_per_token * pairs(n, context);
}
inline Flops prefill_flops(const Limits& limits, std::int64_t n, std::int64_t context = 0) {
  const LimitCounts& counts = limits.counts;
  return Flops{2 * (d(counts.decoder_layers_activated) * d(n) + pairs(n, context) * d(counts.attention_macs_per_pair) +
                    d(counts.lm_head))};
}
inline Seconds prefill_latency(const Limits& limits, std::int64_t n, std::int64_t context = 0) {
  return std::max(prefill_bytes(limits, n, context) / limits.rates.bandwidth,
                  prefill_flops(limits, n, context) / limits.rates.compute);
}

// Decoding token n >= 1 of a sequence, n - 1 tokens being cached.
inline Bytes decode_bytes(const Limits& limits, std::int64_t n) {
  return limits.activated_weights + limits.kv_per_token * d(n - 1);
}

}  // namespace llmperf::cost
