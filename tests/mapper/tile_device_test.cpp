// What a device file says of an array of tiles, in the rates that mappings are made for. Numbers by hand.
#include <cmath>

#include "base/error.h"
#include "catch.h"
#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "mapper/tile/gemm.h"
#include "mapper/tile/machine.h"
#include "mapper/tile/search.h"
#include "mapper/tile/tile_mapper.h"

namespace llmperf::mapper::tile {
namespace {

hardware::Device wormhole() { return hardware::load_device("wormhole-n150"); }

TEST_CASE("passes divide the rate of a matrix unit, and feeding it takes the root of the sum of squares") {
  const hardware::Device device = wormhole();
  // 73.728 TFLOP/s in 4 passes on 72 tiles: 2.048 in two. A step of 32 x 32 x 32 takes 32 cycles of 1 ns, and two
  // blocks of 2,048 B at 128 B per cycle take as many.
  const Machine m = make_machine(device, Operands{.dtype = Dtype::bf16, .passes = 2});
  CHECK(2 * 32 * 32 * 32 / m.matrix == Approx(32e-9 * std::sqrt(2)));
  // bfp4 in one pass: 16 cycles, and 1,152 B in 9.
  const Machine narrow = make_machine(device, Dtype::bfp4);
  CHECK(2 * 32 * 32 * 32 / narrow.matrix == Approx(std::hypot(16e-9, 9e-9)));
  // One block of bf16 and one of bfp4: 2,624 B.
  const Machine mixed = make_machine(device, Operands{.dtype = Dtype::bfp4, .bytes = 2 + 4.5 / 8});
  CHECK(2 * 32 * 32 * 32 / mixed.matrix == Approx(std::hypot(16e-9, 2624.0 / 128 * 1e-9)));
  CHECK_THROWS_AS(make_machine(hardware::load_device("tx8"), Operands{.dtype = Dtype::bf16, .passes = 2}), Error);
  CHECK_THROWS_AS(make_machine(device, Dtype::fp8), Error);
}

TEST_CASE("short pages are bound by the requests of the channels, long ones by their places") {
  const hardware::Device device = wormhole();
  // 12 channels x 25.8 M pages of 576 B.
  CHECK(make_machine(device, Operands{.dtype = Dtype::bfp4, .near = true}).dram == Approx(12 * 25.8e6 * 576));
  CHECK(make_machine(device, Operands{.dtype = Dtype::bfp8, .near = true}).dram == Approx(288e9));
  // Two channels at a corner send a sixth of all bytes, 7 / 8 of them over the corner's one link along x.
  CHECK(make_machine(device, Dtype::bfp8).dram == Approx(32e9 / (7.0 / 8 / 6)));
}

TEST_CASE("programs run on a part of the mesh") {
  const hardware::Device device = wormhole();
  CHECK(make_machine(device, Dtype::bf16).tiles == 64);
  const Machine part = make_machine(device, Operands{.dtype = Dtype::bf16, .grid = hardware::TilePlace{4, 2}});
  CHECK(part.tiles == 8);
  CHECK(part.matrix == make_machine(device, Dtype::bf16).matrix);
  CHECK_THROWS_AS(make_machine(device, Operands{.dtype = Dtype::bf16, .grid = hardware::TilePlace{9, 8}}), Error);
}

TEST_CASE("an op takes its launch and what nothing hides on top of its mapping") {
  Machine m;
  m.launch = 5;
  m.hidden = 0.75;
  CHECK(m.op_seconds(100, 80, 40) == 5 + 100 + 0.25 * 40);
  CHECK(m.op_seconds(100, 8, 40) == 5 + 100 + 0.25 * 8);
}

TEST_CASE("a sender gets a slice and hands it on one after the other") {
  Machine m;
  m.port = 20;
  m.link = 40;
  CHECK(m.port_seconds(400, true) == 20);
  m.multicast_senders = true;
  CHECK(m.port_seconds(400, true) == 30);
  CHECK(m.port_seconds(400, false) == 20);
}

TEST_CASE("links that close to rings shorten the way back") {
  hardware::Device device = hardware::load_device("wormhole-n300");
  const auto back = [&](bool rings) {
    device.tile_array->rings = rings;
    const Machine m = make_machine(device, Dtype::bf16);
    for (const Grid& grid : all_grids(m)) {
      if (grid.n == 8 && grid.m == 8) return grid.a.back;
    }
    return 0;
  };
  CHECK(back(false) == 7);
  CHECK(back(true) == 1);
}

TEST_CASE("operands in the tiles cost no DRAM traffic and the memory that they take") {
  const Machine m = make_machine(wormhole(), Dtype::bf16);
  const std::vector<Grid> grids = all_grids(m);
  GemmProblem p{.m = 1024, .n = 1024, .k = 1024};
  GemmProblem local = p;
  local.a_local = local.c_local = true;
  CHECK(p.least_bytes() - local.least_bytes() == 2 * 1024 * 1024 * 2);
  CHECK(local.local_bytes(64) == 2 * 1024 * 1024 * 2 / 64);
  const auto fastest = [&](const GemmProblem& problem) {
    Search<GemmProblem> search(m, grids);
    return search.select(problem, 1).found.front();
  };
  const auto all = fastest(p);
  const auto less = fastest(local);
  CHECK(less.simulated <= all.simulated);
  CHECK(traffic_of(m, schedule_of(m, local, less.choice.mapping)).result == 0);
  CHECK(sram_of(as_mapped(local, less.choice.mapping), less.choice.mapping) >= local.local_bytes(64));
}

TEST_CASE("a profile says what its stack reaches of a device") {
  const hardware::Device device = wormhole();
  const hardware::RuntimeProfile profile = hardware::load_runtime_profile(device, "");
  REQUIRE(profile.choices.tile_mappings);
  const Reached reached = reached_of(profile);
  const Machine bare = make_machine(device, Dtype::bfp8);
  const Machine m = make_machine(device, Operands{.dtype = Dtype::bfp8}, reached);
  CHECK(m.launch == reached.launch);
  CHECK(m.vector == bare.vector * reached.vector);
  CHECK(m.link == bare.link * reached.link);
  CHECK(m.dram <= 288e9 * reached.dram);
}

}  // namespace
}  // namespace llmperf::mapper::tile
