// Which dimensions of an op's operands and results go together: divided over the same devices, an op works on its part
// alone. Dimensions that go together have the same factor, as the indices of an einsum ("bsf,fh->bsh"); a factor that
// no result has is summed over, so that a division of it leaves summands. The same idea is Shardy's sharding rule.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/hlo/program.h"

namespace llmperf::graph::hlo {

inline constexpr int kWhole = -1;  // a dimension that has to be undivided

struct OpFactors {
  std::vector<std::vector<int>> operands;  // by operand, by dimension
  std::vector<std::vector<int>> results;
  int count = 0;
  // By factor: the number of parts has to divide it (reshapes). 0: any number.
  std::vector<std::int64_t> divides = {};
  bool known = true;  // false: nothing is known of the op, all of it is whole
};

// Of a node whose tensors have the extents of the whole program.
OpFactors op_factors(const Program& program, const Node& node);

// Whether an op of summands in this operand has summands of its result.
enum class Linear : unsigned char {
  no,
  alone,    // when the other operands have none: a factor of a product
  together  // when they all have: a term of a sum
};
Linear linear_in(const Instruction& i, std::size_t operand);

}  // namespace llmperf::graph::hlo
