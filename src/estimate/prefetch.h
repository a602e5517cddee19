// Weights that arrive before their product begins. While the tiles still work on one op, the DRAM channel can load the
// first slices of the next op's weights, which depend on nothing: as much as the channel is idle and the tiles' memory
// has room for. What the product would have waited for them, it does not wait.
#pragma once

#include <span>

#include "estimate/estimate.h"

namespace llmperf::estimate {

// Fills in OpEstimate::prefetched of the ops of one step, in order; layers follow one another.
void prefetch_weights(const mapper::Machine& machine, std::span<OpEstimate> ops);

}  // namespace llmperf::estimate
