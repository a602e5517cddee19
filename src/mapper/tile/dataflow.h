// Which results of a step's ops are operands of which others.
//
// What ops of a decoder layer read and write is told by their tags: the residual stream, which norms read and adds
// change; what is worked on, from op to op; queries, keys and values, which rotation and norms change in place; gates.
// At an op that is not known, and where a layer ends, everything is taken to be needed in memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/op.h"

namespace llmperf::mapper::tile {

struct Use {
  std::size_t op = 0;
  double elements = 0;    // that it reads of the tensor
  bool residual = false;  // of a product: what its results are added to
  bool in_place = false;  // it writes them again
};

struct Tensor {
  std::size_t op = 0;  // that writes it
  double elements = 0;
  std::vector<Use> uses = {};  // in order
  bool leaves = false;         // read by something else, too
};

// Of ops in the order in which they run; only those that something is known to read, in order of the ops.
std::vector<Tensor> tensors_of(std::span<const graph::Op* const> ops);

}  // namespace llmperf::mapper::tile
