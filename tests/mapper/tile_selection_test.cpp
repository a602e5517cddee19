// The mapping that a problem gets: that none of many others is much faster, that a better array or less work does not
// take longer, and that it does not depend on the order in which anything is kept.
#include <algorithm>
#include <array>
#include <string>

#include "catch.h"
#include "mapper/tile/description.h"
#include "mapper/tile/search.h"
#include "tile_gemm_samples.h"

namespace llmperf::mapper::tile::tile_selection_test {
namespace {

constexpr double kEqual = 1.01;  // times that count as equal

Machine tx81() {
  Machine m = tx8();
  m.dram = 200e9;
  return m;
}

// Two products for every attention and every vector work.
Problem random_problem(Random& random, int i) {
  if (i % 4 == 1) return random_attention(random);
  if (i % 4 == 3) return random_vector(random);
  return random_gemm(random, 8192);
}

std::string text(const GemmProblem& p) {
  return "product " + std::to_string(p.batch) + " of " + std::to_string(p.m) + " x " + std::to_string(p.n) + " x " +
         std::to_string(p.k) + ", " + std::to_string(p.prepare_ops) + " operations before, " +
         std::to_string(p.finish_ops) + " after, operand " + std::to_string(p.finish_bytes) + ", results " +
         std::to_string(p.results);
}
std::string text(const AttentionProblem& p) {
  return "attention of " + std::to_string(p.sequences) + " x " + std::to_string(p.kv_heads) + " x " +
         std::to_string(p.group) + ", " + std::to_string(p.queries) + " to " + std::to_string(p.keys) + " of " +
         std::to_string(p.qk_dim) + (p.causal ? " causal" : "");
}
std::string text(const VectorProblem& p) {
  return "vector work on " + std::to_string(p.rows) + " x " + std::to_string(p.width) + ", shared " +
         std::to_string(p.shared_bytes) + ", " + std::to_string(p.ops) + " operations" +
         (p.row_wise ? " row-wise" : "");
}
std::string text(const Problem& problem) {
  return std::visit([](const auto& p) { return text(p); }, problem);
}

// Of the mapping selected, where at least `keep` are asked for.
double selected(const Machine& machine, const std::vector<Grid>& grids, const Problem& problem, std::size_t keep = 1) {
  return std::visit(
      [&]<typename P>(const P& p) { return Search<P>(machine, grids).select(p, keep).found.front().simulated; },
      problem);
}

struct Missed {
  int problems = 0;  // that others of many mappings are faster for by more than a hundredth
  double sum = 0;    // of by how much the fastest of these is faster
  double worst = 0;

  void add(double slower) {
    sum += slower;
    worst = std::max(worst, slower);
    if (slower > kEqual - 1) ++problems;
  }
};

// Of one mapping, and of three, against twenty.
Missed missed_of_twenty(std::uint64_t seed, int problems) {
  Random random(seed);
  Missed missed;
  for (int i = 0; i < problems; ++i) {
    const Machine machine = i % 3 == 0 ? tx81() : tx8();
    const std::vector<Grid> grids = all_grids(machine);
    const Problem problem = random_problem(random, i);
    const double alone = selected(machine, grids, problem);
    const double shown = selected(machine, grids, problem, 3);
    const double slower = std::max(alone, shown) / selected(machine, grids, problem, 20) - 1;
    missed.add(slower);
    if (slower > kEqual - 1) UNSCOPED_INFO(text(problem) << ": " << 100 * slower << " % slower");
  }
  return missed;
}

TEST_CASE("of twenty mappings none is faster than the one selected by more than a hundredth") {
  CHECK(missed_of_twenty(1, test::cases(60)).problems == 0);
}
TEST_CASE("of twenty mappings of a thousand problems few are faster by more than a hundredth", "[.long]") {
  const Missed missed = missed_of_twenty(2, 1000);
  CHECK(missed.problems <= 4);
  CHECK(missed.worst < 0.03);
}

Missed missed_of(std::uint64_t seed, int products) {
  Random random(seed);
  Missed missed;
  for (const Machine& machine : meshes()) {
    const std::vector<Grid> grids = all_grids(machine);
    for (int i = 0; i < products; ++i) {
      const Problem problem = random_gemm(random, 16384);
      const double shown = selected(machine, grids, problem, 3);
      const double slower = shown / selected(machine, grids, problem, 100) - 1;
      missed.add(slower);
      if (slower <= kEqual - 1) continue;
      UNSCOPED_INFO(text(problem) << " on " << machine.tiles << " tiles: " << shown << " s, " << 100 * slower
                                  << " % slower");
    }
  }
  return missed;
}

TEST_CASE("on meshes with fast and slow links three mappings are as good as a hundred for all but few") {
  const Missed missed = missed_of(5, test::cases(6));
  CHECK(missed.problems <= 1);
  CHECK(missed.worst < 0.03);
}
TEST_CASE("of 500 products on meshes with fast and slow links three mappings are as good as a hundred for all but few",
          "[.long]") {
  const Missed missed = missed_of(6, 125);
  INFO("missed " << missed.problems << ", on average " << 100 * missed.sum / 500 << " %, at worst "
                 << 100 * missed.worst << " %");
  CHECK(missed.problems <= 10);
  CHECK(missed.worst < 0.03);
  CHECK(missed.sum / 500 < 0.001);
}

// Products of which the three fastest by the closed form were up to 41 % slower than others; times of that search.
TEST_CASE("products on slow links for which the closed form misled the search") {
  const Machine slow = mesh(8, 8, 32e9, 288e9, 65.5e12, 4.1e12, 1.5e6);
  const std::vector<Grid> grids = all_grids(slow);
  for (const GemmProblem& p :
       {GemmProblem{.m = 32, .n = 4096, .k = 4096}, GemmProblem{.m = 32, .n = 8192, .k = 3584}}) {
    const double time = selected(slow, grids, p);
    INFO(text(p));
    CHECK(time <= selected(slow, grids, p, 100) * kEqual);
    CHECK(time <= 1.02 * p.least_bytes() / slow.dram);
  }
}

// Tiles are the same, so that every mapping of the lesser array is one of the better array's too.
struct Better {
  std::string_view what;
  double Machine::*part;
  double Machine::*other;
};
constexpr Better kBetter[] = {
    {"matrix rate", &Machine::matrix, nullptr},         {"vector rate", &Machine::vector, nullptr},
    {"both rates", &Machine::matrix, &Machine::vector}, {"SRAM", &Machine::sram, nullptr},
    {"DRAM bandwidth", &Machine::dram, nullptr},        {"links", &Machine::link, nullptr}};

// Slower arrays, and by how much the slowest.
struct Slower {
  int arrays = 0;
  double worst = 0;
};
Slower slower_of(std::uint64_t seed, int problems) {
  Random random(seed);
  const std::vector<Grid> grids = all_grids(tx8());
  Slower slower;
  for (int i = 0; i < problems; ++i) {
    const Machine lesser = i % 3 == 0 ? tx81() : tx8();
    const Problem problem = random_problem(random, i);
    const double before = selected(lesser, grids, problem);
    for (const Better& better : kBetter) {
      Machine machine = lesser;
      machine.*better.part *= 2;
      if (better.other != nullptr) machine.*better.other *= 2;
      const double after = selected(machine, grids, problem);
      if (after <= before * kEqual) continue;
      ++slower.arrays;
      slower.worst = std::max(slower.worst, after / before - 1);
      UNSCOPED_INFO(text(problem) << " with twice the " << better.what << " on " << (i % 3 == 0 ? "tx81" : "tx8")
                                  << ": " << before << " and " << after << " s");
    }
  }
  return slower;
}

TEST_CASE("an array with twice of something is not slower by more than a hundredth") {
  CHECK(slower_of(1, test::cases(40)).arrays == 0);
}
// The climb can end beside what it found on the lesser array.
TEST_CASE("of 3,702 arrays with twice of something one in a thousand is slower by a hundredth, none by two",
          "[.long]") {
  const Slower slower = slower_of(2, 617);
  CHECK(slower.arrays <= 3);
  CHECK(slower.worst < 0.02);
}

// Rows and columns are padded to whole granules of 16 on every tile, so that a product with fewer of them can take the
// same mapping with less in its last block: it is no slower, not even just below a multiple of 16 granules, where the
// tiles' parts become equal.
void less_is_not_slower(std::uint64_t seed, int problems) {
  Random random(seed);
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  for (int i = 0; i < problems; ++i) {
    const GemmProblem more = random_gemm(random, 8192);
    GemmProblem less = more;
    std::int64_t& side = i % 2 == 0 ? less.m : less.n;
    side -= std::min(side - 1, random.size(1, 64));
    INFO(text(less) << " and " << text(more));
    CHECK(selected(machine, grids, less) <= selected(machine, grids, more) * kEqual);
  }
}

TEST_CASE("less of a product is not slower by more than a hundredth") { less_is_not_slower(3, 40); }
TEST_CASE("less of a thousand products is not slower by more than a hundredth", "[.long]") {
  less_is_not_slower(4, 1000);
}

TEST_CASE("products that took other mappings for no reason") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  // Bytes of 4 products of 8192 x 256 x 64 and results: 4 x (8192 x 64 + 64 x 256 + 8192 x 256) x 2 / 100 GB/s.
  const GemmProblem tall{.m = 8192, .n = 256, .k = 64, .batch = 4};
  CHECK(tall.least_bytes() / machine.dram == Approx(210.9e-6).epsilon(0.001));
  CHECK(selected(machine, grids, tall) <= 211.5e-6);  // was 235.6 us, and 211.3 us with eight rows more
  const GemmProblem flat{.m = 2048, .n = 256, .k = 33};
  Machine faster = machine;
  faster.matrix *= 2;
  faster.vector *= 2;
  CHECK(selected(faster, grids, flat) <= selected(machine, grids, flat) * kEqual);
}

template <typename Choice>
bool same(const Choice& x, const Choice& y) {
  auto map = x.mapping;
  map.grid = y.mapping.grid;
  const Grid& g = *x.mapping.grid;
  const Grid& h = *y.mapping.grid;
  return map == y.mapping && g.batch == h.batch && g.m == h.m && g.n == h.n && g.k == h.k;
}

TEST_CASE("the order in which grids are kept decides nothing") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  std::mt19937_64 engine(9);
  std::vector<Grid> mixed = grids;
  Random random(7);
  for (int i = 0; i < 60; ++i) {
    std::shuffle(mixed.begin(), mixed.end(), engine);
    const Problem problem = random_problem(random, i);
    INFO(text(problem));
    std::visit(
        [&]<typename P>(const P& p) {
          const auto found = Search<P>(machine, grids).select(p, 3).found;
          const auto again = Search<P>(machine, mixed).select(p, 3).found;
          REQUIRE(found.size() == again.size());
          for (std::size_t j = 0; j < found.size(); ++j) {
            CHECK(found[j].simulated == again[j].simulated);
            CHECK(same(found[j].choice, again[j].choice));
          }
        },
        problem);
  }
}

TEST_CASE("what is near to a mapping fits and differs from it in what it says") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Random random(4);
  for (int i = 0; i < 30; ++i) {
    const GemmProblem p = random_gemm(random, 4096);
    Search<GemmProblem> search(machine, grids);
    const Choice<GemmProblem> best = search.best(p, 1).front();
    const std::vector<Choice<GemmProblem>> near = search.near(p, best.mapping);
    CHECK(!near.empty());
    for (const Choice<GemmProblem>& c : near) {
      CHECK(sram_of(as_mapped(p, c.mapping), c.mapping) <= machine.sram);
      CHECK(c.mapping != best.mapping);
    }
    CHECK(std::is_sorted(near.begin(), near.end(), [](const Choice<GemmProblem>& x, const Choice<GemmProblem>& y) {
      return x.time.seconds < y.time.seconds;
    }));
  }
}

}  // namespace
}  // namespace llmperf::mapper::tile::tile_selection_test
