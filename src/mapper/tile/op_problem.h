// From an op of a graph to the problem that tiles are given.
#pragma once

#include <optional>
#include <variant>

#include "cost/work.h"
#include "graph/op.h"
#include "mapper/tile/attention_mapping.h"
#include "mapper/tile/gemm_mapping.h"
#include "mapper/tile/vector_mapping.h"

namespace llmperf::mapper::tile {

using Problem = std::variant<GemmProblem, AttentionProblem, VectorProblem>;

// `work` is that of one execution of the op. Nothing for ops that the tiles have no part in, and for the backward pass
// of attention.
std::optional<Problem> problem_of(const graph::Op& op, const cost::Work& work);

}  // namespace llmperf::mapper::tile
