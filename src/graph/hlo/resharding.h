// The exchanges that take a tensor from one sharding to another.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/hlo/program.h"
#include "graph/hlo/sharding.h"

namespace llmperf::graph::hlo {

struct ReshardingStep {
  InsertedCollective what;
  Sharding after;  // of the tensor, once it is done
};

// In order; empty when nothing has to be done. `from` and `to` are tiled or maximal; `devices` take part in all.
//  * summands that `to` does not have are summed: reduce-scatter where `to` divides a dimension over them, else
//  all-reduce;
//  * summands that only `to` has are what there is, with zeros added, which is no exchange;
//  * a dimension that is to be divided (further) over devices that hold the same is cut, which is no exchange;
//  * an axis of devices that goes from one dimension to another is an all-to-all, one that is left out an all-gather;
//  * as many parts of every dimension, or the same parts, on other devices are sent to them;
//  * what one device holds is broadcast.
std::vector<ReshardingStep> resharding(const Sharding& from, const Sharding& to, std::size_t rank,
                                       std::int64_t devices);

}  // namespace llmperf::graph::hlo
