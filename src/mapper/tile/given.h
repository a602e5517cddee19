// A mapping of a product that somebody wrote down, in terms of the op's own m, n, k, A and B:
//
//   grid=m8n8 block=256x128x64 a=multicast:2 b=multicast:2 results=staged panel=0 tail=1
//
//   grid      tiles that share each dimension; b: products of a batch. What is not named is not shared.
//   block     m x n x k of a tile's part that are worked on at a time; *: open
//   a, b      how tiles that share an operand get it (direct, multicast, ring), and its buffers behind a colon
//   results   in_place, staged or doubled
//   panel     slices that stay, of A, or of B where m is the inner loop; all: every one
//   tail      pieces of the last block, 1 to 3
//   products  of a batch in one block
//   loop      the order of blocks: "n,m" goes along n first, "m,n" along m
//
// What it does not say is chosen: the fastest in the simulation of the best by the closed form.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "mapper/tile/gemm.h"

namespace llmperf::mapper::tile {

// What the text decides. Throws Error(bad_input), which speaks of `mapping`, for what it cannot mean, for factors that
// do not multiply to the tiles of the machine, and for more than the problem has.
GemmGiven parse_mapping(std::string_view text, const Machine& machine, const GemmProblem& problem);

// The fastest mapping that agrees with it. Throws Error(infeasible) where none fits into a tile, with the memory that
// one needs.
Mapped<GemmProblem>::One complete(const GemmGiven& given, const Machine& machine, std::span<const Grid> grids,
                                  const GemmProblem& problem);

// A mapping in these words, nothing left open.
std::string mapping_text(const GemmProblem& problem, const GemmMapping& mapping);

}  // namespace llmperf::mapper::tile
