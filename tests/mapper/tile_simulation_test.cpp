// Simulations of long schedules, of which only some is executed: by hand, and against all of them.
#include <algorithm>
#include <tuple>

#include "catch.h"
#include "mapper/tile/description.h"
#include "mapper/tile/simulation.h"
#include "tile_gemm_samples.h"
#include "tile_sums.h"

namespace llmperf::mapper::tile::tile_simulation_test {
namespace {

// Rows of blocks that are alike: every tile loads 1,000 bytes of B for 1 us of work, and keeps its results.
Schedule alike(const Grid& grid, std::int64_t rows, std::int64_t blocks) {
  Schedule s;
  s.grid = &grid;
  s.b = {Feed::direct, 2, true};
  Block block;
  block.full.after = block.last.after = 1e-6;
  block.full.b = block.last.b = 1000;
  block.count = blocks;
  s.blocks = {block};
  s.rows = {{0, 1, rows}};
  return s;
}

TEST_CASE("blocks that are alike take as long as each other, so that few of them are executed") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  // 16 tiles x 1,000 B at 100 GB/s are 160 ns of the channel, less than a block's work: after the first loads and a
  // latency of 100 ns, of which the last tile waits for all 16, it is work alone.
  for (const auto& [rows, blocks] : {std::tuple{1, 100'000}, {100'000, 1}, {300, 300}}) {
    const Schedule s = alike(grids.front(), rows, blocks);
    std::int64_t served = 0;
    CHECK(simulated_seconds(machine, s, 500, &served) == Approx(100e-9 + 160e-9 + rows * blocks * 1e-6).epsilon(1e-9));
    CHECK(served < 16 * 50);
  }
  const Schedule whole = alike(grids.front(), 3, 50);
  CHECK(simulate(machine, whole).seconds == Approx(100e-9 + 160e-9 + 150e-6).epsilon(1e-9));
}

TEST_CASE("sequences that are repeated are executed until one takes as long as another") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Schedule s = alike(grids.front(), 2, 5);
  s.repeats = 1000;
  std::int64_t served = 0;
  CHECK(simulated_seconds(machine, s, 500, &served) == Approx(260e-9 + 10'000 * 1e-6).epsilon(1e-9));
  CHECK(served < 16 * 100);
}

// Errors of what is simulated in part, of the fastest mappings of random problems; whole simulations of up to `most`
// requests are compared.
template <typename Problem, typename Draw>
std::vector<double> errors_of(const Machine& machine, Random& random, int problems, double most, const Draw& draw) {
  const std::vector<Grid> grids = all_grids(machine);
  Search<Problem> search(machine, grids);
  std::vector<double> errors;
  for (int i = 0; i < problems; ++i) {
    const Problem problem = draw(random);
    for (const auto& choice : search.best(problem, 2)) {
      const Schedule s = schedule_of(machine, problem, choice.mapping);
      const double requests = traffic_of(machine, s).requests;
      const std::int64_t few = 500 + 12 * machine.tiles;
      if (requests <= static_cast<double>(few) || requests > most) continue;
      errors.push_back(std::abs(simulated_seconds(machine, s, few) / simulate(machine, s).seconds - 1));
    }
  }
  return errors;
}

GemmProblem large_gemm(Random& random) {
  GemmProblem p = random_gemm(random, 16384);
  (random.chance(0.5) ? p.m : p.n) *= random.chance(0.5) ? 16 : 1;
  return p;
}
VectorProblem large_vector(Random& random) {
  VectorProblem p = random_vector(random);
  p.rows *= 100;
  return p;
}

// Of products, attention and vector work; mean over all, and the share that is off by more than a fiftieth.
void parts_are_as_the_whole(std::uint64_t seed, int problems, double most) {
  Random random(seed);
  std::vector<double> all;
  for (const Machine& machine : meshes()) {
    for (const std::vector<double>& errors :
         {errors_of<GemmProblem>(machine, random, problems, most, large_gemm),
          errors_of<AttentionProblem>(machine, random, problems, most, random_attention),
          errors_of<VectorProblem>(machine, random, problems, most, large_vector)}) {
      all.insert(all.end(), errors.begin(), errors.end());
    }
  }
  REQUIRE(all.size() > 4);
  const auto far = std::ranges::count_if(all, [](double error) { return error > 0.02; });
  INFO(far << " of " << all.size() << " are off, at worst by " << 100 * *std::ranges::max_element(all) << " %");
  CHECK(agreement_of(all).mean < 0.004);
  CHECK(static_cast<double>(far) <= 0.05 * static_cast<double>(all.size()));
  CHECK(*std::ranges::max_element(all) < 0.12);
}

TEST_CASE("a simulation in part takes as long as the whole on meshes with fast and slow links") {
  parts_are_as_the_whole(1, 8, 50'000);
}
TEST_CASE("many simulations in part take as long as the whole", "[.long]") { parts_are_as_the_whole(2, 60, 300'000); }

}  // namespace
}  // namespace llmperf::mapper::tile::tile_simulation_test
