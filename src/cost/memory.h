// Memory of an execution: weights, KV cache, the activation peak and what the runtime keeps for itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "graph/decoder_graph.h"
#include "model/parameters.h"

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

// ---- One device of a plan

// What a device of pipeline stage `stage` holds: its share of the stage's layers; on the first stage the embedding, on
// the last the final norm and lm_head (a tied one a second time when the two stages differ). Without a plan the weights
// that are on the device (model::placed_weight_bytes).
Bytes stage_weight_bytes(const graph::Execution& execution, std::int64_t stage);
// What of it the allocator adds to the tensors themselves (Execution::allocation). Matrices that the runtime multiplies
// as one are one tensor.
Bytes stage_allocation_bytes(const graph::Execution& execution, std::int64_t stage);
// Bytes of KV cache that a device holds of one sequence of `tokens` tokens; `layers`: of each kind, on its stage.
Bytes stage_kv_bytes(const graph::Execution& execution, std::span<const std::int64_t> layers, std::int64_t tokens);
// Matrices outside the layers as the device of a stage holds them.
std::vector<model::Tensor> stage_outer_tensors(const graph::Execution& execution, std::int64_t stage);

// Largest set of activation tensors alive at once in a step: the residual stream plus, whichever is largest, what
// attention (q, k, v and its result; without flash attention two score matrices and the repeated K and V), the MLP (its
// input, the gate and up results, their product; for experts of every routed copy) or the head (logits and their fp32
// softmax) hold. Of one device of the plan.
Bytes activation_peak(const graph::Execution& execution, const graph::SequenceGroup& group);
// Its terms: how many tokens a device computes in the step, how much of the residual stream it keeps, over how many
// devices the scores and the repeated K and V are divided beyond that, and how many copies of a token go to its
// experts.
struct StepShare {
  double tokens = 0;
  double residual_elements = 0;
  double score_ranks = 1;
  double repeat_ranks = 1;
  double expert_copies = 0;  // of all tokens, per expert that a token is sent to
};
StepShare step_share(const graph::Execution& execution, const graph::SequenceGroup& group);

// llama.cpp sizes its buffers once, for a micro-batch of tokens that attend to all `cells` cells of the cache, in fp32.
// compute_terms gives the candidates among which the largest counts, in elements per token, of what runs on the host or
// on the device; 0 for what does not run there. Of a model over several devices, of the one of pipeline stage `stage`.
struct ComputeTerms {
  double head = 0;
  double attention = 0;
  double mlp = 0;
  double largest() const { return std::max({head, attention, mlp}); }
};
ComputeTerms compute_terms(const graph::Execution& execution, std::int64_t cells, bool on_host, std::int64_t stage = 0);

// What llmperf takes for llama.cpp's compute buffers, its own reading of the sizes llama.cpp prints (docs/formulas.md).
// The host also holds the embedded tokens, the mask and the logits of `sequences` tokens; a device that is sent weights
// and caches has room for the largest of each.
model::PlacedBytes compute_buffers(const graph::Execution& execution, std::int64_t sequences, std::int64_t cells,
                                   std::int64_t stage = 0);
// What a device holds of a layer on the host while it computes it: the largest matrix and the cache. 0 without such a
// layer, or when micro-batches are so small that the host computes it.
Bytes largest_sent(const graph::Execution& execution, std::int64_t cells);

}  // namespace llmperf::cost
