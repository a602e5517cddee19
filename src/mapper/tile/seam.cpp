#include "mapper/tile/seam.h"

#include <algorithm>

namespace llmperf::mapper::tile {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

Seam left_by(const Machine& machine, double sram, const PipelineTime& time, double seconds) {
  Seam seam;
  seam.idle = std::max(0.0, seconds - time.dram);
  seam.room = machine.sram - sram;
  return seam;
}

}  // namespace

Seam seam_of(const Machine& machine, const GemmProblem& given, const GemmChoice& choice, double seconds) {
  const GemmProblem p = choice.transposed ? given.transposed() : given;
  const GemmMapping& map = choice.mapping;
  Seam seam = left_by(machine, sram_of(p, map), choice.time, seconds);
  // The slices that fill the slots of the second operand's stream.
  const GemmExtent e = extent_of(p, map);
  const std::int64_t side = choice.transposed ? std::min(map.bm, e.m) : std::min(map.bn, e.n);
  const Stream& stream = choice.transposed ? map.a : map.b;
  const Paths& paths = choice.transposed ? map.grid->a : map.grid->b;
  const double slices = d(std::min<std::int64_t>(stream.slots, e.blocks_k));
  const double bytes = slices * d(side) * d(std::min(map.bk, e.k)) * d(std::min(map.bb, e.batch)) * given.b_bytes;
  const double sharers = stream.feed == Feed::direct ? 1 : paths.length;
  seam.weights = stream.feed == Feed::ring ? bytes / sharers : bytes;
  const double all = d(p.k) * d(given.n) * d(p.batch) * given.b_bytes * paths.length / sharers;
  // At most what no unit works: a product is not faster than its units.
  seam.load = std::min(std::min(bytes * machine.tiles / sharers, all) / machine.dram,
                       std::max(0.0, seconds - choice.time.compute));
  return seam;
}
Seam seam_of(const Machine& machine, const AttentionProblem& p, const AttentionChoice& choice, double seconds) {
  return left_by(machine, sram_of(p, choice.mapping), choice.time, seconds);
}
Seam seam_of(const Machine& machine, const VectorProblem& p, const VectorChoice& choice, double seconds) {
  return left_by(machine, sram_of(p.flat(), choice.mapping), choice.time, seconds);
}

}  // namespace llmperf::mapper::tile
