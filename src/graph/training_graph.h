// The backward pass and the parameter update, from the ops of a forward pass.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/units.h"
#include "graph/decoder_graph.h"

namespace llmperf::graph {

// What is computed again in the backward pass instead of being kept: nothing; attention's scores and what follows from
// them (arXiv 2205.05198 section 5); or every layer, of which only the input is kept.
enum class Recompute : unsigned char { none, selective, full };
inline constexpr std::array kRecomputes = {Recompute::none, Recompute::selective, Recompute::full};
std::string_view name(Recompute recompute);

// What is divided over the devices that hold the same weights (arXiv 1910.02054): 1 the optimiser's state, 2 the
// gradients too, 3 the weights too.
struct TrainingOptions {
  Recompute recompute = Recompute::none;
  int zero = 0;
  std::int64_t chunks = 1;  // runs of layers on one pipeline stage (interleaved 1F1B, arXiv 2104.04473); 1: plain 1F1B
  double gradient_bits = 16;    // of an accumulated gradient
  double optimizer_bits = 96;   // per parameter: fp32 copy of the weights and Adam's two moments
  bool fused_gradients = true;  // a product adds to the gradients kept in memory; off: another kernel adds its result
  bool overlapped_sums = true;  // exchanges of the tensor axis run beside products of the backward pass where they can
  bool operator==(const TrainingOptions&) const = default;
};

// How vector ops move data: each tensor once, or as the kernels of a framework do (training_graph.cpp).
enum class Kernels : bool { ideal, framework };

// Replaces the contents of `forward` with the ops of an ideal forward pass (of an execution with `training` set) as the
// kernels of a framework run them. What ops keep for the backward pass stays what it is.
void use_framework_kernels(const Graph& ideal, Graph& forward);

// Replaces the contents of `backward` with the ops that differentiate `forward` (of an execution with `training` set),
// in reverse order, recomputation included: per matrix product two, per collective its dual. Without recomputation the
// FLOPs of matrix products are twice those of the forward pass; of flash attention, which computes its scores again,
// two and a half times.
void build_backward(const Graph& forward, const TrainingOptions& options, Graph& backward,
                    Kernels kernels = Kernels::ideal);

// Whether what `op` keeps is given up and computed again.
bool recomputed(const Op& op, Recompute recompute);

}  // namespace llmperf::graph
