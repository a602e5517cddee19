// The backward pass and the parameter update, from the ops of a forward pass.
#pragma once

#include <array>
#include <cstdint>

#include "base/dtype.h"
#include "base/units.h"
#include "base/words.h"
#include "graph/decoder_graph.h"

namespace llmperf::graph {

// What is computed again in the backward pass instead of being kept: nothing; attention's scores and what follows from
// them (arXiv 2205.05198 section 5); every layer, of which only the input is kept; every second product and all vector
// work (torchtitan's operators); the parts of layers that TrainingOptions::modules has; or every layer, whose input
// waits on the host.
LLMPERF_WORDS(Recompute, none, selective, full, ops, modules, offload);
constexpr std::string_view name(Recompute r) { return word_at(kRecomputeWords, static_cast<std::size_t>(r)); }

// Parts of layers that are computed again, as bits by Module; Megatron's --recompute-modules.
LLMPERF_WORDS(Module, core_attn, mlp, moe_act, layernorm, mla_up_proj, moe, shared_experts);
constexpr std::string_view name(Module m) { return word_at(kModuleWords, static_cast<std::size_t>(m)); }

// What the products of layers multiply, in forward and backward passes; attention, head and router stay in 16 bits.
// The recipes of 8 bits have a scale per tensor, per row, per block of 128 x 128 and per 32 elements.
LLMPERF_WORDS(Products, wide, fp8, fp8_rowwise, fp8_block, mxfp8, nvfp4);
constexpr std::string_view name(Products p) {
  constexpr std::array<std::string_view, 6> kNames = {"bf16", "fp8", "fp8-rowwise", "fp8-block", "mxfp8", "nvfp4"};
  return kNames[static_cast<std::size_t>(p)];
}
constexpr Dtype type_of(Products products) { return products == Products::nvfp4 ? Dtype::fp4 : Dtype::fp8; }

// How logits become a loss: whole, with an fp32 copy and a gradient in place; piece by piece; or never in memory, the
// product computed again.
LLMPERF_WORDS(Loss, plain, chunked, fused);
constexpr std::string_view name(Loss loss) { return word_at(kLossWords, static_cast<std::size_t>(loss)); }

// In which order the stages of a pipeline take micro-batches: 1F1B, plain or interleaved (arXiv 2104.04473); those that
// move gradients of weights into the gaps (ZB-H1, arXiv 2401.10241; its V of two runs a stage, and the two that hold
// half and a third of the activations, arXiv 2405.15362); DualPipe of DeepSeek-V3 (arXiv 2412.19437, table 2).
LLMPERF_WORDS(Schedule, one_forward, zb_h1, zb_v, v_half, v_min, dualpipe);
constexpr std::string_view name(Schedule s) {
  constexpr std::array<std::string_view, 6> kNames = {"1f1b", "zb-h1", "zb-v", "v-half", "v-min", "dualpipe"};
  return kNames[static_cast<std::size_t>(s)];
}

// What is divided over the devices that hold the same weights (arXiv 1910.02054): 1 the optimiser's state, 2 the
// gradients too, 3 the weights too.
struct TrainingOptions {
  Recompute recompute = Recompute::none;
  double recomputed_share = 1;  // of the layers, those that compute again
  unsigned modules = 0;         // of Recompute::modules
  int zero = 0;
  bool stays_gathered = false;  // ZeRO 3 whose weights are gathered once for both passes
  std::int64_t shard = 0;       // devices over which ZeRO divides, replicas beyond; 0: all that hold the same
  Schedule schedule = Schedule::one_forward;
  std::int64_t chunks = 1;  // runs of layers on one pipeline stage (interleaved 1F1B, arXiv 2104.04473); 1: plain 1F1B
  double gradient_bits = 16;     // of an accumulated gradient
  double optimizer_bits = 96;    // per parameter: fp32 copy of the weights and Adam's two moments
  bool fused_gradients = true;   // a product adds to the gradients kept in memory; off: another kernel adds its result
  bool overlapped_sums = true;   // exchanges of the tensor axis run beside products of the backward pass where they can
  bool updates_at_once = false;  // gradients are consumed layer by layer, as they come
  Products products = Products::wide;
  Adapters adapters = {};
  Loss loss = Loss::plain;
  std::int64_t loss_chunks = 8;  // of Loss::chunked
  bool graphs = false;           // the host launches recorded graphs
  bool eager = false;            // element-wise ops run one by one, as PyTorch has them without torch.compile
  bool async_sums = false;       // exchanges of the tensor axis run piece by piece beside the products they belong to
  bool shared_beside = false;    // shared experts run beside tokens on their way to routed ones
  bool operator==(const TrainingOptions&) const = default;
};

// How vector ops move data: each tensor once, or as the kernels of a framework do (training_graph.cpp).
enum class Kernels : bool { ideal, framework };
// What a layer that computes again runs: all of it (Megatron's checkpoints), or up to the last op whose input the
// backward pass needs, which leaves its last product out (PyTorch's, and what a compiler finds dead).
enum class Again : bool { all, needed };

// Replaces the contents of `forward` with the ops of an ideal forward pass (of an execution with `training` set) as the
// kernels of a framework run them. What ops keep for the backward pass stays what it is.
void use_framework_kernels(const Graph& ideal, Graph& forward);

// Replaces the contents of `backward` with the ops that differentiate `forward` (of an execution with `training` set),
// in reverse order, recomputation included: per matrix product two, per collective its dual. Without recomputation the
// FLOPs of matrix products are twice those of the forward pass; of flash attention, which computes its scores again,
// two and a half times.
void build_backward(const Graph& forward, const TrainingOptions& options, Graph& backward,
                    Kernels kernels = Kernels::ideal, Again runs = Again::all);

// Of what `op` keeps, the share that is given up and computed again.
double given_up(const Op& op, const TrainingOptions& options);

// Bytes that an element-wise op of a layer moves more in PyTorch without torch.compile. RMSNorm makes fp32 of its
// input, squares, averages, multiplies and rounds in kernels of their own, 36 bytes of an element in 16 bits where one
// kernel moves 4, and what it adds before takes another one; a rotation multiplies complex fp32, 20 where it moves 4; a
// gate is activated before it multiplies, 10 where it moves 6. Backward passes move twice as much more.
Bytes moved_eagerly(const Op& op);
// Whether the op is of experts that all tokens go through, in a layer that routes to others as well.
bool is_of_shared_experts(Tag tag);

// Makes the forward ops those of a run with these options: adapters beside products, weights that are stored in fewer
// bits made wide before each. `wide`: the format of weights of the activations' type.
void add_adapters(const TrainingOptions& options, const model::StoredFormat& wide, Graph& forward);
// Whether the op multiplies narrow operands.
bool is_narrowed(const Op& op, const TrainingOptions& options);
// Before every product of a layer that multiplies narrow operands, what makes them so, in so many passes over them; in
// either direction.
void narrow_products(const TrainingOptions& options, double passes, Graph& graph);

}  // namespace llmperf::graph
