// How the dimensions of an op's operands and results go together, and what follows from it for extents that the text
// leaves open (`?`): a program whose arguments are bound needs no further --dim for them.
//
// Divided over the same devices, dimensions that go together leave an op to work on its part alone. They have the same
// factor, as the indices of an einsum ("bsf,fh->bsh"); a factor that no result has is summed over, so that a division
// of it leaves summands. The same idea is Shardy's sharding rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "program/program.h"
#include "program/sharding.h"

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

// ---- Division over devices

inline constexpr int kWhole = -1;  // a dimension that has to be undivided

struct OpFactors {
  List<List<int>> operands;  // by operand, by dimension
  List<List<int>> results;
  int count = 0;
  // By factor: the number of parts has to divide it (reshapes). 0: any number.
  Integers divides = {};
  bool known = true;  // false: nothing is known of the op, all of it is whole
};

// Of a node whose tensors have the extents of the whole program.
OpFactors op_factors(const Program& program, const Node& node);

// Ops that only put the same elements elsewhere.
bool rearranges(const Instruction& i);

// Whether an op of summands in this operand has summands of its result.
enum class Linear : unsigned char {
  no,
  alone,    // when the other operands have none: a factor of a product
  together  // when they all have: a term of a sum
};
Linear linear_in(const Instruction& i, std::size_t operand);

// How the factors of one op are divided over devices.

class Division {
 public:
  explicit Division(OpFactors factors) : f_(std::move(factors)), parts_(static_cast<std::size_t>(f_.count)) {}

  const OpFactors& factors() const { return f_; }
  // Takes over what `sharding` says of a tensor with these extents and factors, where it contradicts nothing that was
  // taken before.
  void offer(const List<int>& labels, const Sharding& sharding, const Integers& dims);
  // Devices that operands have summands on, and that nothing is divided over.
  void reserve(const DeviceAxes& axes) { reserved_ = axes; }
  Sharding of(const List<int>& labels) const;
  // Devices that have summands of the results: those along factors that no result has.
  DeviceAxes summands() const;

 private:
  OpFactors f_;
  DeviceAxes reserved_;
  List<DeviceAxes> parts_;  // by factor
};

}  // namespace llmperf::program
