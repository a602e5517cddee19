#include "catch.h"
#include "mapper/tile/simulation.h"
#include "mapper/tile/vector.h"
#include "tile_sums.h"

namespace llmperf::mapper::tile::tile_vector_test {
namespace {

// RMSNorm: 4 operations per element, weights that all rows share.
VectorProblem norm(std::int64_t rows, std::int64_t width) { return {rows, width, 2, 2, 2, 4, true}; }

VectorProblem random_problem(Random& random, double least, double most) {
  VectorProblem p = norm(random.size(least, most), random.size(least, most));
  p.row_wise = random.chance(0.5);
  if (random.chance(0.5)) p.shared_bytes = 0;
  if (random.chance(0.5)) p.in_bytes = 4;
  p.ops = static_cast<double>(random.size(1, 8));
  return p;
}

TEST_CASE("vector work moves every element once and the shared operand once per group") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  const VectorProblem p = norm(1024, 512);
  VectorMapping map;
  map.grid = &find_grid(grids, 1, 4, 4);  // 256 rows of 128 columns per tile
  map.br = 64;
  map.bc = 128;
  map.feed = Feed::multicast;
  Schedule schedule;
  lower(machine, p, map, schedule);
  Sums sums = sums_of(machine, schedule);
  CHECK(sums.steps == 4);
  CHECK(sums.a == Approx(512 * 2));
  CHECK(sums.b == Approx(1024 * 512 * 2));
  CHECK(sums.result == Approx(1024 * 512 * 2));
  CHECK(sums.bytes() == Approx(p.least_bytes()));
  CHECK(sums.vector * machine.vector == Approx(p.vector_ops()));
  // Two statistics of four bytes for each of 64 rows, three quarters of which go to other tiles.
  CHECK(schedule.blocks.front().reduce == Approx(64 * 8 * 0.75));

  map.feed = Feed::direct;
  lower(machine, p, map, schedule);
  CHECK(sums_of(machine, schedule).a == Approx(4 * 512 * 2));
  CHECK(sram_of(p, map) == 128 * 2 + 64 * 128 * (2 * 2 + 2 * 2));
}

TEST_CASE("the search finds what timing every mapping of vector work finds, to a thousandth") {
  Machine machine = small_array();
  machine.sram = 16384;
  const std::vector<Grid> grids = all_grids(machine);
  Search<VectorProblem> search(machine, grids);
  Random random(4);
  for (int i = 0; i < 300; ++i) {
    const VectorProblem p = random_problem(random, 1, 2000);
    const std::vector<Choice<VectorProblem>> best = search.best(p, 1);
    const Choice<VectorProblem> truth = exhaustive(search, p);
    REQUIRE(best.size() == 1);
    CHECK(best.front().time.seconds >= truth.time.seconds);
    CHECK(best.front().time.seconds <= truth.time.seconds * 1.0011);
    CHECK(best.front().time.seconds >= p.least_bytes() / machine.dram);
    CHECK(best.front().time.seconds >= p.vector_ops() / (machine.tiles * machine.vector));
  }
}

TEST_CASE("the closed form agrees with the simulation of vector work that takes longer than a few latencies") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Search<VectorProblem> search(machine, grids);
  Random random(5);
  Schedule schedule;
  std::vector<double> errors;
  for (int i = 0; i < 300; ++i) {
    const VectorProblem p = random_problem(random, 200, 20000);
    const std::vector<Choice<VectorProblem>> best = search.best(p, 1);
    REQUIRE(best.size() == 1);
    lower(machine, p.flat(), best.front().mapping, schedule);
    const double simulated = simulate(machine, schedule).seconds;
    errors.push_back(std::abs(best.front().time.seconds / simulated - 1));
  }
  const Agreement agreement = agreement_of(errors);
  CHECK(agreement.mean < 0.02);
  CHECK(agreement.p90 < 0.06);
}

TEST_CASE("RMSNorm, a residual and a product of 4096 rows take what their bytes take") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Search<VectorProblem> search(machine, grids);
  CHECK(search.best(norm(4096, 4096), 1).front().time.seconds == Approx(0.671e-3).epsilon(0.002));
  CHECK(search.best({4096, 4096, 4, 0, 2, 1, false}, 1).front().time.seconds == Approx(1.007e-3).epsilon(0.002));
  CHECK(search.best({4096, 11008, 4, 0, 2, 1, false}, 1).front().time.seconds == Approx(2.705e-3).epsilon(0.002));
}

TEST_CASE(
    "products beside vector work take the matrix unit's time, while the vector unit is busy with the next block") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Search<VectorProblem> search(machine, grids);
  VectorProblem p = {8192, 4096, 2, 0, 2, 1, false};
  const double alone = search.best(p, 1).front().time.seconds;
  // As long as the vector unit would take for 100 operations, and then 100 operations beside them.
  const double flops = machine.matrix / machine.vector * 100;
  p.products = flops;
  const double products = search.best(p, 1).front().time.seconds;
  const double matrix = p.flops() / (machine.tiles * machine.matrix);
  CHECK(alone < matrix);
  CHECK(products >= matrix);
  CHECK(products < 1.1 * matrix);
  p.ops = 100;
  CHECK(search.best(p, 1).front().time.seconds < 1.1 * matrix);
  Machine shared = machine;
  shared.shared_issue = true;
  Search<VectorProblem> serial(shared, grids);
  CHECK(serial.best(p, 1).front().time.seconds > 1.9 * matrix);
}

TEST_CASE("rows longer than a tile's memory are spread over tiles, and with too little memory there is no mapping") {
  Machine machine = small_array();
  machine.sram = 24576;
  const std::vector<Grid> grids = all_grids(machine);
  Search<VectorProblem> search(machine, grids);
  const std::vector<Choice<VectorProblem>> best = search.best(norm(2, 8192), 1);  // 16 kB of input and of output a row
  REQUIRE(best.size() == 1);
  CHECK(best.front().mapping.grid->k >= 2);
  CHECK(search.best(norm(2, 65536), 1).empty());
}

}  // namespace
}  // namespace llmperf::mapper::tile::tile_vector_test
