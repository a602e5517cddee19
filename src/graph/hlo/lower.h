// From the nodes of a program to ops: what the cost model, the mappers and the reports work on.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "graph/hlo/fusion.h"
#include "graph/hlo/program.h"
#include "graph/op.h"

namespace llmperf::graph::hlo {

struct LowerOptions {
  Fusion fusion = Fusion::none;
  std::int64_t devices = 1;
  std::int64_t devices_per_node = 1;
  // The type in which products of operands of a type run; empty: that type itself. Products of f32 whose precision is
  // DEFAULT ask for tf32.
  std::function<Dtype(Dtype)> compute = {};
};

// One kernel: an op and the nodes of the program that it runs.
struct LoweredOp {
  Op op;  // its name lives as long as the module
  OpClass op_class = OpClass::unknown;
  std::vector<NodeId> nodes;  // ascending
  std::string groups;         // collectives: "{0,1,2,3} x2"
  bool uneven = false;        // collectives: groups of different sizes; the largest is counted
  bool copy = false;          // of a value that `nodes` change, and that is needed as it was
};

struct Lowered {
  std::vector<LoweredOp> ops;  // in the order of execution
  std::deque<model::StoredFormat> formats;
  Bytes arguments;                         // of the program: weights and inputs
  Bytes constants;                         // that are stored
  Bytes intermediate;                      // most that is alive at once of all else
  std::vector<TensorId> copied_arguments;  // arguments that are changed and not donated
};

// Throws Error(bad_input) at an instruction whose operands do not go together.
Lowered lower(const Program& program, const LowerOptions& options);

}  // namespace llmperf::graph::hlo
