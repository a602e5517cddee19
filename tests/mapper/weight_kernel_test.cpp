// Products with quantised weights by hand.
#include <cmath>

#include "catch.h"
#include "kernel_values.h"
#include "mapper/roofline/kernels.h"

namespace llmperf::mapper::weight_kernel_test {
namespace {

using enum hardware::Parameter;
using hardware::FormatParameter;
using hardware::KernelChoices;
using hardware::ParameterValues;

constexpr FormatKernel kFormat = FormatKernel::q4_0;

// Weights of 4 bits, activations of 16.
GemmCall call(double m, double n, double k) { return {m, n, k, 1, 2 * m * k, 0.5 * n * k, 2 * m * n}; }

ParameterValues values() {
  ParameterValues v = values_with({{gemm_launch, 2e-6}, {dequantise_share, 0.5}, {dequantise_cached, 0.2}});
  v[index(kFormat, FormatParameter::share)] = 0.4;
  v[index(kFormat, FormatParameter::small_share)] = 0.1;
  v[index(kFormat, FormatParameter::memory_share)] = 0.8;
  return v;
}

TEST_CASE("weights unpacked on the way are read as they are packed") {
  // 2e8 FLOP at 40 TFLOP/s are 5 us; 0.2 + 0.5 + 0.2 MB at 800 GB/s.
  CHECK(weight_seconds(round_device(), values(), {}, kFormat, call(100, 1000, 1000)) ==
        Approx(2e-6 + 5e-6 + 0.9e6 / 0.8e12));
}

TEST_CASE("rows of a matrix kernel are rounded up from nine on") {
  KernelChoices c;
  c.format_granule = 16;
  const auto of = [&](double m) { return weight_seconds(compute_device(), values(), c, kFormat, call(m, 1000, 1000)); };
  CHECK(of(9) == Approx(of(16)));
  CHECK(of(8) - 2e-6 == Approx((of(16) - 2e-6) / 2));
}

TEST_CASE("few rows run on a kernel of their own where there is one") {
  KernelChoices c;
  c.small_rows = 8;
  const auto of = [&](double m) {
    return weight_seconds(compute_device(), values(), c, kFormat, call(m, 1000, 1000)) - 2e-6;
  };
  CHECK(of(8) == Approx(2 * 8e6 / 0.1e14));
  CHECK(of(9) == Approx(2 * 9e6 / 0.4e14));
  // Beside it the kernel for many rows has an exponent of its own.
  ParameterValues v = values();
  v[index(format_small_overlap)] = 2;
  const double compute = 5e-6;
  const double memory = 0.9e6 / 0.8e12;
  CHECK(weight_seconds(round_device(), v, c, kFormat, call(100, 1000, 1000)) ==
        Approx(2e-6 + std::sqrt(compute * compute + memory * memory)));
}

TEST_CASE("from a number of rows on weights are unpacked and multiplied as dense ones") {
  KernelChoices c;
  c.dequantise_rows[static_cast<std::size_t>(kFormat)] = 64;
  const KernelDevice d = round_device();
  const ParameterValues v = values();
  // A copy of 2 MB is a fifth of the cache: a fifth of it crosses the bus, written by one kernel and read by the next.
  GemmCall dense = call(64, 1000, 1000);
  dense.second_bytes = 0.4e6;
  CHECK(weight_seconds(d, v, c, kFormat, call(64, 1000, 1000)) ==
        Approx(2e-6 + (0.5e6 + 0.4e6) / 0.5e12 + gemm_seconds(d, v, c, dense)));
  // Above two fifths of the cache more of it does, in proportion: half of what is kept at 7 of 10 MB.
  dense = call(64, 3500, 1000);
  dense.second_bytes = (0.2 + 0.8 / 2) * 7e6;
  CHECK(weight_seconds(d, v, c, kFormat, call(64, 3500, 1000)) ==
        Approx(2e-6 + (1.75e6 + dense.second_bytes) / 0.5e12 + gemm_seconds(d, v, c, dense)));
  // One of 20 MB does whole, as where no cache is known.
  dense = call(64, 10000, 1000);
  dense.second_bytes = 20e6;
  const double spilled = 2e-6 + (5e6 + 20e6) / 0.5e12 + gemm_seconds(d, v, c, dense);
  CHECK(weight_seconds(d, v, c, kFormat, call(64, 10000, 1000)) == Approx(spilled));
  KernelDevice bare = d;
  bare.cache = 0;
  CHECK(weight_seconds(bare, v, c, kFormat, call(64, 10000, 1000)) == Approx(spilled));
  // Fewer rows, or another format, do not.
  CHECK(weight_seconds(d, v, c, kFormat, call(63, 1000, 1000)) ==
        Approx(weight_seconds(d, v, {}, kFormat, call(63, 1000, 1000))));
  CHECK(weight_seconds(d, v, c, FormatKernel::gptq, call(64, 1000, 1000)) ==
        Approx(weight_seconds(d, v, {}, FormatKernel::gptq, call(64, 1000, 1000))));
}

TEST_CASE("AWQ's blocks leave the last of a core's turns half idle, Marlin's stripes none") {
  ParameterValues v = values();
  for (const FormatKernel format : {FormatKernel::awq, FormatKernel::gptq}) {
    v[index(format, FormatParameter::share)] = 0.4;
    v[index(format, FormatParameter::memory_share)] = 0.8;
  }
  const auto of = [&](FormatKernel format) {
    return weight_seconds(compute_device(), v, {}, format, call(16, 1280, 1000)) - 2e-6;
  };
  // One row of ten blocks of 16 x 128 on ten cores: a turn and a half each.
  const double busy = 2.0 * 16 * 1280 * 1000 / 0.4e14;
  CHECK(of(FormatKernel::gptq) == Approx(busy));
  CHECK(of(FormatKernel::awq) == Approx(1.5 * busy));
}

TEST_CASE("what Marlin's stripes share is added up, at one cost for every product") {
  ParameterValues v = values();
  const auto of = [&](FormatKernel format, double m) {
    return weight_seconds(compute_device(), v, {}, format, call(m, 1280, 1000));
  };
  const double one = of(FormatKernel::gptq, 1);
  const double many = of(FormatKernel::gptq, 64);
  v[index(FormatKernel::gptq, FormatParameter::reduce)] += 11e-6;
  CHECK(of(FormatKernel::gptq, 1) - one == Approx(11e-6));
  CHECK(of(FormatKernel::gptq, 64) - many == Approx(11e-6));
  for (const FormatKernel other : {FormatKernel::awq, FormatKernel::q4_0}) {
    const double before = of(other, 1);
    v[index(other, FormatParameter::reduce)] += 11e-6;
    CHECK(of(other, 1) == before);
  }
}

TEST_CASE("only dense products gain from accumulating in 16 bits") {
  KernelChoices c;
  KernelDevice narrow = compute_device();
  narrow.unpacked *= 2;
  const auto of = [&](const KernelDevice& d) { return weight_seconds(d, values(), c, kFormat, call(100, 1000, 1000)); };
  CHECK(of(narrow) == Approx(of(compute_device())));
  // Unpacked: 2e8 FLOP at 100 or 200 TFLOP/s after two launches.
  c.dequantise_rows[static_cast<std::size_t>(kFormat)] = 64;
  CHECK(of(compute_device()) == Approx(2 * 2e-6 + 2e-6));
  CHECK(of(narrow) == Approx(2 * 2e-6 + 1e-6));
}

}  // namespace
}  // namespace llmperf::mapper::weight_kernel_test
