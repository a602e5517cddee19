// Mappings that somebody wrote down: what the words mean, what is chosen for them, and what cannot be.
#include "base/error.h"
#include "catch.h"
#include "mapper/tile/given.h"
#include "mapper/tile/study.h"
#include "tile_gemm_samples.h"
#include "tile_machine.h"

namespace llmperf::mapper::tile::tile_given_test {
namespace {

std::string message_of(const std::string& text, const Machine& machine, const GemmProblem& problem) {
  try {
    const GemmGiven given = parse_mapping(text, machine, problem);
    complete(given, machine, all_grids(machine), problem);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("the words are in terms of the op, whichever operand the mapping calls A") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  const GemmProblem p{.m = 1024, .n = 2048, .k = 4096};
  const std::string text = "grid=m8n2 block=64x512x256 a=ring:1 b=multicast:2 results=doubled panel=0 tail=1";
  for (const bool turned : {false, true}) {
    const GemmGiven given = parse_mapping(text + (turned ? " loop=m,n" : " loop=n,m"), machine, p);
    const Choice<GemmProblem> choice = complete(given, machine, grids, p).choice;
    const GemmMapping& map = choice.mapping;
    CHECK(map.transposed == turned);
    CHECK((turned ? map.grid->n : map.grid->m) == 8);
    CHECK((turned ? map.grid->m : map.grid->n) == 2);
    CHECK((turned ? map.bn : map.bm) == 64);
    CHECK((turned ? map.bm : map.bn) == 512);
    CHECK(map.bk == 256);
    CHECK((turned ? map.b : map.a) == Stream{Feed::ring, 1, true});
    CHECK((turned ? map.a : map.b) == Stream{Feed::multicast, 2, true});
    CHECK((map.results == Results::doubled && map.panel == 0 && map.tail == 1));
    CHECK(mapping_text(p, map) == text + (turned ? " loop=m,n" : " loop=n,m"));
  }
}

TEST_CASE("a mapping that was found, given as text, is found again with the same time") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Random random(5);
  for (int i = 0; i < 12; ++i) {
    const GemmProblem p = random_gemm(random, 2000);
    const Study study(machine, p, {.keep = 1});
    const StudiedMapping& best = study.mappings().front();
    const auto again = complete(parse_mapping(best.text, machine, p), machine, grids, p);
    INFO(best.text);
    CHECK(again.simulated == best.simulated);
    CHECK(mapping_text(p, again.choice.mapping) == best.text);
  }
}

TEST_CASE("the best that is reported is never slower than the one that was given") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Random random(7);
  for (int i = 0; i < 25; ++i) {
    const GemmSample sample = random_sample(machine, grids, random, 1500, 2000);
    if (sample.mapping.grid->batch > sample.problem.batch) continue;  // no mapping: tiles without work
    GemmMapping map = sample.mapping;
    map.tail = 1;
    map.panel = 0;
    map.bb = 1;
    const Study study(machine, sample.problem, {.keep = 1, .given = mapping_text(sample.problem, map)});
    REQUIRE(study.given());
    CHECK(study.mappings().front().simulated <= study.given()->simulated);
    CHECK(study.mappings().size() == 1);
  }
}

TEST_CASE("what is left open is chosen as well as when nothing is said of it") {
  const Machine machine = tx8();
  const GemmProblem p{.m = 1024, .n = 1024, .k = 1024};
  const Study study(machine, p, {.keep = 1, .given = "block=*x*x*"});
  CHECK(study.given()->simulated <= study.mappings().front().simulated * 1.02);
}

TEST_CASE("the published products of 8 x 8 tiles can be said") {
  // M = N = K = 8192: a core's 1024 x 1024 results in blocks of 256 x 256, K in slices of 8192 / 8 / 8.
  Machine machine = tx8();
  machine.tiles = 64;
  machine.mesh_x = machine.mesh_y = 8;
  machine.sram = 1464 * 1024;
  GemmProblem p{.m = 8192, .n = 8192, .k = 8192};
  const std::string text = "grid=m8n8 block=256x256x128 a=multicast:2 b=multicast:2";
  const std::vector<Grid> grids = all_grids(machine);
  CHECK(complete(parse_mapping(text, machine, p), machine, grids, p).simulated > 0);
  // 512 x 1024 x 1024 with A and C in the tiles' memory: B alone comes from the DRAM, once.
  p = {.m = 512, .n = 1024, .k = 1024};
  p.a_local = p.c_local = true;
  const auto small =
      complete(parse_mapping("grid=m8n8 block=64x128x32 a=multicast:2 b=multicast:2", machine, p), machine, grids, p);
  CHECK(describe(machine, p, small.choice).traffic.dram() == 1024 * 1024 * 2);
}

TEST_CASE("an operand in the tiles' memory takes exactly its bytes less of the DRAM") {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  GemmProblem p{.m = 1024, .n = 1024, .k = 1024};
  const std::string text = "grid=m4n4 block=256x256x64 a=multicast:2 b=multicast:2 results=staged tail=1 loop=n,m";
  const auto traffic = [&] {
    return describe(machine, p, complete(parse_mapping(text, machine, p), machine, grids, p).choice).traffic.dram();
  };
  CHECK(traffic() == 3 * 2 * 1024 * 1024);
  p.a_local = true;
  CHECK(traffic() == 2 * 2 * 1024 * 1024);
  p.c_local = true;
  CHECK(traffic() == 2 * 1024 * 1024);
  p.b_local = true;
  CHECK(traffic() == 0);
}

TEST_CASE("what tiles share does not come to each of them for nothing") {
  const Machine machine = tx8();
  GemmProblem p{.m = 512, .n = 2048, .k = 512};
  p.a_local = p.b_local = true;
  const Study study(machine, p, {.keep = 3});
  for (const StudiedMapping& m : study.mappings()) {
    for (const Operand& o : m.description.operands) {
      CHECK((o.result || o.sharers == 1 || o.feed != Feed::direct));
      CHECK(o.moved.dram == (o.result ? 512 * 2048 * 2 : 0));
    }
  }
}

TEST_CASE("what a mapping cannot be is said with the numbers") {
  const Machine machine = tx8();
  const GemmProblem p{.m = 4096, .n = 4096, .k = 4096};
  const auto says = [&](const std::string& text, const std::string& part) {
    INFO(text << ": " << message_of(text, machine, p));
    CHECK(message_of(text, machine, p).find(part) != std::string::npos);
  };
  says("grid=m8n4", "8 x 4 are 32 tiles, and there are 16");
  says("grid=m4", "4 are 4 tiles, and there are 16");
  says("grid=b2m8", "2 tiles cannot share 1 product");
  says("grid=x4n4", "does not say how many tiles");
  says("grid=m4n4 grid=m4n4", "given twice");
  says("gird=m4n4", "did you mean 'grid'");
  says("multicast", "is not known");
  says("block=0x16x16", "0 is not between 1 and");
  says("block=16x16", "has not the sides");
  says("a=multicsat", "did you mean 'multicast'");
  says("a=multicast:3", "3 is not between 1 and 2");
  says("results=doubles", "did you mean 'doubled'");
  says("loop=k", "is neither n,m nor m,n");
  says("panel=x", "is no number");
  says("", "it says nothing");
  // 1024 x 1024 sums of 4 bytes, the copy of 2 that leaves, and two slices of 1024 x 64 elements of each operand.
  says("grid=m4n4 block=1024x1024x64 a=multicast:2 b=multicast:2 results=staged",
       "it needs 6.5 MiB of a tile, and there are 3 MiB");
  GemmProblem local = p;
  local.a_local = true;
  CHECK(message_of("a=direct", machine, local).find("over their links") != std::string::npos);
}

}  // namespace llmperf::mapper::tile::tile_given_test
