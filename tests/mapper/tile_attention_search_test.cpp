#include "catch.h"
#include "mapper/tile/attention.h"
#include "mapper/tile/simulation.h"
#include "tile_sums.h"

namespace llmperf::mapper::tile::tile_attention_search_test {
namespace {

double roof(const Machine& machine, const AttentionProblem& p) {
  return std::max({p.flops() / (machine.tiles * machine.matrix), p.vector_ops() / (machine.tiles * machine.vector),
                   p.least_bytes() / machine.dram});
}

// The fastest in the simulation of the four that are fastest by the closed form.
double simulated(const Machine& machine, const AttentionProblem& p,
                 const std::vector<Choice<AttentionProblem>>& choices) {
  double best = 1e30;
  Schedule schedule;
  for (const Choice<AttentionProblem>& choice : choices) {
    lower(machine, p, choice.mapping, schedule);
    best = std::min(best, simulate(machine, schedule).seconds);
  }
  return best;
}

TEST_CASE("the search finds what timing every mapping of an attention finds, to a thousandth") {
  Machine machine = small_array();
  machine.sram = 24576;
  const std::vector<Grid> grids = all_grids(machine);
  Search<AttentionProblem> search(machine, grids);
  Random random(3);
  std::int64_t searched = 0;
  std::int64_t all = 0;
  for (int i = 0; i < 300; ++i) {
    AttentionProblem p;
    p.sequences = random.size(1, 3);
    p.kv_heads = random.size(1, 4);
    p.group = random.size(1, 2);
    p.queries = random.size(1, 96);
    p.keys = random.size(1, 128);
    p.qk_dim = p.v_dim = 16 * random.size(1, 3);
    p.causal = random.chance(0.5);
    if (p.causal) p.keys = std::max(p.keys, p.queries);
    if (random.chance(0.5)) p.rope_ops = 3;
    std::int64_t before = search.evaluated();
    const std::vector<Choice<AttentionProblem>> best = search.best(p, 1);
    searched += search.evaluated() - before;
    before = search.evaluated();
    const Choice<AttentionProblem> truth = exhaustive(search, p);
    all += search.evaluated() - before;
    REQUIRE(best.size() == 1);
    CHECK(best.front().time.seconds >= truth.time.seconds);
    CHECK(best.front().time.seconds <= truth.time.seconds * 1.0011);
    CHECK(sram_of(p, best.front().mapping) <= machine.sram);
  }
  CHECK(searched * 2 < all);
}

TEST_CASE("prefill of Llama-2-7B is within 4 % of what its vector work takes") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Search<AttentionProblem> search(machine, grids);
  AttentionProblem p;
  p.kv_heads = 32;
  p.queries = p.keys = 4096;
  p.rope_ops = 3;
  const std::vector<Choice<AttentionProblem>> best = search.best(p, 4);
  REQUIRE(best.size() == 4);
  CHECK(best[0].time.seconds <= best[1].time.seconds);
  CHECK(roof(machine, p) == Approx(2.8018e-3).epsilon(1e-4));
  const double seconds = simulated(machine, p, best);
  CHECK(seconds >= roof(machine, p));
  CHECK(seconds <= 1.04 * roof(machine, p));
}

TEST_CASE("decode takes what loading the keys takes") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Search<AttentionProblem> search(machine, grids);
  AttentionProblem p;
  p.kv_heads = 8;
  p.group = 8;
  p.keys = 4096;
  const double seconds = simulated(machine, p, search.best(p, 4));
  CHECK(seconds >= p.least_bytes() / machine.dram);
  CHECK(seconds <= 1.01 * p.least_bytes() / machine.dram);
}

TEST_CASE("an attention that no tile has room for has no mapping") {
  Machine machine = small_array();
  machine.sram = 1000;
  const std::vector<Grid> grids = all_grids(machine);
  AttentionProblem p;
  p.queries = p.keys = 64;
  CHECK(Search<AttentionProblem>(machine, grids).best(p, 1).empty());
}

}  // namespace
}  // namespace llmperf::mapper::tile::tile_attention_search_test
