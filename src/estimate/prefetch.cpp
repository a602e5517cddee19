#include "estimate/prefetch.h"

#include <algorithm>
#include <utility>

#include "mapper/tile/tile_mapper.h"

namespace llmperf::estimate {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

Seconds saved(const mapper::tile::Seam& before, const mapper::tile::Seam& op) {
  if (op.weights <= 0) return {};
  return Seconds{std::min(op.load * std::min(1.0, before.room / op.weights), before.idle)};
}

}  // namespace

void prefetch_weights(const mapper::Machine& machine, std::span<OpEstimate> ops) {
  if (machine.tiles() == nullptr) return;
  const auto seam = [&](std::size_t i) {
    return ops[i].op.place == graph::Place::device ? machine.tiles()->seam(ops[i].op, ops[i].work)
                                                   : mapper::tile::Seam{};
  };
  std::size_t first = 0;  // op of the layer that op i is in
  mapper::tile::Seam before;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const graph::Op& op = ops[i].op;
    if (i == 0 || op.layer_kind < 0 || op.layer_kind != ops[i - 1].op.layer_kind) first = i;
    const mapper::tile::Seam mine = seam(i);
    ops[i].prefetched = saved(std::exchange(before, mine), mine);
    if (i != first || op.layer_kind < 0) continue;
    // The first op of a layer follows the last one of the layer before, but for the first layer.
    std::size_t last = first;
    while (last + 1 < ops.size() && ops[last + 1].op.layer_kind == op.layer_kind) ++last;
    const double share = 1 / d(op.count);
    ops[i].prefetched = ops[i].prefetched * share + saved(seam(last), mine) * (1 - share);
  }
}

}  // namespace llmperf::estimate
