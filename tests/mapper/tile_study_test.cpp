// What is said about a mapping: its traffic, memory, phases and drawing, by hand and against the simulation.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "catch.h"
#include "mapper/tile/simulation.h"
#include "mapper/tile/study.h"
#include "tile_machine.h"

namespace llmperf::mapper::tile::tile_study_test {
namespace {

GemmProblem random_gemm(Random& random) {
  GemmProblem p{.m = random.size(1, 1500), .n = random.size(16, 1500), .k = random.size(16, 1500)};
  if (random.chance(0.3)) p.batch = random.size(2, 20);
  if (random.chance(0.3)) p.finish_bytes = 2;
  if (random.chance(0.3)) p.finish_ops = 4;
  return p;
}
AttentionProblem small_attention(Random& random) {
  AttentionProblem p;
  p.kv_heads = random.size(1, 16);
  p.group = random.size(1, 4);
  p.keys = random.size(64, 3000);
  p.queries = random.size(1, static_cast<double>(p.keys));
  p.causal = random.chance(0.5);
  return p;
}
VectorProblem small_vector(Random& random) {
  VectorProblem p{.rows = random.size(1, 3000), .width = random.size(64, 3000)};
  if (random.chance(0.5)) p.shared_bytes = 2;
  p.row_wise = random.chance(0.5);
  return p;
}
Problem random_problem(Random& random, int kind) {
  if (kind == 0) return random_gemm(random);
  if (kind == 1) return small_attention(random);
  return small_vector(random);
}

template <typename Check>
void for_random_studies(std::uint64_t seed, const Check& check) {
  const Machine machine = tx8();
  Random random(seed);
  for (int i = 0; i < 60; ++i) {
    const Problem problem = random_problem(random, i % 3);
    const Study study(machine, problem, {.keep = 3, .whole = false});
    for (const StudiedMapping& m : study.mappings()) check(study, m);
  }
}

TEST_CASE("the bound is the work at the rates of all tiles and every tensor once over DRAM") {
  const Bound b = bound_of(tx8(), GemmProblem{.m = 4096, .n = 12288, .k = 4096});
  CHECK(b.matrix == Approx(2.0 * 4096 * 12288 * 4096 / 128e12));  // 3.221 ms
  CHECK(b.matrix == Approx(3.2212e-3).epsilon(1e-4));
  CHECK(b.dram == Approx((4096.0 * 4096 + 4096.0 * 12288 + 4096.0 * 12288) * 2 / 100e9));
  CHECK(b.resource() == "matrix");
  GemmProblem residual{.m = 64, .n = 64, .k = 64};
  residual.finish_ops = 1;
  residual.finish_bytes = 2;
  CHECK(bound_of(tx8(), residual).vector == Approx(64 * 64 / 1e12));
  CHECK(bound_of(tx8(), residual).dram == Approx(4 * 64 * 64 * 2 / 100e9));
}

TEST_CASE("traffic is what the simulation moves and how long it keeps units at work") {
  const Machine machine = tx8();
  for_random_studies(11, [&](const Study&, const StudiedMapping& m) {
    const Traffic& t = m.description.traffic;
    const Simulated s = simulate(machine, m.schedule);
    CHECK(t.dram() / machine.dram == Approx(s.dram_busy));
    CHECK(t.matrix == Approx(s.matrix_busy).margin(1e-15));
    CHECK(t.vector == Approx(s.vector_busy).margin(1e-15));
    const bool rings = m.schedule.a.feed == Feed::ring || m.schedule.b.feed == Feed::ring;
    if (!rings) CHECK(t.link >= s.link_busy * (1 - 1e-9));  // of one link that has most of both operands
  });
}

TEST_CASE("what goes over links is counted once per link of the way") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  const GemmProblem p{.m = 256, .n = 1024, .k = 64};
  Choice<GemmProblem> choice;
  choice.mapping.grid = &*std::find_if(grids.begin(), grids.end(), [](const Grid& g) { return g.n == 16; });
  choice.mapping.bm = 256;
  choice.mapping.bn = 64;
  choice.mapping.bk = 64;
  choice.mapping.a = {Feed::multicast, 2, true};
  const double a = 256 * 64 * 2;
  // All of A from tile to tile, 15 times, each time to a neighbour.
  Traffic t = traffic_of(machine, schedule_of(machine, p, choice.mapping));
  CHECK(t.a.dram == a);
  CHECK(t.a.passed == 15 * a);
  CHECK(t.a.hops == 15 * a);
  CHECK(t.link == Approx(a / 128e9));
  CHECK(t.requests == 1 + 16 + 16);
  // Sixteenths go round; the way from the last tile of the path back to the first is three links up the mesh's side.
  choice.mapping.a.feed = Feed::ring;
  t = traffic_of(machine, schedule_of(machine, p, choice.mapping));
  CHECK(t.a.dram == a);
  CHECK(t.a.passed == 15 * a);
  CHECK(t.a.hops == Approx(15 * a / 16 * (15 + 3)));
  choice.mapping.a.feed = Feed::direct;
  t = traffic_of(machine, schedule_of(machine, p, choice.mapping));
  CHECK(t.a.dram == 16 * a);
  CHECK(t.passed() == 0);
}

TEST_CASE("the memory of a tile is that of its operands") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  GemmProblem p{.m = 1024, .n = 2048, .k = 4096};
  p.finish_bytes = 2;
  Choice<GemmProblem> choice;
  GemmMapping& map = choice.mapping;
  map.grid = &*std::find_if(grids.begin(), grids.end(), [](const Grid& g) { return g.m == 4 && g.n == 4; });
  map.bm = 256;
  map.bn = 256;
  map.bk = 64;
  map.a = {Feed::multicast, 2, true};
  map.b = {Feed::multicast, 1, true};
  map.results = Results::staged;
  const Description d = describe(machine, p, choice);
  REQUIRE(d.operands.size() == 4);
  CHECK(d.operands[0].sram == 2 * 256 * 64 * 2);
  CHECK(d.operands[1].sram == 64 * 256 * 2);
  CHECK(d.operands[2].sram == 256 * 256 * (4 + 2));
  CHECK(d.operands[3].sram == 256 * 256 * 2);
  CHECK(d.operands[3].moved.dram == Approx(1024 * 2048 * 2));
  CHECK(d.dimensions[1].blocks == 2);
  CHECK(d.stays.operand == "results");
}

TEST_CASE("a transposed product is described by the operands and dimensions of the op") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  const GemmProblem p{.m = 1024, .n = 2048, .k = 256};
  Choice<GemmProblem> choice;
  GemmMapping& map = choice.mapping;  // of [2048, 256] x [256, 1024]
  map.grid = &*std::find_if(grids.begin(), grids.end(), [](const Grid& g) { return g.m == 8 && g.n == 2; });
  map.transposed = true;
  map.bm = 256;
  map.bn = 128;
  map.bk = 64;
  map.panel = 4;
  map.a = {Feed::multicast, 1, true};
  map.b = {Feed::multicast, 2, true};
  const Description d = describe(machine, p, choice);
  CHECK(d.dimensions[0].name == "m");
  CHECK(d.dimensions[0].tiles == 2);
  CHECK(d.dimensions[0].block == 128);
  CHECK(d.dimensions[1].tiles == 8);
  CHECK(d.operands[0].name == "A");
  CHECK(d.operands[0].least == 1024 * 256 * 2);
  CHECK(d.operands[0].sharers == 8);
  CHECK(d.operands[1].buffers == 0);
  CHECK(d.operands[1].sram == 256 * 256 * 2);
  CHECK(d.operands[1].moved.dram == Approx(256 * 2048 * 2));
  CHECK(d.stays.operand == "B");
}

TEST_CASE("memory adds up over operands, traffic too, and phases to the closed form") {
  for_random_studies(5, [](const Study& study, const StudiedMapping& m) {
    const Description& d = m.description;
    double sram = d.working;
    double dram = 0;
    for (const Operand& o : d.operands) {
      CHECK(o.sram >= 0);
      CHECK(o.moved.dram >= o.least * (1 - 1e-9));
      sram += o.sram;
      dram += o.moved.dram;
    }
    CHECK(sram == Approx(d.sram));
    CHECK(d.sram <= study.machine().sram);
    CHECK(dram == Approx(d.traffic.dram()));
    double seconds = 0;
    for (const Phase& p : d.phases) {
      CHECK(std::max({p.dram, p.noc, p.matrix, p.vector}) <= p.seconds);
      seconds += p.seconds;
    }
    CHECK(seconds == Approx(d.closed_form));
    CHECK(m.simulated >= study.bound().seconds() * (1 - 1e-9));
  });
}

TEST_CASE("a product in one step is drawn as load, product and store") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  const GemmProblem p{.m = 1024, .n = 128, .k = 256};
  Choice<GemmProblem> choice;
  choice.mapping.grid = &*std::find_if(grids.begin(), grids.end(), [](const Grid& g) { return g.m == 16; });
  choice.mapping.bm = 64;
  choice.mapping.bn = 128;
  choice.mapping.bk = 256;
  choice.mapping.b.feed = Feed::multicast;
  const Timeline t = timeline_of(machine, schedule_of(machine, p, choice.mapping));
  const double a = 1024 * 256 * 2 / 100e9;
  const double b = 256 * 128 * 2 / 100e9;
  const double product = 2.0 * 64 * 128 * 256 / 8e12;
  const double c = 1024 * 128 * 2 / 100e9;
  REQUIRE(t.of(Lane::matrix).size() == 1);
  CHECK(t.of(Lane::load_a).front().end == Approx(a));
  CHECK(t.of(Lane::load_b).front().end == Approx(a + b));
  CHECK(t.of(Lane::matrix).front().end - t.of(Lane::matrix).front().begin == Approx(product));
  CHECK(t.of(Lane::store).front().end - t.of(Lane::store).front().begin == Approx(c));
  // The first tile starts and stores first, the others in turn behind it.
  CHECK(t.seconds == Approx(a + b + 1e-7 + product + c + 1e-7).epsilon(1e-3));
}

TEST_CASE("a drawing is as long as the simulation that it is of") {
  for_random_studies(3, [](const Study& study, const StudiedMapping& m) {
    const Timeline t = timeline_of(study.machine(), m.schedule);
    if (t.cut) return;
    CHECK(t.seconds == simulate(study.machine(), m.schedule).seconds);
    CHECK(static_cast<std::int64_t>(t.ends.size()) == t.steps);
    CHECK(std::is_sorted(t.ends.begin(), t.ends.end()));
  });
}

TEST_CASE("bars of a unit do not overlap, and every step is worked on once") {
  for_random_studies(8, [](const Study& study, const StudiedMapping& m) {
    const Timeline t = timeline_of(study.machine(), m.schedule);
    for (const Lane lane : {Lane::matrix, Lane::vector}) {
      const std::vector<Bar>& bars = t.of(lane);
      for (std::size_t i = 1; i < bars.size(); ++i) CHECK(bars[i].begin >= bars[i - 1].end * (1 - 1e-12));
    }
    if (t.cut) return;
    const auto busy = [&](Lane lane) {
      const std::vector<Bar>& bars = t.of(lane);
      return std::accumulate(bars.begin(), bars.end(), 0.0, [](double s, const Bar& b) { return s + b.end - b.begin; });
    };
    CHECK(busy(Lane::matrix) == Approx(m.description.traffic.matrix).margin(1e-15));
    CHECK(busy(Lane::vector) == Approx(m.description.traffic.vector).margin(1e-15));
    CHECK((busy(Lane::load_a) + busy(Lane::load_b) + busy(Lane::joined) + busy(Lane::store)) * study.machine().dram ==
          Approx(m.description.traffic.dram()));
  });
}

TEST_CASE("a long schedule is drawn from few of its steps") {
  const Study study(tx8(), GemmProblem{.m = 65536, .n = 65536, .k = 65536}, {.keep = 1, .whole = false});
  const Timeline t = timeline_of(study.machine(), study.mappings().front().schedule);
  CHECK(t.cut);
  CHECK(static_cast<double>(t.steps) > 10 * static_cast<double>(t.ends.size()));
}

TEST_CASE("where no mapping fits, the least memory that would do is named") {
  Machine machine = tx8();
  machine.sram = 1024;
  const GemmProblem p{.m = 4096, .n = 4096, .k = 4096};
  // A slice of A and one of B, 16 x 16 elements of two bytes, and as many sums of four.
  CHECK(least_sram(machine, all_grids(machine), p) == 16 * 16 * (2 + 2 + 4));
  try {
    const Study study(machine, p, {});
    FAIL("fits");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::infeasible);
    CHECK(std::string(e.what()).find("the least that one needs is 2 KiB") != std::string::npos);
  }
  machine.sram = 2048;
  CHECK_NOTHROW(Study(machine, p, {}));
}

TEST_CASE("arrays of more tiles than mappings are searched for are refused") {
  hardware::Device device = hardware::load_device("tx8");
  device.tile_array->tiles = 4160;
  device.tile_array->mesh_x = 65;
  device.tile_array->mesh_y = 64;
  CHECK_THROWS_WITH(make_machine(device, Dtype::bf16), Catch::Matchers::Contains("at most 4096 tiles"));
}

TEST_CASE("a whole simulation of too many steps is refused") {
  CHECK_THROWS_AS(Study(tx8(), GemmProblem{.m = 65536, .n = 65536, .k = 65536}, {.keep = 1, .whole = true}), Error);
}

}  // namespace
}  // namespace llmperf::mapper::tile::tile_study_test
