// From a decoder and a step to the ops of that step on one device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "graph/expert_placement.h"
#include "graph/op.h"
#include "graph/plan.h"
#include "graph/stage_split.h"
#include "hardware/runtime.h"
#include "model/decoder.h"
#include "model/quantization.h"
#include "model/vision.h"
#include "model/weight_layout.h"

namespace llmperf::graph {

// `count` sequences that each process `new_tokens` while `context` tokens are already cached.
// Prefill of B prompts is {B, P, 0}; one decode step {B, 1, context}; chunked prefill and continuous batching are
// mixtures. A decode step that verifies (speculative decoding) has several new tokens as well: what the sequence would
// say next if guesses are right. It runs as decode does, and takes the logits of every token.
struct SequenceGroup {
  std::int64_t count = 1;
  std::int64_t new_tokens = 1;
  std::int64_t context = 0;
  bool verifies = false;
  std::int64_t longest = 0;  // context of the longest, where `context` is the mean of unequal ones; 0: all are alike
  bool prompts() const { return new_tokens > 1 && !verifies; }
  std::int64_t sampled() const { return verifies ? count * new_tokens : count; }  // tokens that another is drawn after
};

// What a stack's allocator makes of a tensor of weights: `padding` bytes more, rounded up to whole granules.
struct Allocation {
  std::int64_t padding = 0;
  std::int64_t granule = 1;
};

// Matrices of low rank beside frozen weights (arXiv 2106.09685): Y = X W^T + (X A^T) B^T, A of [rank, k], B of [n,
// rank].
struct Adapters {
  std::int64_t rank = 0;    // 0: there are none
  bool attention = true;    // beside q, k, v and o
  bool joint = false;       // q, k and v, and gate and up, have one adapter together
  bool mlp = false;         // beside the feed-forward products, experts' included
  std::int64_t served = 1;  // different ones that are held, of which every request of a step uses one
  bool any() const { return rank > 0; }
  // How many of one adapter stand beside a product; 0: none.
  std::int64_t beside(Tag tag) const;
  // Those that `requests` requests are expected to use when each of them takes any alike.
  double used(double requests) const;
  bool operator==(const Adapters&) const = default;
};

// Rows from which a product with weights left on the host is worth sending them to the device, weights and all: the
// threshold of ggml's schedulers.
inline constexpr std::int64_t kStreamedRows = 32;

// A node: experts on more devices are balanced by those who run them.
inline constexpr std::int64_t kUnbalancedRanks = 8;

// How a model is executed: everything but the step itself. Must outlive the graphs built from it (ops point to its
// formats).
struct Execution {
  const model::Decoder* model = nullptr;
  model::WeightLayout weights;
  model::CacheScheme kv;
  model::StoredFormat vision_weights;  // of a vision tower and of adapters, which checkpoints keep in 16 bits
  Adapters adapters;                   // served
  Dtype activations = Dtype::bf16;
  hardware::RuntimeOptions runtime;
  std::int64_t micro_batch = 512;  // GGUF: tokens that are computed at once at most; longer steps are cut
  bool windows = true;             // sliding windows are honoured
  Allocation allocation;           // of weights on the devices of a plan
  Popularity routing;              // of experts among tokens
  Plan plan;                       // how the step is spread over devices; the ops are those of one of them
  StageSplit split;                // of the layers over the plan's stages; no runs: all of one length
  bool streams_weights = true;     // products of many rows with weights left on the host run on the device
  bool draws = false;              // tokens by top-k and top-p, on the device; else the likeliest is taken
  bool ideal = false;              // nothing is lost that could be avoided, such as experts unevenly placed
  bool training = false;           // a forward pass to be differentiated: no cache, dropout, the loss over all tokens

  // Keys that a query sees at most: none where windows are not honoured.
  std::optional<std::int64_t> window(const model::Attention& a) const;
  // Whether the device computes micro-batches of so many rows with what the host keeps, experts or not: ggml counts
  // tokens.
  bool streams(std::int64_t rows) const { return streams_weights && rows >= kStreamedRows; }
  // Where measured loads put the experts; null where none were given.
  const Placement* placement() const;
  // Whether devices that share experts differ by chance alone where no loads were measured: by copies, which those have
  // who spread experts widely (DeepSeek's EPLB, on by the guides of vLLM, SGLang and TensorRT-LLM).
  bool levels_experts() const { return ideal || plan.expert_copies > 0 || plan.expert > kUnbalancedRanks; }
  // Whether the shared expert is one of the routed ones, stored alike (RuntimeOptions::fused_shared_expert).
  bool joins_shared_expert(const model::Experts& x) const;
  // Of the group's layers, those of pipeline stage `stage`.
  std::int64_t stage_layers(const model::LayerGroup& group, std::int64_t stage) const;
  // Of the `tokens` of a sequence, those that a layer keeps in its cache.
  std::int64_t cached_tokens(const model::Attention& a, std::int64_t tokens) const;
  // Index keys as they are cached: llama.cpp has them in the type of keys.
  model::IndexRow index_row(const model::Attention& a) const;
};

// Of a replica's `tokens` in a step, those that choose among the experts of a device's group: with experts beyond the
// tensor axis every device of it routes its share.
std::int64_t routed_tokens(const Plan& plan, std::int64_t tokens);
// What of a layer's experts the device has that the step waits for, when `routed` tokens choose among them: the
// busiest; in training, whose loss spreads tokens over experts, any.
ExpertLoad load_of_device(const Execution& execution, const model::Experts& experts, std::int64_t routed);

enum class Part : unsigned char { all, context_dependent, groups };

// Whether a step's tokens are divided over the sequence axes: those of prompts are. A single new token is not; its step
// runs whole on every device of these axes, each with its share of the cache.
bool splits_sequence(const Plan& plan, std::span<const SequenceGroup> step);
// Whether the residual stream is divided over the tensor axis: with sequence parallelism, in steps of prompts.
bool splits_residual(const Plan& plan, std::span<const SequenceGroup> step);

// Replaces the contents of `graph` (whose capacity is reused) with the ops of one step, in execution order: those of
// one device of every pipeline stage, one stage after the other. `step` is the share of one replica (Plan::data). With
// Part::context_dependent only those ops that change when contexts grow are built, the same ones in the same order as
// the ops flagged grows_with_context in the whole graph; with Part::groups those of Scope::group.
void build_step(const Execution& execution, std::span<const SequenceGroup> step, Part part, Graph& graph);

// Whether queries attend to keys that were chosen for each: from the first key on that a query cannot see for their
// number.
bool chooses_keys(const model::Attention& attention, const SequenceGroup& group);

// Whether latent attention runs in its absorbed form (scores against the cached latents themselves) rather than expand
// keys and values from them: when that takes fewer FLOPs per cached token. A prompt without a cache has none to save
// and expands its own latents, unless the stack leaves all `prompts` as they are. All decode steps decide alike,
// whatever their context.
bool latent_absorbed(const model::Attention& attention, const SequenceGroup& group, bool prompts = false);

// ---- A vision tower and images: the ops of its pass over them, before a prompt is prefilled

// `count` images of one size, which the tower of the execution's model sees together. The devices of the tensor axis
// each hold the whole tower and take their share of the images; the others' rows are gathered behind it.
struct SeenImages {
  std::int64_t count = 0;
  model::SeenImage each;
};
// Of them, those of one device.
std::int64_t images_of_device(const Execution& execution, std::int64_t images);

// Replaces the contents of `graph` with the ops of one device, in execution order.
void build_vision(const Execution& execution, const SeenImages& images, Graph& graph);

}  // namespace llmperf::graph
