// Random products, attentions and vector work, and random mappings of products.
#pragma once

#include <vector>

#include "mapper/tile/attention.h"
#include "mapper/tile/gemm.h"
#include "mapper/tile/vector.h"
#include "tile_machine.h"

namespace llmperf::mapper::tile {

struct GemmSample {
  GemmProblem problem;
  GemmMapping mapping;
};

// A product with sides up to `most`; some are several, some have vector work before or after them.
inline GemmProblem random_gemm(Random& random, double most) {
  GemmProblem p{.m = random.size(1, most), .n = random.size(1, most), .k = random.size(1, most)};
  if (random.chance(0.2)) p.batch = random.size(1, 64);
  if (random.chance(0.2)) p.finish_ops = random.uniform(1, 6);
  if (random.chance(0.15)) p.finish_bytes = 2;
  if (random.chance(0.15)) p.prepare_ops = random.uniform(1, 4);
  if (random.chance(0.1)) p.results = 0.5;
  return p;
}

inline AttentionProblem random_attention(Random& random) {
  AttentionProblem p;
  p.sequences = random.chance(0.5) ? 1 : random.size(1, 32);
  p.kv_heads = random.size(1, 32);
  p.group = random.chance(0.5) ? 1 : random.size(1, 8);
  p.keys = random.size(16, 8192);
  p.queries = random.chance(0.3) ? 1 : random.size(1, static_cast<double>(p.keys));
  p.causal = random.chance(0.5);
  p.qk_dim = p.v_dim = random.chance(0.5) ? 128 : 64;
  return p;
}
inline VectorProblem random_vector(Random& random) {
  VectorProblem p{.rows = random.size(1, 8192), .width = random.size(16, 16384)};
  if (random.chance(0.5)) p.shared_bytes = 2;
  if (random.chance(0.3)) p.in_bytes = 4;
  p.row_wise = random.chance(0.5);
  p.ops = static_cast<double>(random.size(1, 8));
  return p;
}

// One that fits; nothing of more than `steps` steps.
inline GemmSample random_sample(const Machine& machine, const std::vector<Grid>& grids, Random& random, double most,
                                std::int64_t steps) {
  for (;;) {
    GemmSample s{random_gemm(random, most), {}};
    const GemmProblem& p = s.problem;
    GemmMapping& g = s.mapping;
    g.grid = &grids[random.below(grids.size())];
    g.bm = g.bn = g.bk = machine.granule;
    GemmProblem::Extent e = extent_of(p, g);
    const auto side = [&](std::int64_t extent) {
      const std::vector<std::int64_t> sides = block_sides(extent, machine.granule, {12, 8});
      return sides[random.below(sides.size())];
    };
    g.bm = side(e.m.part);
    g.bn = side(e.n.part);
    g.bk = side(e.k.part);
    e = extent_of(p, g);
    if (e.m.blocks == 1 && e.n.blocks == 1 && e.batch.part > 1) g.bb = random.size(1, d(e.batch.part));
    const auto feed = [&](int sharers) {
      constexpr Feed kFeeds[] = {Feed::direct, Feed::multicast, Feed::multicast, Feed::ring};
      return sharers == 1 ? Feed::direct : kFeeds[random.below(4)];
    };
    g.a = {feed(g.grid->a.length), 1 + static_cast<int>(random.below(2)), true};
    g.b = {feed(g.grid->b.length), 1 + static_cast<int>(random.below(2)), true};
    g.results = static_cast<Results>(random.below(3));
    e = extent_of(p, g);
    if (e.n.blocks > 1 && random.chance(0.5)) g.panel = random.size(1, d(e.k.blocks));
    if (random.chance(0.3)) g.tail = 3;
    if (e.batch.blocks * e.m.blocks * e.n.blocks * e.k.blocks <= steps && sram_of(p, g) <= machine.sram) return s;
  }
}

}  // namespace llmperf::mapper::tile
