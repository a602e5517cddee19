// The search of a product's mapping: its bounds, and that it finds what trying everything finds.
#include <string>

#include "catch.h"
#include "mapper/tile/gemm.h"
#include "tile_gemm_samples.h"

namespace llmperf::mapper::tile::tile_gemm_search_test {
namespace {

std::string shape(const GemmProblem& p) {
  return std::to_string(p.batch) + " of " + std::to_string(p.m) + " x " + std::to_string(p.n) + " x " +
         std::to_string(p.k);
}

// Mappings whose time is less than their bound, of so many random ones.
int beaten(const Machine& machine, Random& random, double most, int mappings) {
  const std::vector<Grid> grids = all_grids(machine);
  Schedule schedule;
  int result = 0;
  for (int i = 0; i < mappings;) {
    const GemmSample x = random_sample(machine, grids, random, most, 1'000'000);
    const GemmMapping& map = x.mapping;
    // What the search never does: leave tiles without a product, cut the last of several at once.
    if (map.grid->batch > x.problem.batch) continue;
    if (map.tail > 1 && (map.bb > 1 || x.problem.finish_bytes > 0)) continue;
    ++i;
    lower(machine, x.problem, map, schedule);
    const double seconds = pipeline_time(machine, schedule).seconds;
    const double bound = bound_of(machine, x.problem, map) * (1 - 1e-9);
    if (seconds >= bound) continue;
    ++result;
    INFO(shape(x.problem) << ", blocks of " << map.bm << " x " << map.bn << " x " << map.bk);
    CHECK(seconds >= bound);
  }
  return result;
}

TEST_CASE("no mapping is faster than the bound of its product and its levels") {
  Random random(21);
  CHECK(beaten(small_array(), random, 600, 40'000) == 0);
  CHECK(beaten(tx8(), random, 8192, 40'000) == 0);
}

TEST_CASE("a bound is no more than the roofs leave, where a mapping reaches them") {
  // 16 tiles of 1024 x 128 results, k of 1024: all bytes at 100 GB/s, or 2 x 1024 x 128 x 1024 / 8e11 s on slow units.
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  for (const Grid& grid : grids) {
    if (grid.m != 4 || grid.n != 4) continue;
    const GemmProblem p{.m = 4096, .n = 512, .k = 1024};
    CHECK(bound_of(machine, p, grid) == Approx(p.least_bytes() / 100e9 + 2e-7));
    Machine slow = machine;
    slow.matrix /= 10;
    CHECK(bound_of(slow, p, grid) == Approx(2.0 * 1024 * 128 * 1024 / 8e11 + 2e-7));
  }
}

TEST_CASE("the search finds what trying every mapping finds") {
  const Machine machine = small_array();
  const std::vector<Grid> grids = all_grids(machine);
  Search<GemmProblem> search(machine, grids);
  Random random(5);
  std::int64_t searched = 0;
  std::int64_t all = 0;
  for (int i = 0; i < test::cases(600); ++i) {
    const GemmProblem p = random_gemm(random, i % 10 == 0 ? 500 : 100);
    std::int64_t before = search.evaluated();
    const std::vector<Choice<GemmProblem>> best = search.best(p, 1);
    searched += search.evaluated() - before;
    before = search.evaluated();
    const Choice<GemmProblem> every = exhaustive(search, p);
    all += search.evaluated() - before;
    INFO(shape(p));
    REQUIRE(!best.empty());
    // A thousandth and 5 ns are of no interest.
    CHECK(best[0].time.seconds <= every.time.seconds * 1.001 + 5.001e-9);
    CHECK(best[0].time.seconds >= every.time.seconds * (1 - 1e-12));
    CHECK(sram_of(as_mapped(p, best[0].mapping), best[0].mapping) <= machine.sram);
  }
  CHECK(searched * 8 < all);
}

TEST_CASE("a search keeps the fastest mappings, each of another grid, side or kind of results") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  const std::vector<Choice<GemmProblem>> best =
      Search<GemmProblem>(machine, grids).best({.m = 512, .n = 2048, .k = 1024}, 4);
  REQUIRE(best.size() == 4);
  for (std::size_t i = 1; i < best.size(); ++i) {
    CHECK(best[i].time.seconds >= best[i - 1].time.seconds);
    for (std::size_t j = 0; j < i; ++j) {
      const GemmMapping& x = best[i].mapping;
      const GemmMapping& y = best[j].mapping;
      CHECK(
          (x.transposed != y.transposed || x.grid != y.grid || x.bm != y.bm || x.bn != y.bn || x.results != y.results));
    }
  }
}

TEST_CASE("block sides are multiples of the granule that cut a dimension in ever more blocks") {
  CHECK(block_sides(100, 16, {12, 8}) == std::vector<std::int64_t>{112, 64, 48, 32, 16});
  CHECK(block_sides(5, 16, {12, 8}) == std::vector<std::int64_t>{16});
  CHECK(block_sides(1024, 16, {1, 1}) == std::vector<std::int64_t>{1024, 512, 256, 128, 64, 32, 16});
}

TEST_CASE("a memory too small for any block has no mapping") {
  Machine machine = tx8();
  machine.sram = 64;
  const std::vector<Grid> grids = all_grids(machine);
  CHECK(Search<GemmProblem>(machine, grids).best({.m = 64, .n = 64, .k = 64}, 1).empty());
}

}  // namespace
}  // namespace llmperf::mapper::tile::tile_gemm_search_test
