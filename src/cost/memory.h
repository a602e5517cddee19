// Memory of an execution: weights, KV cache, the activation peak and what the runtime keeps for itself.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "graph/decoder_graph.h"

namespace llmperf::cost {

// Of the device, or of the host.
struct Memory {
  Bytes weights;
  Bytes kv_cache;    // of all sequences at their full length
  Bytes activation;  // largest sum of tensors alive at once
  Bytes reserve;     // runtime context and workspaces
  Bytes total() const { return weights + kv_cache + activation + reserve; }
};

// Bytes of KV cache of `tokens` tokens in one layer of this kind.
Bytes layer_kv_bytes(const model::CacheScheme& kv, const model::Attention& attention, std::int64_t tokens);
// … of all layers, each where its weights are.
model::PlacedBytes kv_cache_bytes(const graph::Execution& execution, std::int64_t tokens);

// Largest set of activation tensors alive at once in a step: the residual stream plus, whichever is largest, what
// attention (q, k, v and its result; without flash attention two score matrices and the repeated K and V), the MLP (its
// input, the gate and up results, their product; for experts of every routed copy) or the head (logits and their fp32
// softmax) hold.
Bytes activation_peak(const graph::Execution& execution, const graph::SequenceGroup& group);

// llama.cpp sizes its buffers once, for a micro-batch of tokens that attend to all `cells` cells of the cache, in fp32.
// compute_terms gives the candidates among which the largest counts, in elements per token, of what runs on the host or
// on the device; 0 for what does not run there.
struct ComputeTerms {
  double head = 0;
  double attention = 0;
  double mlp = 0;
  double largest() const { return std::max({head, attention, mlp}); }
};
ComputeTerms compute_terms(const graph::Execution& execution, std::int64_t cells, bool on_host);

// What llmperf takes for llama.cpp's compute buffers, its own reading of the sizes llama.cpp prints (docs/formulas.md).
// The host also holds the embedded tokens, the mask and the logits of `sequences` tokens; a device that is sent weights
// and caches has room for the largest of each.
model::PlacedBytes compute_buffers(const graph::Execution& execution, std::int64_t sequences, std::int64_t cells);
// What a device holds of a layer on the host while it computes it: the largest matrix and the cache. 0 without such a
// layer, or when micro-batches are so small that the host computes it.
Bytes largest_sent(const graph::Execution& execution, std::int64_t cells);

}  // namespace llmperf::cost
