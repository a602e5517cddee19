#include <array>

#include "catch.h"
#include "mapper/tile/attention.h"
#include "mapper/tile/schedule.h"
#include "mapper/tile/simulation.h"
#include "tile_sums.h"

namespace llmperf::mapper::tile::tile_attention_mapping_test {
namespace {

// 4 pairs of 512 rows and 1024 keys of 64 elements.
AttentionProblem round_problem() {
  AttentionProblem p;
  p.sequences = 2;
  p.kv_heads = 2;
  p.group = 2;
  p.queries = 256;
  p.keys = 1024;
  p.qk_dim = p.v_dim = 64;
  return p;
}
constexpr double kRows = 4 * 512 * 64;   // elements of Q and of O
constexpr double kKeys = 4 * 1024 * 64;  // of K and of V

AttentionMapping mapping_on(const Grid& grid, std::int64_t tx, std::int64_t ty, Feed feed) {
  AttentionMapping map;
  map.grid = &grid;
  map.tx = tx;
  map.ty = ty;
  map.feed = feed;
  return map;
}

Sums lowered(const Machine& machine, const AttentionProblem& p, const AttentionMapping& map) {
  Schedule schedule;
  lower(machine, p, map, schedule);
  return sums_of(machine, schedule);
}

AttentionProblem random_problem(Random& random) {
  constexpr std::array<std::int64_t, 4> kDims = {64, 72, 128, 192};
  AttentionProblem p;
  p.sequences = random.size(1, 16);
  p.kv_heads = random.size(1, 32);
  p.group = random.chance(0.3) ? random.size(1, 8) : 1;
  p.queries = random.chance(0.15) ? 1 : random.size(16, 4096);
  p.keys = random.size(16, 8192);
  if (random.chance(0.4)) {
    p.causal = true;
    p.keys = std::max(p.keys, p.queries);
  }
  p.qk_dim = kDims[random.below(kDims.size())];
  p.v_dim = p.qk_dim == 192 ? 128 : p.qk_dim;
  if (random.chance(0.4)) p.rope_ops = 3;
  return p;
}

// One that fits, of few steps.
AttentionMapping random_mapping(Random& random, const Machine& machine, const std::vector<Grid>& grids,
                                const AttentionProblem& p) {
  constexpr std::array kResults = {Results::in_place, Results::staged, Results::doubled};
  constexpr std::array kFeeds = {Feed::multicast, Feed::multicast, Feed::ring, Feed::direct};
  while (true) {
    const Grid& grid = grids[random.below(grids.size())];
    if (grid.m != 1) continue;
    AttentionMapping map = mapping_on(grid, machine.granule, machine.granule, Feed::direct);
    AttentionProblem::Extent e = extent_of(p, map);
    map.tx = random_side(random, e.rows.part, machine.granule);
    map.ty = random_side(random, e.keys.part, machine.granule);
    e = extent_of(p, map);
    if (grid.n > 1) map.feed = kFeeds[random.below(kFeeds.size())];
    map.kv_slots = static_cast<int>(random.size(1, 3));
    map.q_slots = static_cast<int>(random.size(1, 2));
    map.results = kResults[random.below(kResults.size())];
    map.overlapped = random.chance(0.75);
    if (e.rows.blocks == 1) {
      map.hb = random.size(1, d(e.pairs.part));
    } else if (e.rows.blocks >= kLeastRowBlocks && random.chance(0.2)) {
      map.keys_outside = true;
    } else if (random.chance(0.5)) {
      map.resident = true;
      map.kv_slots = 2;
    }
    const bool few = e.pairs.blocks / map.hb * e.rows.blocks * e.keys.blocks <= 1000;
    if (few && sram_of(p, map) <= machine.sram) return map;
  }
}

TEST_CASE("an attention counts the scores under its mask") {
  AttentionProblem p;
  p.queries = 4;
  p.keys = 6;
  p.qk_dim = 8;
  p.v_dim = 16;
  CHECK(p.scores() == 24);
  p.causal = true;
  CHECK(p.visible(0) == 3);
  CHECK(p.visible(3) == 6);
  CHECK(p.scores() == 3 + 4 + 5 + 6);
  CHECK(p.flops() == 2 * 18 * (8 + 16));
  p.group = 3;  // rows 0 to 2 are the first query's
  p.kv_heads = 2;
  CHECK(p.visible(2) == 3);
  CHECK(p.visible(3) == 4);
  CHECK(p.scores() == 2 * 3 * 18);
  CHECK(p.least_bytes() == 2 * (12 * (8 + 16) * 2 + 6 * (8 + 16) * 2));
}

TEST_CASE("K and V are loaded once per tile that takes them alone, and per block of rows where they do not stay") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  const AttentionProblem p = round_problem();
  const Grid& grid = find_grid(grids, 4, 2, 2);  // 256 rows and 512 keys per tile
  AttentionMapping map = mapping_on(grid, 128, 128, Feed::multicast);
  Sums sums = lowered(machine, p, map);
  CHECK(sums.a == Approx(2 * 2 * kKeys * 2));  // two blocks of rows, K and V, 2 bytes
  CHECK(sums.start == Approx(2 * kRows * 2));  // by both tiles that share the rows
  CHECK(sums.result == Approx(kRows * 2));
  CHECK(sums.steps == 1 * 2 * 4);

  map.resident = true;
  CHECK(lowered(machine, p, map).a == Approx(2 * kKeys * 2));
  map.feed = Feed::ring;
  CHECK(lowered(machine, p, map).a == Approx(2 * kKeys * 2));
  map.feed = Feed::direct;
  CHECK(lowered(machine, p, map).a == Approx(2 * 2 * kKeys * 2));
}

TEST_CASE("products and vector operations of the tiles sum to the problem's") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  AttentionProblem p = round_problem();
  p.rope_ops = 3;
  AttentionMapping map = mapping_on(find_grid(grids, 4, 2, 2), 128, 128, Feed::multicast);
  map.resident = true;
  const Sums sums = lowered(machine, p, map);
  CHECK(sums.matrix * machine.matrix == Approx(p.flops()));
  // O is joined in 3 of 4 steps on both tiles that share rows, and once between these. Both rotate Q.
  const double joins = kRows * 2 * (3 * 2 + 1);
  CHECK(sums.vector * machine.vector == Approx(p.vector_ops() + joins + 3 * kRows));
}

TEST_CASE("under a mask a block has the steps that its last row needs, and keys that stay come once") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  AttentionProblem p;
  p.kv_heads = 16;
  p.queries = p.keys = 64;
  p.qk_dim = p.v_dim = 16;
  p.causal = true;
  AttentionMapping map = mapping_on(find_grid(grids, 16, 1, 1), 16, 16, Feed::direct);
  const double block = 2 * 16 * 16 * (16 + 16);
  Sums sums = lowered(machine, p, map);
  CHECK(sums.steps == 1 + 2 + 3 + 4);
  CHECK(sums.matrix * machine.matrix == Approx(16 * (1 + 2 + 3 + 4) * block));
  CHECK(sums.a == Approx(16 * (1 + 2 + 3 + 4) * 16 * (16 + 16) * 2));
  map.resident = true;
  CHECK(lowered(machine, p, map).a == Approx(16 * 64 * (16 + 16) * 2));
  // With the rows dealt to two tiles block by block both have 1 + 2 pairs of steps, for 32 rows each.
  map = mapping_on(find_grid(grids, 8, 2, 1), 16, 16, Feed::multicast);
  CHECK(lowered(machine, p, map).steps == 2 * (2 + 4));
}

TEST_CASE("with keys outside O leaves and comes back, in four bytes, for every further block of keys") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  const AttentionProblem p = round_problem();
  AttentionMapping map = mapping_on(find_grid(grids, 4, 4, 1), 32, 256, Feed::multicast);
  map.keys_outside = true;
  const Sums sums = lowered(machine, p, map);
  CHECK(sums.a == Approx(2 * kKeys * 2));
  const double partial = 4 * 512 * (64 + 2) * 4;
  CHECK(sums.b == Approx(4 * kRows * 2 + 3 * partial));
  CHECK(sums.result == Approx(3 * partial + kRows * 2));
  CHECK(sums.matrix * machine.matrix == Approx(p.flops()));
}

TEST_CASE("a tile holds slices, queries, scores, and O with two statistics per row") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  const AttentionProblem p = round_problem();
  AttentionMapping map = mapping_on(find_grid(grids, 4, 2, 2), 128, 64, Feed::multicast);
  const double slice = 64 * (64 + 64) * 2;
  const double queries = 128 * 64 * 2;
  const double scores = 128 * 64 * 4;
  const double o = 128 * (64 + 2) * 4;
  const double staged = 128 * 64 * 2 / 2.0;  // half of the rows leave from each of two tiles
  CHECK(sram_of(p, map) == 2 * slice + 2 * queries + 2 * scores + o + staged);
  map.overlapped = false;
  map.kv_slots = 3;
  map.results = Results::doubled;
  CHECK(sram_of(p, map) == 3 * slice + 2 * queries + scores + 2 * o);
  map.resident = true;  // all 512 keys of the tile
  map.results = Results::in_place;
  CHECK(sram_of(p, map) == 8 * slice + 2 * queries + scores + o);
  map.feed = Feed::ring;  // half of them, and half a slice that passes through
  CHECK(sram_of(p, map) == 4.5 * slice + 2 * queries + scores + o);
}

TEST_CASE("no mapping of an attention is faster than the units and the channel") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Random random(1);
  Schedule schedule;
  for (int i = 0; i < 500; ++i) {
    const AttentionProblem p = random_problem(random);
    const AttentionMapping map = random_mapping(random, machine, grids, p);
    lower(machine, p, map, schedule);
    const double seconds = pipeline_time(machine, schedule).seconds;
    CHECK(seconds >= p.flops() / (16 * machine.matrix));
    CHECK(seconds >= p.vector_ops() / (16 * machine.vector) * (1 - 1e-9));
    CHECK(seconds >= p.least_bytes() / machine.dram * (1 - 1e-9));
    CHECK(sums_of(machine, schedule).bytes() >= p.least_bytes() * (1 - 1e-9));
  }
}

TEST_CASE("the closed form of an attention agrees with its simulation") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Random random(2);
  Schedule schedule;
  std::vector<double> errors;
  for (int i = 0; i < 300; ++i) {
    const AttentionProblem p = random_problem(random);
    lower(machine, p, random_mapping(random, machine, grids, p), schedule);
    const double simulated = simulate(machine, schedule).seconds;
    errors.push_back(std::abs(pipeline_time(machine, schedule).seconds / simulated - 1));
  }
  const Agreement agreement = agreement_of(errors);
  CHECK(agreement.mean < 0.03);
  CHECK(agreement.p90 < 0.09);
}

}  // namespace
}  // namespace llmperf::mapper::tile::tile_attention_mapping_test
