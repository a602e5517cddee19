// Where a compiler has to copy a value before it is changed in place, because the old one is still needed: arguments
// that are not donated, constants, values that are read again, results; of updates (dynamic_update_slice, scatter) and
// of the values that a while loop goes on with (XLA's copy insertion).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/hlo/program.h"

namespace llmperf::graph::hlo {

struct Copy {
  TensorId value = kNone;    // what is copied
  TensorId changed = kNone;  // the result of the update, or the loop's argument: where the copy goes
  NodeId first = kNone;      // the update, or the first node of the loop: what the copy comes before
  NodeId node = kNone;       // the update, or what makes the value that the loop goes on with
  int loop = -1;             // that the copy lies in
  std::int64_t count = 1;
};

// In the order of `first`.
std::vector<Copy> copies_of(const Program& program);

// The operand that a result of a node without work is another form of (reshape, annotations, shapes of one device), or
// kNone.
TensorId reshaped_operand(const Program& program, const Node& node, std::size_t result);
// The operand that a result of an update in place replaces, or kNone.
TensorId updated_operand(const Node& node, std::size_t result);

// A constant of one value, which no kernel reads from memory.
bool is_splat(const Program& program, TensorId tensor);

}  // namespace llmperf::graph::hlo
