// Which values are the same storage, and who reads them: what a fusing compiler and the liveness of buffers go by.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace llmperf::program {

// Where a compiler has to copy a value before it is changed in place, because the old one is still needed: arguments
// that are not donated, constants, values that are read again, results; of updates (dynamic_update_slice, scatter) and
// of the values that a while loop goes on with (XLA's copy insertion).
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

class Uses {
 public:
  explicit Uses(const Program& program);

  // The value that holds the storage: through reshapes, annotations, calls; what an update in place changes.
  TensorId storage(TensorId tensor) const { return storage_[tensor]; }
  // Nodes that do work and read the storage.
  const List<NodeId>& readers(TensorId storage) const { return readers_[storage]; }
  // Whether it has to be in memory whoever reads it: results of the program, values that a loop begins or goes on with.
  bool kept(TensorId storage) const { return kept_[storage]; }
  // Results of the program.
  bool returned(TensorId storage) const { return returned_[storage]; }

  // Those that come before an update or a loop, which then has a storage of its own.
  const std::vector<Copy>& copies() const { return copies_; }

 private:
  std::vector<Copy> copies_;
  List<TensorId> storage_;
  List<List<NodeId>> readers_;
  List<bool> kept_;
  List<bool> returned_;
};

}  // namespace llmperf::program
