// How one model is spread over many devices. A plan changes the ops of a step: it divides their shapes and inserts the
// collectives that the division costs. Volumes and memory follow from the ops; nothing else knows about strategies.
//
// Devices are numbered with the tensor axis fastest, then ulysses, ring, data, and the pipeline slowest, so that the
// axes that talk most have neighbours (usually a node) to themselves. Experts are spread over the tensor axis first and
// over the axes beyond it after that.
//
// Or on devices of their own (attention-FFN disaggregation: MegaScale-Infer, arXiv 2504.02263; Step-3, arXiv
// 2507.19427; xDeepServe, arXiv 2508.02520): all else of the layers, shared experts with it, is on the devices of the
// other axes, whose tokens are sent to those of the experts and back in every layer. Both kinds are alike and lie
// between each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op.h"
#include "model/decoder.h"
#include "model/weight_layout.h"

namespace llmperf::graph {

inline constexpr std::int64_t kMostDevices = 1 << 20;  // of a plan, and of each of its axes

struct Plan {
  std::int64_t tensor = 1;         // heads and the widths of the MLP (Megatron, arXiv 1909.08053)
  std::int64_t tensor_rows = 0;    // > 0: two-dimensional: weights over tensor_rows x (tensor / tensor_rows)
  bool sequence_parallel = false;  // norms and residual stream over the tensor axis too (arXiv 2205.05198)
  std::int64_t ulysses = 1;        // the sequence, heads inside attention (arXiv 2309.14509)
  std::int64_t ring = 1;           // the sequence, K and V passed round (arXiv 2310.01889)
  bool gathers_keys = false;       // … or gathered whole before attention (arXiv 2407.21783, section 3.3.2)
  std::int64_t expert = 1;         // routed experts
  std::int64_t expert_copies = 0;  // … of which so many are held a second time, so that none has too many tokens
  std::int64_t shared_ranks = 0;   // > 0: so many of the devices of `expert` hold a shared expert each, the others none
  bool afd = false;                // those of `expert` are devices of their own, which hold nothing else
  std::int64_t data = 1;           // whole replicas, each with its share of the batch
  std::int64_t pipeline = 1;       // layers, in runs (stage_split.h)
  // What tokens travel to experts of other devices as, and their results back; none: as the experts' products take them
  // where that is narrower than activations, and as activations.
  std::optional<Dtype> expert_dispatch = std::nullopt;
  std::optional<Dtype> expert_combine = std::nullopt;
  bool shard_embedding = true;  // embedding and lm_head by vocabulary over the tensor axis; off: replicated

  // Devices of the expert axis that hold routed experts, and how many such each of them holds of `count`.
  std::int64_t routed_ranks() const { return expert > shared_ranks ? expert - shared_ranks : 1; }
  std::int64_t held_experts(std::int64_t count) const { return (count + expert_copies) / routed_ranks(); }
  std::int64_t sequence() const { return ulysses * ring; }
  std::int64_t replicas() const { return sequence() * data; }  // devices that hold the same dense weights
  std::int64_t stage() const { return tensor * replicas(); }   // devices of one pipeline stage
  std::int64_t devices() const { return stage() * pipeline + (afd ? expert : 0); }
  // Whether tokens travel to experts, and of how many devices they meet there.
  bool sends_tokens() const { return afd || expert > tensor; }
  std::int64_t routing_devices() const { return afd ? stage() : expert; }
  std::int64_t tensor_columns() const { return tensor_rows > 0 ? tensor / tensor_rows : tensor; }
  // Devices over which the matrices of one expert are divided; experts themselves are over `expert` devices.
  std::int64_t expert_tensor() const { return expert < tensor && !afd ? tensor / expert : 1; }
  // Devices that hold the same expert weights.
  std::int64_t expert_replicas() const { return stage() / (expert * expert_tensor()); }
  std::int64_t stride(Axis axis) const;
  bool operator==(const Plan&) const = default;
};

// "tp 8, pp 2, ulysses 4 x ring 2, sp"; "1 device" for the plan that divides nothing.
std::string to_text(const Plan& plan);
// "tp 8", "dp8 ep8", "tp 2, ep 4": each axis of tp, pp, dp and ep once at most; nothing for what is no such plan.
std::optional<Plan> parse_plan(std::string_view text);

// What one device holds of a layer: heads, KV heads (at least one: fewer than the tensor axis are replicated), MLP
// width, experts and their width divided. Norms, routers and the latents of latent attention are whole on every device.
model::Layer shard(const model::Layer& layer, const Plan& plan);
// Rows of the vocabulary that one device holds.
std::int64_t shard_vocab(const model::Decoder& model, const Plan& plan);

// Whether the plan's axes fit one another and the model (not yet the batch and the sequence). Allocates nothing.
bool legal(const model::Decoder& model, const Plan& plan);
// The same with reasons: one message per broken rule, each with a hint that names the nearest legal degrees.
struct Problem {
  std::string message;
  std::string hint;
};
std::vector<Problem> problems(const model::Decoder& model, const Plan& plan);
// Throws Error(bad_input) that says them all, where there are any.
void refuse(const std::vector<Problem>& problems);
// "4 or 8": the degrees nearest to `degree`, which does not, that divide `total`.
std::string nearest_divisors(std::int64_t degree, std::int64_t total);
// Pieces that a sequence is cut into: 2 * ring for an equal causal load, in whole tokens per device.
std::int64_t sequence_pieces(const Plan& plan);
// Tokens of a prompt must be a multiple of this: the pieces, and under sequence parallelism as many tokens for every
// device of the tensor axis.
std::int64_t sequence_multiple(const Plan& plan);

}  // namespace llmperf::graph
