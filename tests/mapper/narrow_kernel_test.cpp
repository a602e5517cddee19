// Products of two narrow operands by hand.
#include <cmath>

#include "catch.h"
#include "kernel_values.h"
#include "mapper/roofline/kernels.h"

namespace llmperf::mapper::narrow_kernel_test {
namespace {

using enum hardware::Parameter;
using hardware::FormatParameter;
using hardware::KernelChoices;
using hardware::ParameterValues;
using hardware::ProductTiles;

constexpr FormatKernel kFormat = FormatKernel::fp8_block;

// Activations of 16 bits that become 8, weights of 8.
GemmCall call(double m, double n, double k) {
  return {.m = m,
          .n = n,
          .k = k,
          .first_bytes = 2 * m * k,
          .second_bytes = n * k,
          .result_bytes = 2 * m * n,
          .narrow_bytes = 1};
}

KernelChoices choices(ProductTiles tiles) {
  KernelChoices c;
  c.product_tiles[static_cast<std::size_t>(kFormat)] = tiles;
  return c;
}

// Everything but the products takes no time.
ParameterValues values() {
  ParameterValues v = values_with({});
  for (const FormatParameter p : {FormatParameter::cache_rate, FormatParameter::store_rate}) {
    v[index(kFormat, p)] = 1e30;
  }
  return v;
}
double seconds(const KernelDevice& d, const ParameterValues& v, ProductTiles tiles, const GemmCall& g) {
  return narrow_time(d, v, choices(tiles), kFormat, g).seconds;
}

TEST_CASE("CUTLASS' tiles hang on the number of rows, and blocks come in clusters") {
  // 1000 columns are 16 tiles of 64, two clusters of 8; of 128 they are 8.
  const auto is = [](const NarrowTile& t, double rows, double columns, double rounds) {
    return t.rows == rows && t.columns == columns && t.rounds == rounds;
  };
  CHECK(is(tile_by_rows(64, 1000, 1, 10), 64, 64, 2));
  CHECK(is(tile_by_rows(64, 1024 + 1, 1, 24), 64, 64, 1));  // 17 tiles are 24
  CHECK(is(tile_by_rows(65, 1000, 1, 10), 64, 128, 2));     // two tiles down are a cluster
  CHECK(is(tile_by_rows(128, 1000, 1, 10), 64, 128, 2));
  CHECK(is(tile_by_rows(129, 1000, 1, 10), 128, 128, 2));
  CHECK(is(tile_by_rows(257, 1000, 1, 10), 128, 128, 4));  // 3 tiles down are 4
  CHECK(is(tile_by_rows(257, 1000, 5, 10), 128, 128, 16));
}

TEST_CASE("DeepGEMM's tiles need the fewest rounds, and of those fill the last one best") {
  // 100 columns on 10 cores: one round with 16 columns (7 blocks); wider tiles leave more cores idle.
  CHECK(tile_of_fewest_rounds(64, 100, 1, 10).columns == 16);
  // 2560 columns on 10 cores: one round from 256 columns on, with all cores busy.
  const NarrowTile one = tile_of_fewest_rounds(64, 2560, 1, 10);
  CHECK(one.columns == 256);
  CHECK(one.rounds == 1);
  CHECK(one.rows == 64);
  // 129 rows are two tiles of 128: two rounds of the same tiles.
  const NarrowTile two = tile_of_fewest_rounds(129, 2560, 1, 10);
  CHECK(two.rows == 128);
  CHECK(two.columns == 256);
  CHECK(two.rounds == 2);
}

TEST_CASE("a cube's tiles are of as many rows as there are, in sixteens") {
  const auto is = [](const NarrowTile& t, double rows, double columns, double rounds) {
    return t.rows == rows && t.columns == columns && t.rounds == rounds;
  };
  CHECK(is(tile_of_cube(call(1, 2560, 64), 10), 16, 256, 1));
  CHECK(is(tile_of_cube(call(100, 2500, 64), 10), 112, 256, 1));
  CHECK(
      is(tile_of_cube(call(300, 1280, 64), 10), 128, 256, 2));  // three tiles down; two of 256 rows are as many rounds
  CHECK(is(tile_of_cube(call(256, 1280, 64), 10), 128, 256, 1));
  CHECK(is(tile_of_cube(call(200, 1281, 64), 10), 208, 128, 2));  // less than two rounds of 128 x 256
  // Three rounds of 112 x 128 are less than two of 112 x 256; the share of large tiles holds for all.
  ParameterValues v = values();
  v[index(kFormat, FormatParameter::share)] = 0.5;
  CHECK(seconds(compute_device(), v, ProductTiles::cube, call(100, 2561, 1024)) ==
        Approx(3 * 2 * 112.0 * 128 * 1024 / 0.5e13));
}

TEST_CASE("no tile needs fewer rounds than DeepGEMM's") {
  for (const double m : {1.0, 64.0, 65.0, 200.0, 1000.0, 4097.0}) {
    for (double n = 16; n <= 6000; n += 272) {
      const NarrowTile best = tile_of_fewest_rounds(m, n, 1, 132);
      for (double columns = 16; columns <= 256; columns += 16) {
        const double rounds = std::ceil(std::ceil(m / best.rows) * std::ceil(n / columns) / 132);
        CHECK(best.rounds <= rounds);
      }
    }
  }
}

TEST_CASE("a core works through whole tiles, each with its scales and its start") {
  // Ten cores of 10 TFLOP/s: two rounds of 64 x 64 x 1024 are 2 x 8,388,608 FLOP / 10 TFLOP/s.
  const double tile = 2 * 64.0 * 64 * 1024 / 1e13;
  const GemmCall g = call(10, 1000, 1000);
  CHECK(seconds(compute_device(), values(), ProductTiles::by_rows, g) == Approx(2 * tile));
  ParameterValues v = values();
  v[index(kFormat, FormatParameter::small_share)] = 0.5;
  v[index(kFormat, FormatParameter::block)] = 1e-6;
  v[index(kFormat, FormatParameter::step)] = 1e-7;  // eight of them in 1,024
  v[index(kFormat, FormatParameter::launch)] = 3e-6;
  CHECK(seconds(compute_device(), v, ProductTiles::by_rows, g) == Approx(3e-6 + 2 * (2 * tile + 1e-6 + 8e-7)));
  // Ten rows of operands and 64 columns at 1 GB/s take longer than multiplying.
  v = values();
  v[index(kFormat, FormatParameter::cache_rate)] = 1e9;
  const ProductTime fed = narrow_time(compute_device(), v, choices(ProductTiles::by_rows), kFormat, g);
  CHECK(fed.seconds == Approx(2 * 74 * 1024 / 1e9));
  CHECK(fed.feed == Approx(fed.seconds));
  // The last results of 10 x 64, two bytes each, at 1 GB/s.
  v = values();
  v[index(kFormat, FormatParameter::store_rate)] = 1e9;
  CHECK(seconds(compute_device(), v, ProductTiles::by_rows, g) == Approx(2 * tile + 1.28e-6));
}

TEST_CASE("activations are made narrow first, and cross the memory bus narrow") {
  // 0.01 MB of activations, 1 MB of weights and 0.02 MB of results at half of 1 TB/s; before, 0.02 MB and 0.01 MB.
  ParameterValues v = values();
  v[index(kFormat, FormatParameter::memory_share)] = 0.5;
  v[index(kFormat, FormatParameter::quantise_share)] = 0.25;
  KernelDevice d = round_device();
  d.matrix = 1e30;
  CHECK(seconds(d, v, ProductTiles::by_rows, call(10, 1000, 1000)) == Approx(1.03e6 / 0.5e12 + 0.03e6 / 0.25e12));
}

TEST_CASE("a library that tunes narrow products like dense ones takes the dense formula at a share of it") {
  ParameterValues v = values_with({{gemm_launch, 2e-6}, {gemm_share_128, 0.8}, {gemm_share_256, 0.9}});
  v[index(kFormat, FormatParameter::share)] = 0.5;
  KernelChoices c = choices(ProductTiles::menu);
  c.tile_menu = true;
  GemmCall dense = call(300, 1000, 1000);
  KernelDevice half = round_device();
  half.matrix /= 2;
  dense.first_bytes = 300 * 1000;
  v[index(kFormat, FormatParameter::step)] = 0;
  CHECK(narrow_time(round_device(), v, c, kFormat, call(300, 1000, 1000)).seconds ==
        Approx(gemm_seconds(half, v, c, dense)));
  // 8 steps of 128 cost every tile as much again: never less than one tile's.
  v[index(kFormat, FormatParameter::step)] = 1e-6;
  CHECK(narrow_time(round_device(), v, c, kFormat, call(300, 1000, 1024)).seconds >= 2e-6 + 8e-6 / 32);
}

TEST_CASE("more rows never take less time in one tile, and nothing grows by more than a round of blocks") {
  ParameterValues v = values();
  v[index(kFormat, FormatParameter::launch)] = 3e-6;
  v[index(kFormat, FormatParameter::block)] = 1e-6;
  const KernelDevice d{.matrix = 2e15, .unpacked = 1e15, .bandwidth = 3.35e12, .cache = 5e7, .cores = 132};
  for (const ProductTiles tiles : {ProductTiles::by_rows, ProductTiles::fewest_rounds}) {
    for (double m = 1; m < 64; ++m) {
      CHECK(seconds(d, v, tiles, call(m, 4096, 4096)) <= seconds(d, v, tiles, call(m + 1, 4096, 4096)) * (1 + 1e-12));
    }
  }
}

TEST_CASE("outside of its engine a scale for every row takes a core some time, however short the row") {
  ParameterValues v = values();
  GemmCall g = call(1000, 64, 128);
  const double without = seconds(compute_device(), v, ProductTiles::by_rows, g);
  v[index(kFormat, FormatParameter::quantise_row)] = 1e-6;  // 1,000 rows on 10 cores
  CHECK(seconds(compute_device(), v, ProductTiles::by_rows, g) == without);
  g.alone = true;
  CHECK(seconds(compute_device(), v, ProductTiles::by_rows, g) == Approx(without + 100e-6));
}

TEST_CASE("a menu behind a kernel that makes activations narrow takes that kernel longer") {
  ParameterValues v = values();
  v[index(kFormat, FormatParameter::launch)] = 3e-6;
  v[index(kFormat, FormatParameter::quantise_share)] = 0.5;
  const KernelDevice d = round_device();
  const GemmCall g = call(1000, 64, 128);
  const double menu = seconds(d, v, ProductTiles::menu, g);
  CHECK(seconds(d, v, ProductTiles::quantised_menu, g) == Approx(menu + 3e-6 + 1000 * 128 * 3 / 0.5e12));
}

TEST_CASE("in a step activations that come narrow cost neither a pass over them nor a second kernel's start") {
  ParameterValues v = values();
  const auto fp8 = [&](ProductTiles tiles, bool fused, bool alone) {
    KernelChoices c = choices(tiles);
    c.product_tiles[static_cast<std::size_t>(FormatKernel::fp8)] = tiles;
    c.fused_quantising = fused;
    GemmCall g = call(1000, 64, 128);
    g.alone = alone;
    return narrow_time(round_device(), v, c, FormatKernel::fp8, g).seconds;
  };
  for (const FormatParameter p : {FormatParameter::cache_rate, FormatParameter::store_rate}) {
    v[index(FormatKernel::fp8, p)] = 1e30;
  }
  v[index(gemm_launch)] = 1e-6;
  v[index(FormatKernel::fp8, FormatParameter::launch)] = 3e-6;
  v[index(FormatKernel::fp8, FormatParameter::quantise_share)] = 0.5;
  const double pass = 1000 * 128 * 3 / 0.5e12;
  CHECK(fp8(ProductTiles::by_rows, false, false) == Approx(fp8(ProductTiles::by_rows, true, false) + 2e-6 + pass));
  CHECK(fp8(ProductTiles::quantised_menu, true, false) == fp8(ProductTiles::menu, false, false));
  CHECK(fp8(ProductTiles::by_rows, true, true) == fp8(ProductTiles::by_rows, false, true));  // a row by itself
  // Scales of blocks are computed by a kernel in any case.
  KernelChoices blocks = choices(ProductTiles::fewest_rounds);
  blocks.fused_quantising = true;
  CHECK(narrow_time(round_device(), v, blocks, kFormat, call(1000, 64, 128)).seconds ==
        seconds(round_device(), v, ProductTiles::fewest_rounds, call(1000, 64, 128)));
}

}  // namespace
}  // namespace llmperf::mapper::narrow_kernel_test
