// Device memory of an execution: weights, KV cache, the activation peak and what the runtime keeps for itself.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "graph/decoder_graph.h"

namespace llmperf::cost {

struct Memory {
  Bytes weights;
  Bytes kv_cache;    // of all sequences at their full length
  Bytes activation;  // largest sum of tensors alive at once
  Bytes reserve;     // runtime context and workspaces
  Bytes total() const { return weights + kv_cache + activation + reserve; }
};

// Bytes of KV cache one sequence holds after `tokens` tokens. Layers with a sliding window keep only the window.
Bytes kv_cache_bytes(const graph::Execution& execution, std::int64_t tokens);

// Largest set of activation tensors alive at once in a step: the residual stream plus, whichever is largest, what
// attention (q, k, v and its result; without flash attention two score matrices and the repeated K and V), the MLP (its
// input, the gate and up results, their product; for experts of every routed copy) or the head (logits and their fp32
// softmax) hold.
Bytes activation_peak(const graph::Execution& execution, const graph::SequenceGroup& group);

}  // namespace llmperf::cost
