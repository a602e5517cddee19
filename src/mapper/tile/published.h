// The formulas of the published tx8 mapper (PJLAB-CHIP/LLMPerf-for-TiledArch, version of June 2024), for comparison
// only: docs/errata.md says what a machine could not do of it. Its units are kept: sizes in MiB over bandwidths in 10^9
// bytes/s give its "ms", operations are counted in 10^9.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "mapper/tile/description.h"
#include "mapper/tile/machine.h"

namespace llmperf::mapper::tile {

struct PublishedTime {
  double seconds = 0;
  double compute = 0;           // s; over `seconds` it is what the mapper maximises
  std::int64_t splits[3] = {};  // products: of m, n and k; attention: queries, keys; vector: chunks
  bool transposed = false;      // products: the weights stay on the tiles in place of the inputs
  bool feasible() const { return seconds > 0; }
  double utilisation() const { return compute / seconds; }
};

// What the published mapper chooses for a problem, the time its formulas give, and what the choice takes on the machine
// of the default model: the same splits as a mapping of this model's space, with its sums, write-backs and channel.
//
//   product     16 tiles along m, the other operand round the ring of all tiles; n1 x n2 blocks of a tile's rows and of
//               all columns; k in nk slices. With nk > 1 the sums of one round of the ring are all under way at once.
//   attention   16 blocks of `tx` queries, 16 of `ty` keys round the ring
//   vector      chunks, one per tile

// On elements of 16 bits. Infeasible for attention to keys other than the queries' own, which it has no formula for.
PublishedTime published_time(const Machine& machine, const Problem& problem);

struct Recost {
  double sram = 0;                    // bytes of a tile
  std::optional<double> closed_form;  // s; nothing: it does not fit
  std::optional<double> simulated;
  // A product whose sums do not fit: a bound on what it takes when they go to DRAM between the slices of k.
  std::optional<double> spilled;
};

// `published` must be feasible by its own account. Nothing where the machine's tiles are not 16.
std::optional<Recost> recost(const Machine& machine, std::span<const Grid> grids, const Problem& problem,
                             const PublishedTime& published);

}  // namespace llmperf::mapper::tile
