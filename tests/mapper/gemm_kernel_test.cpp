// Dense products by hand, with and without a menu of tiles.
#include <algorithm>
#include <cmath>

#include "catch.h"
#include "kernel_values.h"
#include "mapper/roofline/kernels.h"

namespace llmperf::mapper::gemm_kernel_test {
namespace {

using enum hardware::Parameter;
using hardware::KernelChoices;
using hardware::ParameterValues;

// Of 16-bit elements.
GemmCall call(double m, double n, double k, double batch = 1) {
  return {m, n, k, batch, 2 * m * k * batch, 2 * n * k * batch, 2 * m * n * batch};
}
KernelChoices menu() {
  KernelChoices c;
  c.tile_menu = true;
  return c;
}
// Tiles of 256 x 128 at half the peak and hardly any other; dividing k costs `split` seconds.
ParameterValues large_tiles(double split) {
  return values_with({{gemm_launch, 2e-6},
                      {gemm_share_16, 1e-6},
                      {gemm_share_64, 1e-6},
                      {gemm_share_128, 1e-6},
                      {gemm_share_256, 0.5},
                      {gemm_split_launch, split}});
}
constexpr double kStep = 2.0 * 256 * 128 * 10 / 0.5e14;  // s per unit of k on one of 10 cores: 13.1 ns

TEST_CASE("without a tile menu and with exponent 1 a product takes launch, compute and memory one after the other") {
  const ParameterValues v =
      values_with({{gemm_launch, 2e-6}, {gemm_share, 0.5}, {gemm_memory_share, 0.8}, {gemm_overlap, 1}});
  // 2e8 FLOP at 50 TFLOP/s are 4 us, 2.4 MB at 800 GB/s are 3 us.
  CHECK(gemm_seconds(round_device(), v, {}, call(100, 1000, 1000)) == Approx(9e-6));
}

TEST_CASE("with exponent 2 compute and memory join as the sides of a right triangle") {
  const ParameterValues v = values_with({{gemm_share, 0.5}, {gemm_memory_share, 0.8}, {gemm_overlap, 2}});
  CHECK(gemm_seconds(round_device(), v, {}, call(100, 1000, 1000)) == Approx(5e-6));
}

TEST_CASE("rows are rounded up to the granule of their range") {
  const ParameterValues v = values_with({});
  KernelChoices c;
  c.row_granule = 128;
  const auto of = [&](double m) { return gemm_seconds(compute_device(), v, c, call(m, 1000, 1000)); };
  CHECK(of(65) == Approx(of(128)));
  CHECK(of(64) == Approx(of(128) / 2));
  c.small_granule = 16;
  CHECK(of(1) == Approx(of(16)));
}

TEST_CASE("one more tile than cores takes a second round") {
  const ParameterValues v = large_tiles(1);
  const auto of = [&](double n) { return gemm_seconds(compute_device(), v, menu(), call(256, n, 3200)) - 2e-6; };
  CHECK(of(1280) == Approx(3200 * kStep));
  // All cores busy all the time: FLOPs over half the peak.
  CHECK(of(1280) == Approx(2.0 * 256 * 1280 * 3200 / 0.5e14));
  CHECK(of(1281) == Approx(2 * 3200 * kStep));
  CHECK(of(1) == Approx(3200 * kStep));
}

TEST_CASE("a batch of products has that many times the tiles") {
  const ParameterValues v = large_tiles(1);
  const auto of = [&](double batch) {
    return gemm_seconds(compute_device(), v, menu(), call(256, 128, 3200, batch)) - 2e-6;
  };
  CHECK(of(1) == Approx(of(10)));
  CHECK(of(11) == Approx(2 * of(10)));
}

TEST_CASE("a single tile divides k among idle cores and pays for adding up the parts") {
  // In 8 parts k is 4000 deep; the parts, 8 bytes per result, are 2.1 MB of traffic.
  const double expected = 2e-6 + 4000 * kStep + 5e-6 + 8 * 256 * 128 * 8 / 1e12;
  const KernelDevice device = round_device();
  ParameterValues v = large_tiles(5e-6);
  v[index(gemm_memory_share)] = 1e18;
  CHECK(gemm_seconds(device, v, menu(), call(256, 128, 32000)) == Approx(expected));
  // Not where that costs more than it saves.
  v[index(gemm_split_launch)] = 1e-3;
  CHECK(gemm_seconds(device, v, menu(), call(256, 128, 32000)) == Approx(2e-6 + 32000 * kStep));
}

TEST_CASE("k is computed in units of 32") {
  const ParameterValues v = large_tiles(1);
  CHECK(gemm_seconds(compute_device(), v, menu(), call(256, 128, 33)) == Approx(2e-6 + 64 * kStep));
}

TEST_CASE("results are stored while nothing is computed") {
  ParameterValues v = large_tiles(1);
  v[index(gemm_store_rate)] = 65536 / 1e-6;  // a tile of 16-bit results in 1 us
  const auto of = [&](double n) { return gemm_seconds(compute_device(), v, menu(), call(256, n, 3200)); };
  CHECK(of(1280) == Approx(2e-6 + 3200 * kStep + 1e-6));
  CHECK(of(2560) == Approx(2e-6 + 2 * (3200 * kStep + 1e-6)));
  // Of a tile that is mostly empty only what is there.
  CHECK(gemm_seconds(compute_device(), v, menu(), call(128, 64, 3200)) == Approx(2e-6 + 3200 * kStep + 0.25e-6));
}

TEST_CASE("operands wait for the cache where it is slower than memory") {
  ParameterValues v = large_tiles(1);
  v[index(gemm_overlap)] = 100;
  v[index(gemm_cache_rate)] = 1e10;
  // 10 tiles read (256 + 128) elements of 2 bytes per unit of k at 10 x 10 GB/s: 7.7 times as long as computing.
  CHECK(gemm_seconds(compute_device(), v, menu(), call(256, 1280, 3200)) ==
        Approx(2e-6 + 10 * 3200.0 * (256 + 128) * 2 / 1e11));
}

TEST_CASE("of operands the cores get what is there: an edge tile asks for no rows beyond the last") {
  ParameterValues v = large_tiles(1);
  v[index(gemm_overlap)] = 100;
  v[index(gemm_cache_rate)] = 1e10;
  // One row of 10 tiles of 256 x 128 over 128 or 129 rows: these pass 10 times, the 1,280 columns once. Reading a
  // second row of tiles of 128 x 256 instead would double the columns.
  for (const double m : {128.0, 129.0}) {
    const double passes = std::min(5 * m + 1280 * std::ceil(m / 128), 10 * m + 1280);
    const ProductTime t = gemm_time(compute_device(), v, menu(), call(m, 1280, 3200));
    CHECK(t.feed == Approx(3200 * passes * 2 / 1e11));
    CHECK(t.feed > t.compute);
    CHECK(t.feed > t.memory);
  }
}

TEST_CASE("a product that waits for memory longer than for the cache is not fed slowly") {
  ParameterValues v = large_tiles(1);
  v[index(gemm_cache_rate)] = 1e12;
  const ProductTime t = gemm_time(round_device(), v, menu(), call(1, 12800, 3200));
  CHECK(t.feed == 0);
  CHECK(t.memory == Approx(2 * (3200 + 12800 * 3200.0 + 12800) / 1e12));
}

TEST_CASE("with all shares at 1 no product is faster than its roof") {
  const ParameterValues v = values_with({{gemm_overlap, 3}});
  const KernelDevice d = round_device();
  for (const bool tiles : {false, true}) {
    KernelChoices c;
    c.tile_menu = tiles;
    for (double m = 1; m < 40000; m *= 3.7) {
      for (double n = 8; n < 70000; n *= 5.3) {
        for (double k = 8; k < 70000; k *= 4.1) {
          const GemmCall g = call(std::floor(m), std::floor(n), std::floor(k));
          const double roof =
              std::max(2 * g.m * g.n * g.k / d.matrix, (g.first_bytes + g.second_bytes + g.result_bytes) / d.bandwidth);
          CHECK(gemm_seconds(d, v, c, g) >= roof * (1 - 1e-12));
        }
      }
    }
  }
}

TEST_CASE("the menu's choice is the fastest of all tiles and divisions of k") {
  // The formula of the header written out without any shortcut.
  const ParameterValues v = values_with({{gemm_overlap, 2.5},
                                         {gemm_share_16, 0.15},
                                         {gemm_share_64, 0.65},
                                         {gemm_share_128, 0.8},
                                         {gemm_share_256, 0.95},
                                         {gemm_cache_rate, 4e10},
                                         {gemm_store_rate, 2e10},
                                         {gemm_split_launch, 2.5e-6},
                                         {gemm_split_share, 4}});
  const KernelDevice d{.matrix = 3e14, .bandwidth = 2e12, .cache = 4e7, .cores = 108};
  const double tiles[10][2] = {{16, 64},   {32, 64},  {64, 64},  {64, 128},  {128, 64},
                               {128, 128}, {64, 256}, {256, 64}, {128, 256}, {256, 128}};
  for (const double m : {1.0, 17.0, 100.0, 384.0, 2049.0, 16384.0}) {
    for (const double n : {64.0, 1000.0, 4096.0, 51200.0}) {
      for (const double k : {32.0, 700.0, 4096.0, 65536.0}) {
        double best = 1e9;
        for (const auto& t : tiles) {
          const double a = t[0], b = t[1], area = a * b;
          const double share = area <= 2048 ? 0.15 : area <= 8192 ? 0.65 : area <= 16384 ? 0.8 : 0.95;
          const double down = std::ceil(m / a), across = std::ceil(n / b);
          const double count = down * across;
          const double memory =
              std::max(2 * (m * k + n * k + m * n) / 2e12, k * (m * across + n * down) * 2 / (108 * 4e10));
          for (const double s : {1., 2., 3., 4., 6., 8., 16., 32.}) {
            if (s > 1 && k < 32 * s) continue;
            const double tile = std::ceil(k / s / 32) * 32 * 2 * area * 108 / (3e14 * share) +
                                std::min(m, a) * std::min(n, b) * 2 / 2e10;
            const double compute = std::ceil(count * s / 108) * tile;
            const double norm = std::pow(std::pow(compute, 2.5) + std::pow(memory, 2.5), 0.4);
            best = std::min(best, norm + (s > 1 ? 2.5e-6 + s * m * n * 8 / (2e12 * 4) : 0));
          }
        }
        CHECK(gemm_seconds(d, v, menu(), call(m, n, k)) == Approx(best));
      }
    }
  }
}

TEST_CASE("an empty product costs its launch, and a device of one core has finite times") {
  const ParameterValues v = values_with({{gemm_launch, 2e-6}});
  CHECK(gemm_seconds(round_device(), v, menu(), call(0, 128, 128)) == Approx(2e-6));
  KernelDevice d = round_device();
  d.cores = 1;
  d.cache = 0;
  CHECK(std::isfinite(gemm_seconds(d, v, menu(), call(1, 1, 1))));
  CHECK(std::isfinite(gemm_seconds(d, v, menu(), call(1e6, 1e6, 1e6))));
}

TEST_CASE("activations that the cache holds cross it instead of the memory bus") {
  // 1,000 x 1,000 x 1,000 in 16 bits: 2 MB of activations, 2 MB of weights, 2 MB of results; the cache has 10 MB. Of 4
  // MB that pass, 2 - 2 * 4 / 10 would stay, so all do.
  KernelChoices c;
  c.cached_activations = true;
  KernelDevice d = round_device();
  d.matrix = 1e30;
  const ParameterValues v = values_with({{gemm_memory_share, 0.5}, {gemm_cached_share, 2}});
  const auto of = [&](double m) { return gemm_seconds(d, v, c, {m, 1000, 1000, 1, 2000 * m, 2e6, 2000 * m}); };
  CHECK(of(1000) == Approx(2e6 / 0.5e12 + 4e6 / 2e12));
  // Of 8 MB two fifths stay, of 10 MB and more none.
  CHECK(of(2000) == Approx((2e6 + 4.8e6) / 0.5e12 + 3.2e6 / 2e12));
  CHECK(of(2500) == Approx((2e6 + 10e6) / 0.5e12));
  d.cache = 0;
  CHECK(of(1000) == Approx(6e6 / 0.5e12));
}

TEST_CASE("weights that a measurement left in the cache come from there") {
  // 2 MB of weights. Three sets fill 6 of 10 MB and stay, five fill all of it and stay by half, seven not at all.
  KernelDevice d = round_device();
  d.matrix = 1e30;
  const ParameterValues v = values_with({{gemm_memory_share, 0.5}, {gemm_resident_share, 2}});
  for (const bool tiled : {false, true}) {
    KernelChoices c;
    c.tile_menu = tiled;
    const auto of = [&](double copies) {
      GemmCall g = call(1, 1000, 1000);
      g.copies = copies;
      return gemm_seconds(d, v, c, g);
    };
    CHECK(of(0) == Approx(2.004e6 / 0.5e12));
    CHECK(of(3) == Approx(0.004e6 / 0.5e12 + 2e6 / 2e12));
    CHECK(of(5) == Approx(1.004e6 / 0.5e12 + 1e6 / 2e12));
    CHECK(of(7) == Approx(of(0)));
  }
}

// ---- Tiles of CANN's products

KernelChoices cube() {
  KernelChoices c;
  c.cube_tiles = true;
  return c;
}

TEST_CASE("a cube multiplies whole tiles of 128 x 256 results, sixteen rows at a time") {
  // A core of ten does 10 TFLOP/s, half of it.
  const ParameterValues v = values_with({{gemm_launch, 2e-6}, {gemm_share, 0.5}, {gemm_split_launch, 1}});
  const auto of = [&](double m, double n) {
    return gemm_seconds(compute_device(), v, cube(), call(m, n, 1024)) - 2e-6;
  };
  const double row = 2 * 256 * 1024 / 5e12;  // of a tile
  CHECK(of(128, 2560) == Approx(128 * row));
  CHECK(of(1, 2560) == Approx(16 * row));
  CHECK(of(17, 2560) == Approx(32 * row));
  CHECK(of(128, 2561) == Approx(1.5 * 128 * row));  // 11 tiles of 128 x 256 are two rounds, 21 of 128 x 128 three
  CHECK(of(256, 1280) == Approx(128 * row));        // either way round
  CHECK(of(257, 1280) == Approx(2 * 128 * row));    // 15 of 128 x 256, or 20 of 256 x 128
}

TEST_CASE("one row of tiles multiplies while weights stream in, several wait for them first") {
  // 1,000 x 1,000 weights are 2 MB, 4 us at half of 1 TB/s; 100 rows of activations and results 0.4 MB, 0.8 us, and
  // 200 twice that. Eight tiles of 112, or of 208, rows x 128 columns x 1,024 on ten cores.
  KernelDevice d = round_device();
  const ParameterValues v = values_with({{gemm_memory_share, 0.5}, {gemm_overlap, 2}, {gemm_split_launch, 1}});
  const double row = 2 * 256 * 1024 / 1e13;
  CHECK(gemm_seconds(d, v, cube(), call(100, 1000, 1000)) == Approx(std::hypot(56 * row, 4.8e-6)));
  const ProductTime several = gemm_time(d, v, cube(), call(200, 1000, 1000));
  CHECK(several.seconds == Approx(4e-6 + std::hypot(104 * row, 1.6e-6)));
  CHECK(several.memory == Approx(5.6e-6));
  CHECK(several.compute == Approx(104 * row));
}

TEST_CASE("k is divided over idle cores of a cube, where adding up the parts costs less") {
  // 128 x 256 results are two tiles of 128 x 128. Four parts of each, a depth of 2,048, keep eight of ten cores busy,
  // and each result is added up of four times 8 bytes.
  const ParameterValues v = values_with({{gemm_split_launch, 2e-6}, {gemm_split_share, 1}});
  KernelDevice d = compute_device();
  const double row = 2 * 256 * 1024 / 1e13;
  // Where parts are added up in no time, 32 of them: seven rounds of 256 deep, 7 / 8 of one round of 2,048.
  CHECK(gemm_seconds(d, v, cube(), call(128, 256, 8192)) == Approx(2e-6 + 112 * row));
  d.bandwidth = 1e12;
  const double part = 128 * 256 * 8 / 1e12;
  const GemmCall still{128, 256, 8192};  // whose operands take no time
  CHECK(gemm_seconds(d, v, cube(), still) == Approx(2e-6 + 4 * part + 128 * row));
}

TEST_CASE("more rows, columns or depth make no product of a cube faster but by dividing k") {
  KernelDevice d = round_device();
  d.cores = 24;
  const ParameterValues v = values_with({{gemm_launch, 6e-6},
                                         {gemm_share, 0.95},
                                         {gemm_memory_share, 0.85},
                                         {gemm_overlap, 1.4},
                                         {gemm_split_launch, 8e-6},
                                         {gemm_split_share, 6}});
  const auto of = [&](double m, double n, double k) { return gemm_seconds(d, v, cube(), call(m, n, k)); };
  for (const double n : {256, 1000, 7168}) {
    for (const double k : {512, 4096}) {
      double before = 0;
      for (double m = 1; m < 3000; m = std::ceil(m * 1.1)) {
        const double now = of(m, n, k);
        if (now < before * (1 - 1e-9)) FAIL(m << " " << n << " " << k);
        before = now;
      }
      CHECK(of(300, n, k) <= of(300, n + 500, k) * (1 + 1e-9));
      CHECK(of(300, n, k) <= of(300, n, 2 * k) * (1 + 1e-9));
    }
  }
}

}  // namespace
}  // namespace llmperf::mapper::gemm_kernel_test
