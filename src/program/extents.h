// Extents that the text leaves open (`?`), from the operands of the op: a program whose arguments are bound needs no
// further --dim for what follows from them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "program/program.h"

namespace llmperf::program {

// Of dimension `axis` of a result of type `type`; nothing when it does not follow. `operands` have known extents.
std::optional<std::int64_t> infer_extent(const Instruction& i, const Traits& traits, const Type& type, std::size_t axis,
                                         std::span<const Tensor* const> operands);

// The values of a small integer result: shapes and counters, which extents and trip counts follow from. Empty when an
// operand is not known, the op does something else, or it would overflow.
std::vector<std::int64_t> fold_integers(const Instruction& i, const Type& type,
                                        std::span<const Tensor* const> operands);

}  // namespace llmperf::program
