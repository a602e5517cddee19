// From a decoder and a step to the ops of that step on one device.
#pragma once

#include <span>

#include "graph/op.h"
#include "hardware/runtime.h"
#include "model/decoder.h"
#include "model/quantization.h"

namespace llmperf::graph {

// `count` sequences that each process `new_tokens` while `context` tokens are already cached.
// Prefill of B prompts is {B, P, 0}; one decode step {B, 1, context}; chunked prefill and continuous batching are
// mixtures.
struct SequenceGroup {
  std::int64_t count = 1;
  std::int64_t new_tokens = 1;
  std::int64_t context = 0;
};

// How a model is executed: everything but the step itself. Must outlive the graphs built from it (ops point to its
// formats).
struct Execution {
  const model::Decoder* model = nullptr;
  model::WeightScheme weights;
  Dtype kv = Dtype::bf16;
  Dtype activations = Dtype::bf16;
  hardware::RuntimeOptions runtime;
};

enum class Part : unsigned char { all, context_dependent };

// Replaces the contents of `graph` (whose capacity is reused) with the ops of one step, in execution order. With
// Part::context_dependent only those ops that change when contexts grow are built, the same ones in the same order as
// the ops flagged grows_with_context in the whole graph.
void build_step(const Execution& execution, std::span<const SequenceGroup> step, Part part, Graph& graph);

// Expected number of distinct experts that `tokens` tokens reach when each picks `per_token` of `experts` uniformly:
// E (1 - (1 - k/E)^tokens). Exactly per_token for one token.
double experts_reached(std::int64_t experts, std::int64_t per_token, std::int64_t tokens);

// Whether latent attention runs in its absorbed form (scores against the cached latents themselves) rather than expand
// keys and values from them: when that takes fewer FLOPs per cached token. A prompt without a cache has none to save
// and expands its own latents. All decode steps decide alike, whatever their context.
bool latent_absorbed(const model::Attention& attention, const SequenceGroup& group);

}  // namespace llmperf::graph
