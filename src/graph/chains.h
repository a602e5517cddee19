// Chains of element-wise operations that no kernel does in one: the kernels of an eager framework, and those that a
// graph compiler leaves after merging neighbours (PyTorch's operators as transformers' models and their Ascend ports
// call them). In tensors of the chain's shape, `narrow` of the activation type and `wide` in fp32; statistics of a row
// are left out. Internal to src/graph.
//
// RMSNorm of x, framework, as reads > writes:
//   widen x (n > w), square (w > w), mean (w > row), add epsilon, root, scale x (w > w), narrow (w > n), weight (n > n)
// so 10 tensors of 16 bits are read and 8 written, where one kernel reads and writes one each.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "hardware/runtime.h"

namespace llmperf::graph {

struct Chain {
  double narrow_reads = 0;
  double wide_reads = 0;
  double narrow_writes = 0;
  double wide_writes = 0;
  std::int32_t launches = 1;
  std::int32_t views = 0;

  double reads(Dtype activation) const { return narrow_reads + wide_reads * 32 / bits(activation); }
  double writes(Dtype activation) const { return narrow_writes + wide_writes * 32 / bits(activation); }
};

struct Chained {
  Chain framework;
  Chain compiled;
  const Chain& of(hardware::Chains chains) const { return chains == hardware::Chains::compiled ? compiled : framework; }
};

// Compiled: widen; square and mean; scale, narrow and weight.
inline constexpr Chained kNormChain = {{2, 4, 2, 3, 8}, {1, 2, 1, 1, 3}};
// x cos + rotated(x) sin, rotated(x) from a negated half and a concatenation. Compiled: these two, and the rest.
inline constexpr Chained kRopeChain = {{5.5, 0, 4.5, 0, 5, 2}, {5, 0, 3, 0, 3, 2}};
// Scores are divided and the mask is added (its own reads are one head's). Compiled: with the cast that softmax needs.
inline constexpr Chained kMaskChain = {{2, 0, 2, 0, 2}, {1, 0, 0, 1, 1}};
// Framework: widen, softmax in fp32, narrow.
inline constexpr Chained kSoftmaxChain = {{1, 2, 1, 2, 3}, {0, 2, 1, 1, 2}};
// Divide, tanh, multiply.
inline constexpr Chained kSoftcapChain = {{3, 0, 3, 0, 3}, {1, 0, 1, 0, 1}};

// Kernels that derive a step's mask from the tokens' positions: each reads and writes a mask in bytes.
inline constexpr std::int32_t kMaskKernels = 10;

}  // namespace llmperf::graph
