// How the cache and a decode step grow with the context, at the batch of a scenario.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "estimate/estimate.h"

namespace llmperf::estimate {

struct ContextPoint {
  std::int64_t context = 0;            // tokens of every sequence
  Bytes kv_cache;                      // of one device, as in Estimate::memory
  bool fits = false;                   // a request of that many tokens, the last of them generated
  std::optional<Seconds> decode_step;  // with that many tokens in the cache; nothing where it does not fit
};

// At most 16 powers of two and, between them, the request's own length, the longest context that fits (but no
// more than four times what the model is made for) and the length the model is made for; up to the largest of the
// three.
std::vector<ContextPoint> context_curve(Estimator& estimator, const Estimate& estimate);

}  // namespace llmperf::estimate
