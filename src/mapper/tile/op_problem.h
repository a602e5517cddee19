// From an op of a graph to the problem that tiles are given.
#pragma once

#include <optional>
#include <variant>

#include "cost/work.h"
#include "graph/op.h"
#include "hardware/runtime_profile.h"
#include "mapper/tile/attention.h"
#include "mapper/tile/gemm.h"
#include "mapper/tile/vector.h"

namespace llmperf::mapper::tile {

using Problem = std::variant<GemmProblem, AttentionProblem, VectorProblem>;

// `work` is that of one execution of the op. Nothing for ops that the tiles have no part in, and for the backward pass
// of attention.
// `choices`, if any: of the stack whose kernels these are. They say whether attention computes what a causal mask
// hides, and what sums are kept in.
std::optional<Problem> problem_of(const graph::Op& op, const cost::Work& work,
                                  const hardware::KernelChoices* choices = nullptr);

}  // namespace llmperf::mapper::tile
