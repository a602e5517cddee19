// ggml's products and attention by hand.
#include <cmath>

#include "catch.h"
#include "kernel_values.h"
#include "mapper/roofline/kernels.h"

namespace llmperf::mapper::ggml_kernel_test {
namespace {

using enum hardware::Parameter;
using hardware::FormatParameter;
using hardware::KernelChoices;
using hardware::ParameterValues;

constexpr FormatKernel kFormat = FormatKernel::q4_0;

// 100 TFLOP/s, or 200 added up in 16 bits, 400 Top/s, 1 TB/s, 10 cores of 1 GHz, 200 W.
KernelDevice device() {
  KernelDevice d;
  d.matrix = 1e14;
  d.unpacked = 2e14;
  d.integer = 4e14;
  d.bandwidth = 1e12;
  d.cores = 10;
  d.clock = 1e9;
  d.power = 200;
  return d;
}
ParameterValues values() {
  ParameterValues v = values_with({{gemm_launch, 1e-6},
                                   {gemm_memory_share, 0.5},
                                   {gemm_share, 0.5},
                                   {gemm_overlap, 2},
                                   {format_overlap, 1},
                                   {format_small_overlap, 2},
                                   {dequantise_share, 0.5},
                                   {product_rows, 100},
                                   {product_unpack, 0},
                                   {product_experts, 0.5},
                                   {per_watt, 1e14},
                                   {scores_share, 0.5},
                                   {scores_memory_share, 0.25},
                                   {prefill_share, 0.5},
                                   {decode_launch, 2e-6},
                                   {decode_memory_share, 0.5}});
  v[index(kFormat, FormatParameter::unpack_rate)] = 20;
  v[index(kFormat, FormatParameter::share)] = 0.25;
  v[index(FormatKernel::wide, FormatParameter::unpack_rate)] = 1e9;
  return v;
}
KernelChoices choices() {
  KernelChoices c;
  c.ggml = c.integer_products = true;
  c.few_rows.fill(8);
  c.few_rows[static_cast<std::size_t>(FormatKernel::wide)] = 1;
  return c;
}
// 1e6 weights of 4 bits.
GemmCall call(double m) { return {m, 1000, 1000, 1, 2e3 * m, 0.5e6, 2e3 * m}; }
double seconds(FormatKernel format, const GemmCall& g, bool experts = false, const KernelChoices& c = choices()) {
  return ggml_time(device(), values(), c, format, g, experts).seconds - 1e-6;
}

TEST_CASE("a vector kernel unpacks weights for every row, and reads them once") {
  // 0.5 MB at 0.5 TB/s are 1 us; 1e6 weights at 10 cores x 1 GHz x 20 are 5 us a row.
  CHECK(seconds(kFormat, call(1)) == Approx(std::hypot(1e-6, 5e-6)));
  CHECK(seconds(kFormat, call(8)) == Approx(std::hypot(1e-6, 40e-6)));
}

TEST_CASE("more rows are multiplied in 8 bits, or in 16 where a backend has no such kernel") {
  // 2e8 operations at a quarter of 400 Top/s are 2 us, on top of the 1 us of the weights.
  CHECK(seconds(kFormat, call(100)) == Approx(1e-6 + 2e-6));
  KernelChoices c = choices();
  c.integer_products = false;
  CHECK(seconds(kFormat, call(100), false, c) == Approx(1e-6 + 8e-6));
}

TEST_CASE("unpacking for many rows takes as long as the vector kernel does for some, and rows are rounded up") {
  ParameterValues v = values();
  v[index(product_unpack)] = 6;
  KernelChoices c = choices();
  c.format_granule = 8;
  const auto packed = [&](double m) { return ggml_time(device(), v, c, kFormat, call(m), false).seconds - 1e-6; };
  // 6 rows at 5 us beside the 1 us of the weights, then 16 rows: 3.2e7 operations at 100 Top/s.
  CHECK(packed(9) == Approx(std::hypot(1e-6, 30e-6) + 0.32e-6));
  CHECK(packed(16) == Approx(packed(9)));
  CHECK(packed(129) == Approx(std::hypot(1e-6, 30e-6) + 2.72e-6));  // 136 rows
  // However fast a device multiplies, 9 rows take no less than 6 did before, where 8 took as long as 8.
  CHECK(packed(9) > seconds(kFormat, call(6)));
}

TEST_CASE("16-bit weights are loaded in tiles where a backend has a vector kernel for several rows of them") {
  ParameterValues v = values();
  v[index(product_unpack)] = 6;
  v[index(FormatKernel::wide, FormatParameter::unpack_rate)] = 4;
  KernelChoices c = choices();
  GemmCall g = call(100);
  g.second_bytes = 2e6;
  // A library takes no less than the vector kernel does for one row, 25 us beside the 4 us of the weights.
  CHECK(ggml_time(device(), v, c, FormatKernel::wide, g, false).seconds - 1e-6 ==
        Approx(std::hypot(std::hypot(4e-6, 25e-6), 4e-6)));
  c.few_rows[static_cast<std::size_t>(FormatKernel::wide)] = 8;
  // 4 us of the weights beside 6 rows at 25 us.
  CHECK(ggml_time(device(), v, c, FormatKernel::wide, g, false).seconds - 1e-6 ==
        Approx(std::hypot(std::hypot(4e-6, 150e-6), 4e-6)));
}

TEST_CASE("experts get half as far") { CHECK(seconds(kFormat, call(100), true) == Approx(1e-6 + 4e-6)); }

TEST_CASE("a 16-bit product gets half as far at 100 rows, and is held to the power limit") {
  // 2e8 FLOP at 100 TFLOP/s, half of the rate of sums in 16 bits, are 2 us; at 200 W and 1e14 FLOP/J nothing. Twice
  // that at 100 rows.
  GemmCall g = call(100);
  g.second_bytes = 2e6;  // 4 us
  CHECK(seconds(FormatKernel::wide, g) == Approx(std::hypot(4e-6, 4e-6)));
  ParameterValues v = values();
  v[index(per_watt)] = 0.25e12;  // 50 TFLOP/s: 4 us
  const double slower = 2 * std::pow(std::pow(2e-6, 4) + std::pow(4e-6, 4), 0.25);
  CHECK(ggml_time(device(), v, choices(), FormatKernel::wide, g, false).seconds - 1e-6 ==
        Approx(std::hypot(4e-6, slower)));
}

TEST_CASE("from a number of rows on weights are unpacked to 16 bits first") {
  KernelChoices c = choices();
  c.dequantise_rows[static_cast<std::size_t>(kFormat)] = 33;
  CHECK(ggml_product(c, kFormat, 32) == GgmlProduct::packed);
  CHECK(ggml_product(c, kFormat, 33) == GgmlProduct::wide);
  CHECK(ggml_product(c, kFormat, 8) == GgmlProduct::few_rows);
  CHECK(ggml_product(c, FormatKernel::wide, 2) == GgmlProduct::wide);
  // 2 MB written at half of 1 TB/s by a kernel of its own, and read again by the product: 4 us each.
  CHECK(seconds(kFormat, call(100), false, c) == Approx(1e-6 + 4e-6 + std::hypot(4e-6, 4e-6)));
}

TEST_CASE("products with the cache read it once for all heads of a group") {
  // [4, 100] x [100, 1000]: 0.8 MFLOP at 100 TFLOP/s are 8 ns; 0.2 MB at a quarter of 1 TB/s.
  const GemmCall g{4, 1000, 100, 1, 0, 0.2e6, 0};
  CHECK(scores_time(device(), values(), {}, g).seconds == Approx(1e-6 + std::hypot(8e-9, 0.8e-6)));
  // Where heads do not share what they read, the keys of a group come once for each of its heads, but not those of a
  // prompt.
  hardware::KernelChoices apart;
  apart.head_keys = true;
  CHECK(scores_time(device(), values(), apart, g).seconds == Approx(1e-6 + std::hypot(8e-9, 0.8e-6 * g.m)));
  GemmCall prompt = g;
  prompt.m = 512;
  CHECK(scores_time(device(), values(), apart, prompt).seconds == scores_time(device(), values(), {}, prompt).seconds);
}

TEST_CASE("attention goes through a prompt in micro-batches over what is cached by then, in blocks of 256 keys") {
  AttentionCall a;
  a.queries = 1024;
  a.heads = 8;
  a.kv_heads = 2;
  a.qk_dim = a.v_dim = 64;
  // 512 queries see 512 keys, 512 more 1024; keys and values of a token are 2 x 128 x 2 B.
  const double compute = 2.0 * 8 * 128 * 512 * (512 + 1024) / 1e14;
  const double memory = 2.0 * (512 + 1024) * 128 * 2 / 0.5e12;
  CHECK(ggml_attention_seconds(device(), values(), a, 512) == Approx(2e-6 + std::hypot(compute, memory)));
  // Of small heads a kernel may hold more at a time.
  hardware::ParameterValues twice = values();
  twice[index(hardware::Parameter::small_heads_share)] = 2;
  CHECK(ggml_attention_seconds(device(), twice, a, 512) == Approx(2e-6 + std::hypot(compute / 2, memory)));
  a.qk_dim = a.v_dim = 128;
  CHECK(ggml_attention_seconds(device(), twice, a, 512) == ggml_attention_seconds(device(), values(), a, 512));
  a.qk_dim = a.v_dim = 64;
  a.queries = 1;
  a.context = 300;  // 301 keys: two blocks
  CHECK(ggml_attention_seconds(device(), values(), a, 0) ==
        Approx(2e-6 + std::hypot(2.0 * 8 * 128 * 512 / 1e14, 2.0 * 512 * 128 * 2 / 0.5e12)));
}

TEST_CASE("a tile of attention is filled by the heads of a token where eight of them share keys") {
  AttentionCall a;
  a.queries = 256;
  a.heads = 16;
  a.kv_heads = 2;
  // 256 queries of 16 heads see 256 keys; keys and values of a token are 2 heads x 256 x 2 B.
  const double compute = 2.0 * 16 * 256 * 256 * 256 / 1e14;
  const double memory = 2.0 * 256 * 256 * 2 / 0.5e12;
  hardware::ParameterValues twice = values();
  twice[index(eights_share)] = 2;
  CHECK(ggml_attention_seconds(device(), values(), a, 0) == Approx(2e-6 + std::hypot(compute, memory)));
  CHECK(ggml_attention_seconds(device(), twice, a, 0) == Approx(2e-6 + std::hypot(compute / 2, memory)));
  a.kv_heads = 4;  // by fours
  CHECK(ggml_attention_seconds(device(), twice, a, 0) == ggml_attention_seconds(device(), values(), a, 0));
}

}  // namespace
}  // namespace llmperf::mapper::ggml_kernel_test
