// How the dimensions of an op's operands and results go together, and what follows from it for extents that the text
// leaves open (`?`): a program whose arguments are bound needs no further --dim for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "program/program.h"

namespace llmperf::program {

// A dimension of an operand, and the one of the first result that it is; below 0: the factor without a dimension of the
// result, which is summed over or looked up in, that it belongs to.
struct Link {
  std::size_t operand = 0;
  std::int64_t at = 0;
  std::int64_t result = 0;
};
using Links = std::vector<Link>;
// Of products, transpositions, broadcasts, reductions and gathers, in the order of the first operand's dimensions;
// nothing for other ops. Places that a wrong text names are not left out.
std::optional<Links> links_of(const Instruction& i, const Traits& traits, std::span<const Type* const> operands,
                              const Type& result);

// Of dimension `axis` of a result of type `type`; nothing when it does not follow. `operands` have known extents.
std::optional<std::int64_t> infer_extent(const Instruction& i, const Traits& traits, const Type& type, std::size_t axis,
                                         std::span<const Tensor* const> operands);

// The values of a small integer result: shapes and counters, which extents and trip counts follow from. Empty when an
// operand is not known, the op does something else, or it would overflow.
Integers fold_integers(const Instruction& i, const Type& type, std::span<const Tensor* const> operands);

}  // namespace llmperf::program
