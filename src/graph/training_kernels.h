// The vector ops of training as a framework's kernels run them. An ideal pass reads and writes each tensor once and
// needs no layout but its own; kernels fuse some neighbours, spend passes on layouts, and reduce gradients of biases
// and norms in kernels of their own. Bytes per element with 16-bit activations, forward and backward, in Megatron
// (arXiv 2205.05198; fused softmax, bias-dropout-add and bias-GeLU of its code):
//
//   softmax          3 / 4    reads the causal half, writes everything
//   dropout of it    5 / 5    the mask takes a byte
//   LayerNorm        4 / 10   backward: one kernel for the input, one that reads the same again for gain and bias
//   bias-dropout-add 7 / 7    backward: one kernel for the input, one for the bias
//   residual         - / 6    the gradient that goes past a norm is added
//   bias-GeLU        4 / 8    backward: 6, and 2 for the bias
//   QKV bias         4 / 2    of 3 h elements
//   heads            4 / 4    from [heads, tokens] to [tokens, heads]
//   Q, K, V          - / 20   of h elements: gradients of Q and K are brought to the layout of V's (8), all three are
//                             put together (12)
//   cross entropy   38 / 14   fp32: widen 6, maximum 4, subtract 8, exponential 8, sum 4, divide 8; backward scale 8,
//                             narrow 6
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "graph/op.h"

namespace llmperf::graph {

// Replaces the contents of `forward` with the ops of an ideal forward pass (of an execution with `training` set) as
// such kernels run them. What ops keep for the backward pass stays what it is.
void use_framework_kernels(const Graph& ideal, Graph& forward);

// One vector op that stands for several kernels.
struct KernelChain {
  Vector body;
  std::int32_t launches = 1;
};
// What differentiates op `i`, a vector, of a forward pass with such kernels, where one that moves each tensor once is
// `ideal`. `adds_residual`: another gradient goes past it.
std::optional<KernelChain> framework_derivative(const Graph& forward, std::size_t i, const std::optional<Vector>& ideal,
                                                bool adds_residual);

}  // namespace llmperf::graph
