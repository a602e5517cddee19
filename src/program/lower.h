// From the nodes of a program to ops: what the cost model, the mappers and the reports work on.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op.h"
#include "program/program.h"
#include "program/uses.h"

namespace llmperf::program {

// Which nodes run in one kernel. A fusing compiler keeps out of memory what one element-wise op hands to the next:
//  * a producer joins the kernel of its readers when all of them are in the same one; nothing is computed twice, and no
//    cycle can arise;
//  * what only repeats or enumerates (broadcast, iota) is computed by every reader and never stored;
//  * a reduction ends a kernel, and may end that of a value which is also stored (the exponentials of a softmax and
//    their sum), when all else that it reads was there before that value;
//  * products, convolutions, collectives, sorts and library calls are kernels of their own, whose operands and results
//    are in memory.
// These are the rules of XLA's loop and multi-output fusion (openxla/xla, instruction_fusion, multi_output_fusion)
// without the duplication of cheap producers.
enum class Fusion : unsigned char { none, elementwise };
std::optional<Fusion> parse_fusion(std::string_view name);

struct Kernels {
  List<int> of_node;    // kernel of every node; kNone: it does no work, or is repeated by its readers
  List<bool> repeated;  // nodes that every reader computes for itself
  int count = 0;
};

// `none` joins only what the program itself calls a fusion.
Kernels kernels_of(const Program& program, const Uses& uses, Fusion fusion);

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
  List<NodeId> nodes;   // ascending
  std::string groups;   // collectives: "{0,1,2,3} x2"
  bool uneven = false;  // collectives: groups of different sizes; the largest is counted
  bool copy = false;    // of a value that `nodes` change, and that is needed as it was
};

struct Lowered {
  std::vector<LoweredOp> ops;  // in the order of execution
  std::deque<model::StoredFormat> formats;
  Bytes arguments;                  // of the program: weights and inputs
  Bytes constants;                  // that are stored
  Bytes intermediate;               // most that is alive at once of all else
  List<TensorId> copied_arguments;  // arguments that are changed and not donated
};

// Throws Error(bad_input) at an instruction whose operands do not go together.
Lowered lower(const Program& program, const LowerOptions& options);

}  // namespace llmperf::program
