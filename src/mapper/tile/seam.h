// What an op leaves to the op after it, and what it could use of the op before it.
#pragma once

#include "mapper/tile/attention_search.h"
#include "mapper/tile/gemm_search.h"
#include "mapper/tile/vector_search.h"

namespace llmperf::mapper::tile {

struct Seam {
  double idle = 0;     // s in which the DRAM channel has nothing to do
  double room = 0;     // bytes of a tile's memory
  double weights = 0;  // bytes of a tile: the slices of a product's second operand that its first steps multiply
  double load = 0;     // s that these take to come to all tiles
};

// Of a mapping that takes `seconds`.
Seam seam_of(const Machine& machine, const GemmProblem& problem, const GemmChoice& choice, double seconds);
Seam seam_of(const Machine& machine, const AttentionProblem& problem, const AttentionChoice& choice, double seconds);
Seam seam_of(const Machine& machine, const VectorProblem& problem, const VectorChoice& choice, double seconds);

}  // namespace llmperf::mapper::tile
