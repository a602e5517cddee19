// Memory of an execution: weights, KV cache, the activation peak and what the runtime keeps for itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "graph/decoder_graph.h"
#include "graph/stdit_graph.h"
#include "model/parameters.h"

namespace llmperf::cost {

// Of the device, or of the host; what a workload has none of is zero.
struct Memory {
  Bytes weights{};
  Bytes kv_cache{};     // of all sequences at their full length
  Bytes state{};        // of recurrences (and of compressors of keys), the same at every length
  Bytes draft{};        // weights of what drafts (speculative decoding)
  Bytes draft_cache{};  // its KV cache and its state; of llama.cpp also its compute buffers
  Bytes gradients{};    // of training, as the next three
  Bytes optimizer{};    // its state
  Bytes activation{};   // largest sum of tensors alive at once; of training what is kept between the passes
  Bytes workspace{};    // of one layer beside them: tensors computed again, gradients on their way, gathered weights
  Bytes reserve{};      // runtime context and workspaces
  Bytes total() const {
    return weights + kv_cache + state + draft + draft_cache + gradients + optimizer + activation + workspace + reserve;
  }
  Bytes allocated() const { return total() - reserve; }  // by tensors
};

// Bytes of KV cache, index keys among them, of `tokens` tokens in one layer of this kind, of which `kept` are in its
// window.
Bytes layer_kv_bytes(const model::CacheScheme& kv, const model::Attention& attention, std::int64_t kept,
                     std::int64_t tokens);
// … as the execution caches them.
Bytes layer_kv_bytes(const graph::Execution& execution, const model::Attention& attention, std::int64_t tokens);
// … of all layers, each where its weights are.
model::PlacedBytes kv_cache_bytes(const graph::Execution& execution, std::int64_t tokens);
// Bytes of a sequence's state in one layer, and in all of them. llama.cpp keeps inputs of convolutions in 32 bits, too.
Bytes layer_state_bytes(const graph::Execution& execution, const model::Layer& layer);
model::PlacedBytes state_bytes(const graph::Execution& execution);

// ---- One device of a plan

// What a device of pipeline stage `stage` holds: its share of the stage's layers; on the first stage the embedding, on
// the last the final norm and lm_head (a tied one a second time when the two stages differ). Without a plan the weights
// that are on the device (model::placed_weight_bytes).
Bytes stage_weight_bytes(const graph::Execution& execution, std::int64_t stage);
// Its routed experts, which are not among them where they have devices of their own (Plan::afd), each with so much.
Bytes expert_weight_bytes(const graph::Execution& execution, std::int64_t stage);
// What of it the allocator adds to the tensors themselves (Execution::allocation). Matrices that the runtime multiplies
// as one are one tensor.
Bytes stage_allocation_bytes(const graph::Execution& execution, std::int64_t stage);
// Bytes of KV cache that a device holds of one sequence of `tokens` tokens; `layers`: of each kind, on its stage.
Bytes stage_kv_bytes(const graph::Execution& execution, std::span<const std::int64_t> layers, std::int64_t tokens);
// … and of its state.
Bytes stage_state_bytes(const graph::Execution& execution, std::span<const std::int64_t> layers);
// Matrices outside the layers as the device of a stage holds them.
std::vector<model::Tensor> stage_outer_tensors(const graph::Execution& execution, std::int64_t stage);

// Of the vision tower, which every device of the first stage holds whole; nothing without one.
Bytes vision_weight_bytes(const graph::Execution& execution);

// Of the adapters that are served, a device's share on the stage: A and B beside each matrix, whole where it is.
Bytes adapter_weight_bytes(const graph::Execution& execution, std::int64_t stage);

// Largest set of activation tensors alive at once in a step: the residual stream plus, whichever is largest, what
// attention (q, k, v and its result; without flash attention two score matrices and the repeated K and V), the MLP (its
// input, the gate and up results, their product; for experts of every routed copy) or the head (logits and their fp32
// softmax) hold. Of one device of the plan.
Bytes activation_peak(const graph::Execution& execution, const graph::SequenceGroup& group);
// … of a device of experts (Plan::afd): the copies of tokens that meet there, what is between their products, and their
// results.
Bytes expert_activation_peak(const graph::Execution& execution, const graph::SequenceGroup& group);
// … in the pass of the vision tower over images: the residual stream and, whichever is larger, what attention or the
// MLP of a layer hold, and the rows that the tower makes. Of one device.
Bytes vision_activation_peak(const graph::Execution& execution, const graph::SeenImages& images);
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

// What llmperf takes for llama.cpp's compute buffers, its own reading of the sizes llama.cpp prints (docs/formulas.md):
// they are sized once, for a micro-batch of tokens that attend to all `cells` cells of the cache, in fp32. Of a model
// over several devices, of the one of pipeline stage `stage`.
// The host also holds the embedded tokens, the mask and the logits of `sequences` tokens; a device that is sent weights
// and caches has room for the largest of each.
model::PlacedBytes compute_buffers(const graph::Execution& execution, std::int64_t sequences, std::int64_t cells,
                                   std::int64_t stage = 0);

// ---- A video generation on one device of a plan. All models stay loaded; activations are those of the phase that
// needs most.

struct VideoMemory {
  Bytes transformer;
  Bytes text_encoder;
  Bytes autoencoder;
  Bytes text_activation;  // largest sum of tensors alive at once, by phase
  Bytes step_activation;
  Bytes decode_activation;
  Bytes kept;  // keys and values of all pieces of the latent, from step to step; nothing where it is whole
  Bytes weights() const { return transformer + text_encoder + autoencoder; }
  Bytes activation() const;  // of the largest phase
};

// What a device holds: its share of the blocks' matrices under tensor and pipeline axes, the rest whole.
VideoMemory video_memory(const graph::VideoExecution& execution);
// … of a pipeline stage of `units` units of the depth.
VideoMemory video_memory(const graph::VideoExecution& execution, double units);

}  // namespace llmperf::cost
