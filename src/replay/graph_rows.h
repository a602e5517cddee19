// The ops of a graph as what a backend can be asked to run: the inverse of calibrate::ops_of.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "calibrate/op_row.h"
#include "graph/op.h"

namespace llmperf::replay {

// One op of a step, or of a list: what is timed once however often the step executes it.
struct DistinctOp {
  std::vector<std::string> names;  // of the graph's ops that are this one: "qkv_proj"
  std::int64_t count = 0;          // executions per step; 0: not of a step
  // What to run, or why no backend can: "is the chain of 4 kernels of an eager framework".
  std::variant<calibrate::OpRow, std::string> what;
};

// Where an op of a step stands. A step executes its places in order; those of equal layers follow each other as often
// as there are layers.
struct StepPlace {
  std::size_t op = 0;       // into Step::ops
  std::int64_t repeat = 1;  // executions in a row
};
struct StepBlock {
  std::vector<StepPlace> places;
  std::int64_t times = 1;  // layers
};

struct Step {
  std::vector<DistinctOp> ops;  // in order of first execution
  std::vector<StepBlock> blocks;
};

// The row that names the op, or why there is none. `graph`: where the op is from, whose attention says how a rotated
// tensor divides into heads; `vocabulary`: rows of the table that tokens are looked up in. A product's bias is left out
// of its row, as is its reading by several experts: these are as many products of equal size.
std::variant<calibrate::OpRow, std::string> row_of(const graph::Op& op, const graph::Graph& graph,
                                                   std::int64_t vocabulary);

// Runtime overhead is no op and is left out. Sums::joint: a product and the sum over ranks that runs beside it are one
// row, for backends that have a kernel of both.
enum class Sums : bool { apart, joint };
Step step_of(const graph::Graph& graph, std::int64_t vocabulary, Sums sums = Sums::apart);
// Every row once, in order of first appearance.
Step list_of(const std::vector<calibrate::OpRow>& rows);

}  // namespace llmperf::replay
