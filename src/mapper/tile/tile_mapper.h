// Mappings of ops on an array of tiles, selected and kept, so that a shape is searched once.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cost/work.h"
#include "graph/op.h"
#include "hardware/runtime_profile.h"
#include "mapper/roofline/roofline.h"
#include "mapper/tile/description.h"

namespace llmperf::mapper::tile {

// What an op leaves to the op after it, and what it could use of the op before it.
struct Seam {
  double idle = 0;     // s in which the DRAM channel has nothing to do
  double room = 0;     // bytes of a tile's memory
  double weights = 0;  // bytes of a tile: the slices of a product's second operand that its first steps multiply
  double load = 0;     // s that these take to come to all tiles
};

// What an op is to a stack, which does not reach as much with all.
enum class Kernel : unsigned char { product, prompt_product, attention };

// What the stack of a profile with KernelChoices::tile_mappings leaves of a device's rates.
Reached reached_of(const hardware::RuntimeProfile& profile, Kernel kernel = Kernel::product);

// From an op of a graph to the problem that tiles are given.
// `work` is that of one execution of the op. Nothing for ops that the tiles have no part in, and for the backward pass
// of attention.
// `choices`, if any: of the stack whose kernels these are. They say whether attention computes what a causal mask
// hides, and what sums are kept in.
std::optional<Problem> problem_of(const graph::Op& op, const cost::Work& work,
                                  const hardware::KernelChoices* choices = nullptr);

using AnyMapped = std::variant<Mapped<GemmProblem>, Mapped<AttentionProblem>, Mapped<VectorProblem>>;

// An op as mappings are searched for it.
struct Posed {
  Problem problem;
  const Machine* machine = nullptr;  // of the mapper, as the grids
  std::span<const Grid> grids = {};
};

// Not for several threads at once: it remembers what it searched.
class TileMapper {
 public:
  // Of a device of kind tile_array, which must outlive it. `published`: ops that the published mapper has formulas for
  // take the time that these give.
  // `profile`, which must outlive it, too: what its stack reaches of the device's rates. Its values are read at every
  // call, so that a fit can change them in place: mappings stay those of the values at which they were searched for,
  // and their times follow by the closed form.
  explicit TileMapper(const hardware::Device& device, bool published = false,
                      const hardware::RuntimeProfile* profile = nullptr);
  ~TileMapper();
  TileMapper(TileMapper&&) noexcept;
  TileMapper& operator=(TileMapper&&) noexcept;

  // Of a product that is nothing special to a stack. References stay valid. Throws Error(bad_input) for a type that the
  // matrix units do not multiply.
  const AnyMapped& map(const Problem& problem, Dtype dtype) const;
  const Machine& machine(Dtype dtype) const;
  // Nothing where the tiles have no part in the op, or formulas stand in for mappings.
  std::optional<Posed> pose(const graph::Op& op, const cost::Work& work) const;

  // Searches for the mappings of ops that were not searched for yet, several at once.
  void search(std::span<const graph::Op> ops, const std::function<cost::Work(const graph::Op&)>& work) const;

  // Time of one execution; `light`: that of the roofline, which a mapping is never below and which stands in where
  // tiles have no part, or no matrix unit for the type. Throws Error(infeasible) when no mapping fits.
  OpTime time(const graph::Op& op, const cost::Work& work, const OpTime& light) const;
  // Of the best mapping; all zero where the tiles have no part in the op.
  Seam seam(const graph::Op& op, const cost::Work& work) const;

 private:
  struct Array;  // for operands of some types, on the machine that an op of its kind finds
  Array& array(const Operands& operands, Kernel kernel) const;
  struct Placed {
    Problem problem;
    Array* on = nullptr;
  };
  // Nothing where the tiles have no part in the op, or no matrix unit for it.
  std::optional<Placed> placed(const graph::Op& op, const cost::Work& work) const;

  const hardware::Device* device_;
  bool published_;
  const hardware::RuntimeProfile* profile_;
  mutable std::deque<std::unique_ptr<Array>> arrays_;
};

}  // namespace llmperf::mapper::tile
