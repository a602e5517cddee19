// A program as it is executed: functions and branches put in line, loops as one pass with the number of passes, extents
// known. What follows (the partition over devices, the ops, fusion, the search for transformer blocks) works on this
// flat list in the order of execution.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op.h"
#include "program/module.h"
#include "program/ops.h"

namespace llmperf::program {

// What the nodes become.
using graph::Access, graph::Attention, graph::Collective, graph::CollectiveKind, graph::Convolution, graph::Gemm;
using graph::Op, graph::Place, graph::Vector, graph::VectorKind;

using TensorId = std::int32_t;  // index into Program::tensors
using NodeId = std::int32_t;    // index into Program::nodes
inline constexpr std::int32_t kNone = -1;

// A value of the flat program.
struct Tensor {
  Type type;              // extents known; after a partition those of one device
  NodeId node = kNone;    // that makes it; kNone: an argument of the program
  TensorId same = kNone;  // the value it was before a loop or a call: what a loop's argument is at first
  bool constant = false;  // computed from constants alone
  bool parameter = false;  // an argument of the program, or an argument only reshaped, converted, transposed …: weights
  bool donated = false;    // an argument that results may take the memory of (donate_argnums of JAX)
  std::string_view name;   // in the text
  Integers integers = {};  // of small integer constants (shapes, counters): their values

  // Of a single one.
  std::optional<std::int64_t> integer() const {
    return integers.size() == 1 ? std::optional(integers[0]) : std::nullopt;
  }
};

// A node that a partition over devices has put in (partition.h); its `instruction` is the one it was put in for.
struct InsertedCollective {
  // Nothing: every device keeps its own part of what it has, which is no work.
  std::optional<CollectiveKind> kind;
  std::int64_t ranks = 1;
  std::int64_t stride = 1;
  bool regular = true;    // the devices of a group are `stride` apart
  std::string text = {};  // "{0,1,2,3} x2"
};

struct Node {
  const Instruction* instruction = nullptr;
  Traits traits;           // of the op (ops.h)
  std::int64_t count = 1;  // executions
  List<TensorId> operands = {};
  List<TensorId> results = {};
  int loop = -1;    // the innermost loop it lies in: index into Program::loops
  int fusion = -1;  // nodes of one `fusion` of the text, which run in one kernel, have the same number
  std::optional<InsertedCollective> inserted = {};
};

struct Loop {
  const Instruction* instruction = nullptr;
  int parent = -1;
  std::int64_t trips = 1;
  bool known = true;              // from the program or from --trip-count; else counted once, or
  bool most = false;              // as often as it can run, where something else may end it before
  std::string name;               // "%12" as --trip-count takes it
  List<TensorId> arguments = {};  // of the body
  List<TensorId> yielded = {};    // what the body returns, in the same order
};

struct Program {
  const Module* module = nullptr;
  List<Tensor> tensors;
  List<Node> nodes;  // in the order of execution; those that do no work (reshape, tuple …) too
  List<Loop> loops;
  List<TensorId> arguments;
  std::vector<std::vector<Attribute>> argument_attributes;  // by argument
  List<TensorId> results;
  std::vector<std::string> notes;  // what was assumed: branches taken, loops counted once
  // Ops and custom calls without a known meaning: no work is counted for them.
  struct Unknown {
    std::string name;  // "tf.Foo", "custom call 'target'", "function @f without a body"
    int line = 0;      // the first
    std::int64_t count = 0;
  };
  std::vector<Unknown> unknown;

  const Type& type(TensorId t) const { return tensors[t].type; }
  const Tensor& tensor(TensorId t) const { return tensors[t]; }
  const Node& node(NodeId n) const { return nodes[n]; }
  const Loop& loop(int l) const { return loops[l]; }
  // Whether `inner` is the loop `outer` or lies in it; -1 is the program outside of all loops.
  bool within(int inner, int outer) const {
    while (inner >= 0 && inner != outer) inner = loop(inner).parent;
    return inner == outer;
  }
  // How often a pass of a loop comes; once of what is outside of all.
  std::int64_t passes(int l) const {
    std::int64_t count = 1;
    for (; l >= 0; l = loop(l).parent) count *= std::max<std::int64_t>(1, loop(l).trips);
    return count;
  }
};

}  // namespace llmperf::program
