// Products on the array: what a mapping moves and takes, by hand and against the simulation.
#include <algorithm>

#include "catch.h"
#include "mapper/tile/gemm.h"
#include "mapper/tile/schedule.h"
#include "mapper/tile/simulation.h"
#include "tile_gemm_samples.h"
#include "tile_sums.h"

namespace llmperf::mapper::tile::tile_gemm_test {
namespace {

struct Moved {
  double a = 0;
  double b = 0;
  double results = 0;
  double multiplied = 0;  // s of one tile
};
// What all tiles together load and store.
Moved moved(const Machine& machine, const Schedule& s) {
  const auto requests = [&](const Stream& stream, const Paths& paths) {
    return stream.feed == Feed::multicast ? paths.groups : machine.tiles;
  };
  Moved sum;
  for (const Row& rows : s.rows) {
    bool opens = true;
    for (const Block& b : s.blocks_of(rows)) {
      for (std::int64_t i = 0; i < b.count; ++i) {
        for (std::int64_t step = 0; step < b.steps; ++step) {
          const Step& at = step + 1 == b.steps ? b.last : b.full;
          const auto times = static_cast<double>(rows.count * s.repeats);
          if (opens || !stays(step, b.steps, s.panel)) sum.a += times * at.a * requests(s.a, s.grid->a);
          sum.b += times * at.b * requests(s.b, s.grid->b);
          sum.multiplied += times * (at.before + at.after);
        }
        sum.results += static_cast<double>(rows.count * s.repeats * machine.tiles) * b.result;
        opens = false;
      }
    }
  }
  return sum;
}

TEST_CASE("a mapping loads A once per block along n, B once per block along m, and stores each result once") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  GemmMapping map;
  map.grid = &*std::find_if(grids.begin(), grids.end(), [](const Grid& g) { return g.m == 4 && g.n == 4; });
  GemmProblem p{.m = 1000, .n = 2000, .k = 300};
  map.bm = 128;  // of 250: 2 blocks
  map.bn = 256;  // of 500: 2 blocks
  map.bk = 64;
  map.a = {Feed::multicast, 2, true};
  map.b = {Feed::multicast, 2, true};
  Schedule s;
  lower(machine, p, map, s);
  Moved sum = moved(machine, s);
  CHECK(sum.a == Approx(2 * 1000 * 300 * 2.0));
  CHECK(sum.b == Approx(2 * 2000 * 300 * 2.0));
  CHECK(sum.results == Approx(1000 * 2000 * 2.0));
  // A tile's 250 x 500 x 300 rounded up in blocks to 256 x 512 x 304.
  CHECK(sum.multiplied == Approx(2.0 * 256 * 512 * 304 / 8e12));

  map.panel = 5;  // all slices stay
  lower(machine, p, map, s);
  CHECK(moved(machine, s).a == Approx(1000 * 300 * 2.0));
  map.a.feed = Feed::direct;  // each of four tiles loads its own copy
  lower(machine, p, map, s);
  CHECK(moved(machine, s).a == Approx(4 * 1000 * 300 * 2.0));
  map.a.feed = Feed::ring;
  lower(machine, p, map, s);
  CHECK(moved(machine, s).a == Approx(1000 * 300 * 2.0));
}

TEST_CASE("a tile holds its slices, sums and staged results") {
  const std::vector<Grid> grids = all_grids(tx8());
  GemmMapping map;
  map.grid = &*std::find_if(grids.begin(), grids.end(), [](const Grid& g) { return g.m == 4 && g.n == 4; });
  const GemmProblem p{.m = 1024, .n = 2048, .k = 4096};
  map.bm = 256;
  map.bn = 512;
  map.bk = 64;
  map.a = {Feed::multicast, 2, true};
  map.b = {Feed::multicast, 1, true};
  map.results = Results::staged;
  // 2 x 256 x 64 x 2 + 64 x 512 x 2 + 256 x 512 x (4 + 2)
  CHECK(sram_of(p, map) == 65536 + 65536 + 786432);
  map.results = Results::doubled;
  CHECK(sram_of(p, map) == 65536 + 65536 + 1048576);
  map.a.feed = Feed::ring;  // two slots and one passing through, of a quarter each
  CHECK(sram_of(p, map) == 24576 + 65536 + 1048576);
}

TEST_CASE("a product in one step takes load, latency, product and store") {
  Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  GemmMapping map;
  map.grid = &*std::find_if(grids.begin(), grids.end(), [](const Grid& g) { return g.m == 16; });
  const GemmProblem p{.m = 1024, .n = 128, .k = 256};
  map.bm = 64;
  map.bn = 128;
  map.bk = 256;
  map.b.feed = Feed::multicast;
  map.results = Results::doubled;
  Schedule s;
  lower(machine, p, map, s);
  // 0.524 MB of A and 65.5 kB of B at 100 GB/s and 100 ns; the last tile is 15 hops away.
  const double load = (1024 * 256 + 256 * 128) * 2 / 100e9 + 1e-7 + 15e-8;
  const double product = 2.0 * 64 * 128 * 256 / 8e12;
  const double store = 1024 * 128 * 2 / 100e9 + 1e-7;
  const double simulated = simulate(machine, s).seconds;
  CHECK(simulated == Approx(load + product + store).epsilon(0.03));
  CHECK(simulated <= load + product + store);  // B reaches the first tiles earlier
  CHECK(pipeline_time(machine, s).seconds == Approx(simulated).epsilon(0.03));
}

TEST_CASE("no mapping is faster than its units or its traffic") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    const GemmSample x = random_sample(machine, grids, random, 8192, 300);
    Schedule s;
    lower(machine, x.problem, x.mapping, s);
    const Simulated simulated = simulate(machine, s);
    const PipelineTime time = pipeline_time(machine, s);
    const double roof = std::max(x.problem.flops() / (16 * machine.matrix), x.problem.least_bytes() / machine.dram);
    CHECK(simulated.seconds >= roof);
    CHECK(time.seconds >= roof);
    CHECK(simulated.seconds >= simulated.dram_busy);
    CHECK(time.dram == Approx(simulated.dram_busy));
    CHECK(time.compute == Approx(std::max(simulated.matrix_busy, simulated.vector_busy)).epsilon(0.02));
  }
}

TEST_CASE("the closed form agrees with the simulation over a thousand random mappings") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Random random(3);
  std::vector<double> errors;
  Schedule s;
  for (int i = 0; i < 1000; ++i) {
    const GemmSample x = random_sample(machine, grids, random, 8192, 400);
    lower(machine, x.problem, x.mapping, s);
    errors.push_back(std::abs(pipeline_time(machine, s).seconds / simulate(machine, s).seconds - 1));
  }
  const Agreement agreement = agreement_of(errors);
  CHECK(agreement.mean < 0.04);
  CHECK(agreement.p90 < 0.12);
}

TEST_CASE("the closed form agrees better with the simulation over mappings that the search picks") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Search<GemmProblem> search(machine, grids);
  Random random(7);
  std::vector<double> errors;
  double worst = 0;  // of those that take longer than a few latencies
  Schedule s;
  while (errors.size() < 60) {
    const GemmProblem p{.m = random.size(1, 8192), .n = random.size(16, 8192), .k = random.size(16, 8192)};
    if (p.flops() > 1e11) continue;  // sooner simulated
    double best = 1e30;
    double error = 0;
    for (const Choice<GemmProblem>& choice : search.best(p, 4)) {
      lower(machine, as_mapped(p, choice.mapping), choice.mapping, s);
      const double simulated = simulate(machine, s).seconds;
      if (simulated >= best) continue;
      best = simulated;
      error = std::abs(choice.time.seconds / simulated - 1);
    }
    errors.push_back(error);
    if (best > 2e-6) worst = std::max(worst, error);
  }
  CHECK(agreement_of(errors).mean < 0.02);
  CHECK(worst < 0.06);
}

TEST_CASE("a long schedule takes what few of its steps, blocks and rows say") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Search<GemmProblem> search(machine, grids);
  std::vector<double> errors;
  Schedule s;
  for (const auto& [m, n, k] : {std::tuple{4096, 4096, 4096},
                                {2000, 3000, 5000},
                                {64, 11008, 4096},
                                {9634, 502, 5278},
                                {4361, 3653, 8404},
                                {1837, 14267, 9011},
                                {120000, 96, 64},
                                {3000, 3000, 900}}) {
    const GemmProblem p{.m = m, .n = n, .k = k};
    for (const Choice<GemmProblem>& choice : search.best(p, 2)) {
      lower(machine, as_mapped(p, choice.mapping), choice.mapping, s);
      errors.push_back(std::abs(simulated_seconds(machine, s) / simulate(machine, s).seconds - 1));
    }
  }
  const Agreement agreement = agreement_of(errors);
  CHECK(agreement.mean < 0.003);
  CHECK(*std::max_element(errors.begin(), errors.end()) < 0.03);
}

TEST_CASE("a short schedule is simulated in full") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  const GemmProblem p{.m = 300, .n = 500, .k = 700};
  const Choice<GemmProblem> best = Search<GemmProblem>(machine, grids).best(p, 1).front();
  Schedule s;
  lower(machine, as_mapped(p, best.mapping), best.mapping, s);
  CHECK(simulated_seconds(machine, s) == simulate(machine, s).seconds);
}

}  // namespace
}  // namespace llmperf::mapper::tile::tile_gemm_test
