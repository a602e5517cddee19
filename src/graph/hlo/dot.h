// The dimensions of a dot or dot_general.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/hlo/module.h"

namespace llmperf::graph::hlo {

struct DotDimensions {
  std::vector<std::int64_t> lhs_batch = {};
  std::vector<std::int64_t> rhs_batch = {};
  std::vector<std::int64_t> lhs_contracted = {};
  std::vector<std::int64_t> rhs_contracted = {};
};

// Of a dot_general from its attributes; of a dot, and of products of libraries that have none, the last dimension of
// the first operand with the last but one (of a vector: the only one) of the second.
DotDimensions dot_dimensions(const Instruction& i, const Type& lhs, const Type& rhs);

// As a batch of products [m, k] x [k, n].
struct DotShape {
  double batch = 1;
  double m = 1;
  double n = 1;
  double k = 1;
  double groups = 1;  // of a ragged product: matrices [k, n] among which the m rows are dealt
};
// Throws Error(bad_input) at the instruction when the extents of the two operands do not go together.
DotShape dot_shape(const Module& module, const Instruction& i, const Type& lhs, const Type& rhs);

// Of a library's product, whose text has no dimensions: [batch, m, k] x [batch, k, n] -> [batch, m, n] in whatever
// order. The batch is 0 when there is nothing to multiply.
DotShape library_product(const Type& lhs, const Type& rhs, const Type& out);

}  // namespace llmperf::graph::hlo
