// Attention kernels by hand.
#include <cmath>

#include "catch.h"
#include "kernel_values.h"
#include "mapper/roofline/kernels.h"

namespace llmperf::mapper::attention_kernel_test {
namespace {

using enum hardware::Parameter;
using hardware::KernelChoices;
using hardware::ParameterValues;

// Heads of 128 in 16 bits.
AttentionCall call(double sequences, double queries, double context, double heads, double kv_heads) {
  return {.sequences = sequences, .queries = queries, .context = context, .heads = heads, .kv_heads = kv_heads};
}

// 64 rows against 128 keys: 2 * 64 * 128 * 256 FLOP at half of a core's 10 TFLOP/s.
constexpr double kStep = 2.0 * 64 * 128 * 256 / 5e12;
const ParameterValues& prompt_values() {
  static const ParameterValues v = values_with(
      {{prefill_launch, 5e-6}, {prefill_share, 0.5}, {prefill_block, 1e-6}, {prefill_tail, 0.8}, {prefill_overlap, 8}});
  return v;
}
double prompt(const AttentionCall& a, const KernelChoices& c = {}) {
  return prefill_seconds(compute_device(), prompt_values(), c, a) - 5e-6;
}

TEST_CASE("a prompt of one block of rows per head walks over its keys once") {
  CHECK(prompt(call(1, 64, 0, 10, 10)) == Approx(kStep + 1e-6));
  // 1,216 keys are 9.5 steps of 128.
  CHECK(prompt(call(1, 64, 1152, 10, 10)) == Approx(10 * kStep + 1e-6));
  // Fewer heads than cores, or fewer rows than a block has, save nothing.
  CHECK(prompt(call(1, 3, 1152, 1, 1)) == Approx(10 * kStep + 1e-6));
}

TEST_CASE("blocks take as many rounds as fill the cores") {
  CHECK(prompt(call(1, 64, 1152, 11, 11)) == Approx(2 * (10 * kStep + 1e-6)));
  CHECK(prompt(call(3, 64, 1152, 10, 10)) == Approx(3 * (10 * kStep + 1e-6)));
}

TEST_CASE("a causal prompt is its mean block per round and part of what the longest takes longer") {
  // Blocks of 1, 1, 2 and 2 steps on 10 heads.
  CHECK(prompt(call(1, 256, 0, 10, 10)) == Approx(4 * (1.5 * kStep + 1e-6) + 0.8 * 0.5 * kStep));
}

TEST_CASE("the steps of a long prompt are counted block by block") {
  for (const std::int64_t rows : {48, 64, 128, 192}) {
    for (const double context : {0.0, 1.0, 100.0, 5000.0}) {
      for (const double queries : {200.0, 1000.0, 1024.0, 5001.0}) {
        const double blocks = std::ceil(queries / static_cast<double>(rows));
        double steps = 0;
        for (double i = 1; i <= blocks; ++i) {
          steps += std::ceil((context + std::min(i * static_cast<double>(rows), queries)) / 128);
        }
        const double longest = std::ceil((context + queries) / 128);
        const double mean = steps / blocks;
        const double step = kStep * static_cast<double>(rows) / 64;
        KernelChoices c;
        c.query_rows = rows;
        CHECK(prompt(call(1, queries, context, 10, 10), c) ==
              Approx(blocks * (mean * step + 1e-6) + 0.8 * (longest - mean) * step));
      }
    }
  }
}

TEST_CASE("a window caps the keys of a block of rows") {
  AttentionCall a = call(1, 64, 100000, 10, 10);
  a.window = 65;  // the first and the last of 64 rows see 128 keys together
  CHECK(prompt(a) == Approx(kStep + 1e-6));
  a.window = 66;
  CHECK(prompt(a) == Approx(2 * kStep + 1e-6));
  // Wider than the prompt it changes nothing.
  a = call(2, 1000, 500, 10, 10);
  const double whole = prompt(a);
  a.window = 4000;
  CHECK(prompt(a) == Approx(whole));
  // Once the window is full all blocks have 1,024 + 63 keys, 9 steps of 128; the first 8 and 8 have 1 to 8.
  a = call(1, 6400, 0, 10, 10);
  a.window = 1024;
  const double steps = 2 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8) + 84 * 9;
  CHECK(prompt(a) == Approx(steps * kStep + 100e-6 + 0.8 * (9 - steps / 100) * kStep));
}

TEST_CASE("a prompt bound by memory reads Q, K and V and writes its result once") {
  const ParameterValues v = values_with({{prefill_memory_share, 0.5}});
  KernelDevice d = round_device();
  d.matrix = 1e30;
  // 2 sequences, 1,000 rows of 8 heads and 1,500 keys of 2 heads, 128 elements of 2 bytes, each twice.
  const double bytes = 2 * (8 * 1000.0 + 2 * 1500.0) * 128 * 2 * 2;
  CHECK(prefill_seconds(d, v, {}, call(2, 1000, 500, 8, 2)) == Approx(bytes / 0.5e12));
}

TEST_CASE("a single query has the heads of its group for rows") {
  const ParameterValues v = values_with({{prefill_block, 1e-6}, {prefill_share, 1e12}, {decode_copy, 3e-6}});
  const auto of = [&](double sequences, double heads, double kv_heads) {
    return prefill_seconds(compute_device(), v, {}, call(sequences, 1, 0, heads, kv_heads));
  };
  CHECK(of(1, 40, 40) == Approx(4e-6));
  CHECK(of(1, 40, 10) == Approx(1e-6));
  CHECK(of(2, 40, 10) == Approx(2e-6 + 3e-6));  // and copies of Q and the result
}

TEST_CASE("the cache is appended to by a block per token") {
  const ParameterValues v = values_with({{append_token, 1e-6}});
  CHECK(append_seconds(compute_device(), v, 100, 256, 0) == Approx(5e-6));
  CHECK(append_seconds(compute_device(), v, 100, 512, 0) == Approx(10e-6));
  CHECK(append_seconds(compute_device(), v, 100, 4096, 0) == Approx(10e-6));
  CHECK(append_seconds(round_device(), v, 0, 4096, 2e6) == Approx(2e-6));
  // Starting the blocks and moving the bytes, 10 us each, overlap as a norm of exponent 4.
  CHECK(append_seconds(round_device(), v, 100, 512, 10e6) == Approx(10e-6 * std::sqrt(std::sqrt(2.0))));
}

const ParameterValues& token_values() {
  static const ParameterValues v = values_with({{decode_launch, 4e-6},
                                                {prefill_share, 1e12},  // products take no time
                                                {decode_block, 3e-6},
                                                {decode_block_rate, 128 * 512 / 1e-6},  // a step in 1 us
                                                {decode_pack, 2e-6},
                                                {decode_copy, 5e-6},
                                                {decode_split, 7e-6},
                                                {decode_split_each, 1e-7}});
  return v;
}
double token(const AttentionCall& a, const KernelChoices& c = {}) {
  return decode_seconds(compute_device(), token_values(), c, a);
}

TEST_CASE("a block of a new token streams its keys step by step, the first within the launch") {
  CHECK(token(call(1, 1, 0, 1, 1)) == Approx(4e-6));
  CHECK(token(call(1, 1, 127, 1, 1)) == Approx(4e-6));
  CHECK(token(call(1, 1, 1279, 1, 1)) == Approx(4e-6 + 9e-6));
  AttentionCall a = call(1, 1, 100000, 1, 1);
  a.window = 1280;
  CHECK(token(a) == Approx(4e-6 + 9e-6));
}

TEST_CASE("blocks beyond the cores are started in further rounds") {
  CHECK(token(call(10, 1, 100, 1, 1)) == Approx(4e-6));
  CHECK(token(call(11, 1, 100, 1, 1)) == Approx(4e-6 + 3e-6));
  CHECK(token(call(25, 1, 100, 2, 2)) == Approx(4e-6 + 4 * 3e-6));
}

TEST_CASE("keys are divided for grouped heads, and for others where the library does so") {
  // 10 steps of one KV head go to 10 blocks: none has a second one.
  CHECK(token(call(1, 1, 1279, 4, 1)) == Approx(4e-6 + 2e-6 + 7e-6 + 10 * 1e-7));
  KernelChoices c;
  c.split_ungrouped = true;
  CHECK(token(call(1, 1, 1279, 1, 1), c) == Approx(4e-6 + 7e-6 + 10 * 1e-7));
  // 16 of 20 slots are enough to leave them whole.
  CHECK(token(call(16, 1, 1279, 1, 1), c) == Approx(4e-6 + 9e-6 + 3e-6));
}

TEST_CASE("keys are divided in 128 parts at most") {
  // 256 steps of one block on 400 slots: 128 parts of two steps, of which the first is in the launch.
  KernelDevice wide = compute_device();
  wide.cores = 200;
  CHECK(decode_seconds(wide, token_values(), {}, call(1, 1, 256 * 128 - 1, 4, 1)) ==
        Approx(4e-6 + 1e-6 + 2e-6 + 7e-6 + 128 * 1e-7));
}

TEST_CASE("partial results of divided keys are read in 32 bits") {
  KernelDevice d = round_device();
  d.matrix = 1e30;
  const double cache = 1280 * 512.0;        // keys and values of one head
  const double queries = 4 * 256 * 2.0;     // and results, of four
  const double parts = 10 * 4 * 128 * 4.0;  // of ten blocks
  CHECK(decode_seconds(d, values_with({}), {}, call(1, 1, 1279, 4, 1)) == Approx((cache + queries + parts) / 1e12));
}

TEST_CASE("grouped heads of several KV heads and sequences are copied there and back") {
  CHECK(token(call(2, 1, 100, 4, 1)) == Approx(4e-6 + 2e-6));
  CHECK(token(call(1, 1, 100, 4, 2)) == Approx(4e-6 + 2e-6));
  CHECK(token(call(2, 1, 100, 4, 2)) == Approx(4e-6 + 2e-6 + 5e-6));
  CHECK(token(call(2, 1, 100, 4, 4)) == Approx(4e-6));
  // Queries and results, read and written: 4 x 2 x 4 x 128 elements of 2 bytes.
  const ParameterValues v = values_with({{decode_copy_share, 0.5}});
  CHECK(regroup_seconds(round_device(), v, call(2, 1, 100, 4, 2)) == Approx(4 * 2 * 4 * 128 * 2 / 0.5e12));
}

TEST_CASE("decode divides keys by how blocks fill the last round: 8,193 keys in fewer parts than 8,192") {
  // Eight KV heads on 256 slots. 32 steps of 256 keys: 32 parts fill one round. 33 steps: 32 parts would be no shorter
  // than 17, which fill half a round, the best that there is. Each part takes 1 us to join.
  AttentionCall a = call(1, 1, 8191, 32, 8);
  a.qk_dim = a.v_dim = 64;
  const KernelDevice d{.matrix = 1e30, .bandwidth = 1e30, .cores = 128};
  const ParameterValues v = values_with({{decode_split_each, 1e-6}});
  CHECK(decode_seconds(d, v, {}, a) == Approx(32e-6));
  ++a.context;
  CHECK(decode_seconds(d, v, {}, a) == Approx(17e-6));
}

TEST_CASE("decode bound by memory reads the cache once") {
  ParameterValues v = values_with({{decode_memory_share, 0.8}});
  KernelDevice d = round_device();
  d.matrix = 1e30;
  const double queries = 64 * 32 * 256 * 2.0;
  CHECK(decode_seconds(d, v, {}, call(64, 1, 999, 32, 32)) == Approx((64 * 32 * 1000 * 512.0 + queries) / 0.8e12));
  AttentionCall narrow = call(64, 1, 999, 32, 32);
  narrow.key_value_bytes = 1;
  CHECK(decode_seconds(d, v, {}, narrow) == Approx((64 * 32 * 1000 * 256.0 + queries) / 0.8e12));
}

TEST_CASE("keys and values that a measurement left in the cache come from there") {
  // 2 MB of them, and 0.004 MB of queries and results. Of one cache, 2 of 10 MB, all stay; of six, which fill 1.2 times
  // that, a tenth.
  const ParameterValues v = values_with({{decode_memory_share, 0.5}, {decode_resident_share, 2}});
  KernelDevice d = round_device();
  d.matrix = 1e30;
  AttentionCall a = call(4, 1, 487, 2, 2);
  a.copies = 1;
  const double cache = 4 * 2 * 488 * 512.0;
  const double queries = 4 * 2 * 256 * 2.0;
  CHECK(decode_seconds(d, v, {}, a) == Approx(queries / 0.5e12 + cache / 2e12));
  a.copies = 6;
  const double resident = (2.5 - 2 * 6 * cache / 1e7) * cache;
  CHECK(decode_seconds(d, v, {}, a) == Approx((queries + cache - resident) / 0.5e12 + resident / 2e12));
  a.copies = 0;
  CHECK(decode_seconds(d, v, {}, a) == Approx((queries + cache) / 0.5e12));
}

TEST_CASE("latent attention reads its keys once and multiplies with them twice") {
  AttentionCall a = call(64, 1, 4095, 128, 1);
  a.qk_dim = 576;
  a.v_dim = 512;
  a.shared_kv = true;
  CHECK(a.key_bytes() == 1152);
  const ParameterValues v = values_with({{prefill_share, 0.5}});
  CHECK(decode_seconds(compute_device(), v, {}, a) == Approx(2.0 * 64 * 128 * 4096 * (576 + 512) / 0.5e14));
}

TEST_CASE("a longer context never makes a token faster by more than a better division of its keys") {
  const ParameterValues v = values_with({{decode_block_rate, 2e10}, {decode_memory_share, 0.8}, {decode_overlap, 4}});
  double before = 0;
  for (double context = 1; context < 1e6; context *= 1.5) {
    const double now = decode_seconds(round_device(), v, {}, call(4, 1, std::floor(context), 32, 32));
    CHECK(now >= before);
    before = now;
  }
}

// ---- CANN

TEST_CASE("the first keys of a block of CANN's hide nothing, and its last rows are rounded up to 16") {
  KernelChoices c;
  c.attention = hardware::AttentionKernels::cann;
  c.query_rows = 128;
  ParameterValues v = prompt_values();
  v[index(prefill_fill)] = 2e-6;
  const auto of = [&](double queries, double context, double kv_heads = 5) {
    return prefill_seconds(compute_device(), v, c, call(1, queries, context, 10, kv_heads)) - 5e-6;
  };
  const double step = 2 * kStep;  // of 128 rows
  CHECK(of(128, 0) == Approx(step + 1e-6 + 2e-6));
  CHECK(of(128, 1152) == Approx(10 * step + 1e-6 + 4 * 2e-6));  // of 1,280 keys, 512 are the first
  // Blocks of 1 to 6 steps, of which 1, 2, 3, 4, 4 and 4 are the first.
  CHECK(of(768, 0) == Approx(6 * (3.5 * step + 1e-6 + 3 * 2e-6) + 0.8 * 2.5 * step));
  // 3 and 16 rows are an eighth of a block, 17 a quarter.
  CHECK(of(3, 1152) == Approx((10 * step + 8e-6) / 8 + 1e-6));
  CHECK(of(16, 1152) == Approx(of(3, 1152)));
  CHECK(of(17, 1152) == Approx((10 * step + 8e-6) / 4 + 1e-6));
  // Of 136 rows the last 8 cost an eighth of their 2 steps.
  CHECK(of(136, 0) == Approx(2 * (0.625 * step + 1e-6 + 0.625 * 2e-6) + 0.8 * 1.375 * step));
  // Heads with keys of their own: one block of 256 rows, which see 2 steps.
  CHECK(of(256, 0, 10) == Approx(2 * (2 * step) + 1e-6 + 2 * (2 * 2e-6)));
  for (const double kv_heads : {5.0, 10.0}) {
    double before = 0;
    for (double queries = 2; queries <= 2000; ++queries) {
      const double seconds = of(queries, 100, kv_heads);
      CHECK(seconds >= before);
      before = seconds;
    }
  }
  v[index(prefill_fill)] = 0;
  CHECK(of(1280, 0) == Approx(prompt(call(1, 1280, 0, 10, 5), {.query_rows = 128})));
}

TEST_CASE("a few new tokens of a sequence are rows of the block of their heads") {
  // 4 tokens of a group of 16 heads are 64 rows, one block; 5 are two. 20 sequences start theirs in 2 rounds, or in 4.
  const double chain = 872.0 / 128 * 1e-6;  // of 1,000 keys, those after the first step
  CHECK(token(call(20, 4, 996, 16, 1)) == Approx(4e-6 + 2e-6 + chain + 3e-6));
  CHECK(token(call(20, 5, 995, 16, 1)) == Approx(4e-6 + 2e-6 + 2 * chain + 9e-6));
}

// ---- FlashAttention-3

KernelChoices flash3() {
  KernelChoices c;
  c.attention = hardware::AttentionKernels::flash3;
  return c;
}

// 128 rows against 128 keys at half of a core's 10 TFLOP/s, and their exponentials.
constexpr double kStep3 = 2.0 * 128 * 128 * 256 / 5e12 + 128.0 * 128 / 1e10;
const ParameterValues& flash3_values() {
  static const ParameterValues v = values_with({{prefill_launch, 5e-6},
                                                {prefill_share, 0.5},
                                                {prefill_exponential_rate, 1e10},
                                                {prefill_narrow_share, 0.25},
                                                {prefill_quantise, 3e-6},
                                                {prefill_block, 1e-6},
                                                {prefill_tail, 0.2}});
  return v;
}
double prompt3(const AttentionCall& a, const KernelChoices& c = flash3()) {
  return prefill_seconds(compute_device(), flash3_values(), c, a) - 5e-6;
}

TEST_CASE("FlashAttention-3 computes products and exponentials one after the other, and deals blocks evenly") {
  // One block per core; the last one ends late by a fifth of itself.
  const double block = 10 * kStep3 + 1e-6;
  CHECK(prompt3(call(1, 128, 1152, 10, 10)) == Approx(1.2 * block));
  // 15 blocks on 10 cores are 1.5 rounds.
  CHECK(prompt3(call(1, 128, 1152, 15, 15)) == Approx(1.7 * block));
  // Blocks of 1 to 4 steps.
  CHECK(prompt3(call(1, 512, 0, 10, 10)) == Approx(10 * kStep3 + 4e-6 + 0.2 * (4 * kStep3 + 1e-6)));
  // What no product fills is not shorter: one block of 4 steps alone.
  CHECK(prompt3(call(1, 1, 511, 1, 1)) == Approx(4 * kStep3 + 1e-6));
}

TEST_CASE("FlashAttention-3 packs the heads of a group into the rows of one block") {
  // 64 tokens of a group of 2 are 128 rows.
  CHECK(prompt3(call(1, 64, 0, 20, 10)) == Approx(1.2 * (kStep3 + 1e-6)));
  for (const double group : {2.0, 3.0, 7.0, 24.0}) {
    for (const double context : {0.0, 1.0, 1000.0}) {
      for (const double queries : {100.0, 1024.0, 3001.0}) {
        const double blocks = std::ceil(queries * group / 128);
        double steps = 0;
        for (double i = 1; i <= blocks; ++i) {
          steps += std::ceil((context + std::min(std::ceil(i * 128 / group), queries)) / 128);
        }
        const double longest = std::ceil((context + queries) / 128);
        CHECK(prompt3(call(1, queries, context, 10 * group, 10)) ==
              Approx(steps * kStep3 + blocks * 1e-6 + 0.2 * (longest * kStep3 + 1e-6)));
      }
    }
  }
}

TEST_CASE("kernels for Blackwell keep heads apart, in blocks of 256 rows") {
  KernelChoices c;
  c.attention = hardware::AttentionKernels::blackwell;
  CHECK(prompt3(call(1, 128, 0, 20, 10), c) == Approx(2.2 * (kStep3 + 1e-6)));
  CHECK(prompt3(call(1, 256, 0, 10, 10), c) == Approx(1.2 * (2 * 2 * kStep3 + 1e-6)));
  // Keys are not divided: one block of 40 steps alone.
  CHECK(prompt3(call(1, 128, 40 * 128 - 128, 1, 1), c) == Approx(40 * kStep3 + 1e-6));
  // Results of 256 elements leave room for 128 rows; TensorRT-LLM's on Hopper have no more in any case.
  AttentionCall wide = call(1, 256, 0, 10, 10);
  wide.qk_dim = wide.v_dim = 256;
  const double step = 2.0 * 128 * 128 * 512 / 5e12 + 128.0 * 128 / 1e10;
  CHECK(prompt3(wide, c) == Approx(3 * step + 2e-6 + 0.2 * (2 * step + 1e-6)));
  // Results of 512 elements leave none for scores: each half of them meets its scores anew, three products of 512 in
  // place of two.
  wide = call(1, 128, 0, 10, 10);
  wide.qk_dim = wide.v_dim = 512;
  CHECK(prompt3(wide, c) == Approx(1.2 * (1.5 * 2 * 128 * 128 * 1024 / 5e12 + 128.0 * 128 / 1e10 + 1e-6)));
  wide.key_value_bytes = wide.element_bytes = 1;
  CHECK(prompt3(wide, c) == Approx(1.2 * (2.0 * 128 * 128 * 1024 / 2.5e12 + 128.0 * 128 / 1e10 + 1e-6)));
  c.attention = hardware::AttentionKernels::xqa;
  CHECK(prompt3(call(1, 256, 0, 10, 10), c) == Approx(3 * kStep3 + 2e-6 + 0.2 * (2 * kStep3 + 1e-6)));
}

TEST_CASE("queries that meet their scale in a kernel of its own are read and written once more") {
  KernelChoices c;
  c.attention = hardware::AttentionKernels::blackwell;
  AttentionCall a = call(1, 128, 0, 10, 10);
  a.key_value_bytes = a.element_bytes = 1;
  const auto time = [&] { return prefill_seconds(round_device(), flash3_values(), c, a); };
  const double narrow = time();  // what was measured in 8 bits began with 8
  c.queries_scaled = true;
  const double elements = 128.0 * 10 * 128;
  CHECK(time() - narrow == Approx(3e-6 + elements * (2 + 2 + 2 + 1) / 1e12));
}

// ---- XQA, on 10 cores with two blocks each

KernelChoices xqa() {
  KernelChoices c;
  c.attention = hardware::AttentionKernels::xqa;
  return c;
}
const ParameterValues& xqa_values() {
  static const ParameterValues v = values_with({{decode_launch, 8e-6},
                                                {decode_narrow_launch, 6e-6},
                                                {decode_block, 10e-6},
                                                {decode_narrow_block, 2e-6},
                                                {decode_block_rate, 5e10},
                                                {decode_head_block, 3e-6},
                                                {decode_head_rate, 2e10},
                                                {decode_split, 4e-6},
                                                {decode_window, 1e-6}});
  return v;
}
double token_x(const AttentionCall& a) { return decode_seconds(compute_device(), xqa_values(), xqa(), a); }

TEST_CASE("XQA deals groups to two blocks a core, and has another kernel for keys of 8 bits") {
  // 40 groups are two rounds of 20 blocks, which stream 200 keys of 512 bytes each.
  AttentionCall a = call(10, 1, 199, 16, 4);
  CHECK(token_x(a) == Approx(8e-6 + 2 * (10e-6 + 200 * 512 / 5e10)));
  a.key_value_bytes = 1;
  CHECK(token_x(a) == Approx(6e-6 + 2 * (2e-6 + 200 * 256 / 5e10)));
  // One group of 1,280 keys: 17 parts fill the slots for 20 well enough, and are joined.
  CHECK(token_x(call(1, 1, 1279, 8, 1)) == Approx(8e-6 + 0.85 * 10e-6 + 1280 / 17.0 * 512 / 5e10 + 4e-6));
}

TEST_CASE("heads that share no keys are XQA's blocks one by one, short ones the sooner done") {
  CHECK(has_block_per_head(call(1, 1, 0, 8, 8)));
  CHECK(has_block_per_head(call(1, 1, 0, 64, 1)));
  CHECK_FALSE(has_block_per_head(call(1, 1, 0, 32, 1)));
  // 40 heads of 16 keys, half of those that take a block's whole time.
  CHECK(token_x(call(5, 1, 15, 8, 8)) == Approx(8e-6 + 2 * 1.5e-6 + 40 * 16 * 256 / 2e11));
}

TEST_CASE("of a window in a longer sequence most of XQA's parts find nothing to do") {
  AttentionCall a = call(2, 1, 1023, 8, 1);
  a.window = 128;
  CHECK(token_x(a) == Approx(8e-6 + 0.1 * 10e-6 + 128 * 512 / 5e10 + 3e-6));  // 1,024 are eight windows
}

// ---- Triton

bool in_triton(const KernelChoices& c, const AttentionCall& a, bool prompts) {
  return triton_case(c, a, prompts) != nullptr;
}

TEST_CASE("cases of attention run in Triton's kernels where a profile says so") {
  KernelChoices c = flash3();
  c.triton_attention = {{.head = 512}, {.head = 256, .window = true}, {.narrow = true, .prompts = true}};
  AttentionCall a = call(1, 1, 99, 8, 1);
  CHECK_FALSE(in_triton(c, a, false));
  a.qk_dim = 512;
  CHECK(in_triton(c, a, false));
  a.qk_dim = 256;
  CHECK_FALSE(in_triton(c, a, true));
  a.window = 1024;
  CHECK(in_triton(c, a, true));
  a = call(1, 1, 99, 8, 1);
  a.key_value_bytes = 1;
  CHECK(in_triton(c, a, true));
  CHECK_FALSE(in_triton(c, a, false));
  a.element_bytes = 1;  // products in 8 bits, for which the library has a kernel
  CHECK_FALSE(in_triton(c, a, true));
  c.triton_attention = {{.most_grouped = 8}};
  CHECK(in_triton(c, call(1, 1, 0, 8, 1), false));
  CHECK_FALSE(in_triton(c, call(1, 1, 0, 16, 1), false));
  CHECK_FALSE(in_triton(c, call(1, 1, 0, 8, 8), false));
}

TEST_CASE("Triton's prompts are whole rounds of blocks, and compute what a window hides") {
  const ParameterValues v =
      values_with({{triton_launch, 7e-6}, {triton_share, 0.1}, {triton_narrow_share, 0.05}, {triton_block, 1e-6}});
  const auto time = [&](const AttentionCall& a, bool skips = false) {
    return triton_prefill_seconds(compute_device(), v, a, skips);
  };
  const double key = 2.0 * 128 * 256 / 1e12;  // one key of a block of 128 rows at a tenth of a core's 10 TFLOP/s
  // Keys come 64 at a time; 33 rows of a wide head are two blocks of 32.
  CHECK(time(call(1, 64, 6, 10, 10)) == Approx(7e-6 + 128 * key + 1e-6));
  AttentionCall wide = call(1, 33, 0, 5, 5);
  wide.qk_dim = wide.v_dim = 512;
  CHECK(time(wide) == Approx(7e-6 + 64 * key + 1e-6));
  // Four blocks of 10 heads are four rounds; the mean one sees 320 of 512 keys.
  CHECK(time(call(1, 512, 0, 10, 10)) == Approx(7e-6 + 4 * (320 * key + 1e-6)));
  AttentionCall a = call(1, 512, 0, 10, 10);
  a.window = 128;
  CHECK(time(a) == Approx(7e-6 + 4 * (320 * key + 1e-6)));
  a.key_value_bytes = 1;
  CHECK(time(a) == Approx(7e-6 + 4 * (320 * 2 * key + 1e-6)));
  // One and a half windows and a block's rows, where the loop skips the rest.
  a = call(1, 128, 8192 - 128, 10, 10);
  a.key_value_bytes = 1;
  a.window = 512;
  CHECK(time(a, true) == Approx(7e-6 + (1.5 * 512 + 128) * 2 * key + 1e-6));
}

TEST_CASE("Triton's new tokens stream keys in at most eight parts") {
  const ParameterValues v = values_with({{triton_launch, 7e-6}, {triton_rate, 1e10}});
  const auto time = [&](const AttentionCall& a) { return triton_decode_seconds(compute_device(), v, a); };
  // One block of 16 heads: 8 parts of 512 keys on 10 cores. 17 heads are two blocks.
  CHECK(time(call(1, 1, 4095, 16, 1)) == Approx(7e-6 + 512 * 512 / 1e10));
  CHECK(time(call(1, 1, 4095, 17, 1)) == Approx(7e-6 + 1.6 * 512 * 512 / 1e10));
  AttentionCall narrow = call(1, 1, 4095, 16, 1);
  narrow.key_value_bytes = 1;  // widened on the way
  CHECK(time(narrow) == time(call(1, 1, 4095, 16, 1)));
}

TEST_CASE("narrow heads have blocks of 192 rows, wide ones steps of fewer keys") {
  AttentionCall a = call(1, 192, 0, 10, 10);
  a.qk_dim = a.v_dim = 64;
  CHECK(prompt3(a) == Approx(1.2 * (2 * (2.0 * 192 * 128 * 128 / 5e12 + 192.0 * 128 / 1e10) + 1e-6)));
  a = call(1, 80, 0, 10, 10);
  a.qk_dim = a.v_dim = 256;
  CHECK(prompt3(a) == Approx(1.2 * (2.0 * 128 * 80 * 512 / 5e12 + 128.0 * 80 / 1e10 + 1e-6)));
}

TEST_CASE("FlashAttention-3 divides the keys of few blocks") {
  // One block of 40 steps on 10 cores: 9 parts of 5 steps fill the cores better than .85, and 10 of 4 the best.
  const double joined = 8.0 * 128 * 128;  // per part
  const double seconds = prompt3(call(1, 128, 40 * 128 - 128, 1, 1));
  CHECK(seconds == Approx(5 * kStep3 + 1e-6));
  KernelDevice d = compute_device();
  d.bandwidth = 1e12;
  ParameterValues v = flash3_values();
  v[index(prefill_overlap)] = 1;
  const double bytes = (128.0 + 40 * 128) * 256 * 2 + 9 * joined;
  CHECK(prefill_seconds(d, v, flash3(), call(1, 128, 40 * 128 - 128, 1, 1)) - 5e-6 == Approx(seconds + bytes / 1e12));
}

TEST_CASE("a window cuts the steps of FlashAttention-3, and they start anywhere") {
  AttentionCall a = call(1, 128, 100000, 10, 10);
  a.window = 129;  // the first and the last row see 256 keys together
  CHECK(prompt3(a) == Approx(1.2 * ((255.0 / 128 + 1) * kStep3 + 1e-6)));
  a = call(1, 1000, 0, 10, 10);
  const double whole = prompt3(a);
  a.window = 1000;
  CHECK(prompt3(a) == Approx(whole));
}

TEST_CASE("over keys of 8 bits queries are made narrow first, and products have a share of their own") {
  AttentionCall a = call(1, 128, 1152, 10, 10);
  a.key_value_bytes = 1;
  // Products at a quarter of the rate in place of a half, and the same exponentials.
  CHECK(prompt3(a) == Approx(1.2 * (10 * (2.0 * 128 * 128 * 256 / 2.5e12 + 128.0 * 128 / 1e10) + 1e-6) + 3e-6));
  // Queries that come in 8 bits are not made narrow.
  a.element_bytes = 1;
  CHECK(prompt3(a) == Approx(1.2 * (10 * (2.0 * 128 * 128 * 256 / 2.5e12 + 128.0 * 128 / 1e10) + 1e-6)));
}

TEST_CASE("latent attention over a prompt has numbers of its own") {
  AttentionCall a = call(1, 128, 1152, 10, 10);
  a.qk_dim = 192;
  const ParameterValues v = values_with({{latent_prompt_launch, 4e-6},
                                         {latent_prompt_share, 0.5},
                                         {latent_prompt_exponential_rate, 1e10},
                                         {latent_prompt_block, 2e-6},
                                         {latent_token, 1e-7},
                                         {prefill_tail, 0.2}});
  const double step = 2.0 * 128 * 128 * 320 / 5e12 + 128.0 * 128 / 1e10;
  CHECK(prefill_seconds(compute_device(), v, flash3(), a) == Approx(4e-6 + 1.2 * (10 * step + 2e-6) + 12.8e-7));
  // Made narrow first: 128 rows and 1,280 keys of ten heads, read in two bytes and written in one.
  KernelDevice d = round_device();
  d.matrix = 1e30;
  ParameterValues slow = values_with({{prefill_quantise, 3e-6}, {prefill_memory_share, 1e12}});
  a.key_value_bytes = 1;
  CHECK(prefill_seconds(d, slow, flash3(), a) == Approx(3e-6 + 10 * (128.0 * 192 + 1280.0 * 320) * 3 / 1e12));
}

const ParameterValues& token3_values() {
  static const ParameterValues v = values_with({{decode_launch, 4e-6},
                                                {decode_block, 3e-6},
                                                {decode_block_rate, 128 * 512 / 1e-6},  // a step in 1 us
                                                {decode_split, 7e-6},
                                                {decode_split_each, 1e-7},
                                                {decode_sequence, 1e-8},
                                                {decode_window, 2e-6},
                                                {decode_quantise, 5e-6}});
  return v;
}
double token3(const AttentionCall& a) { return decode_seconds(compute_device(), token3_values(), flash3(), a); }

TEST_CASE("FlashAttention-3 streams the keys of new tokens in rounds of blocks") {
  CHECK(token3(call(1, 1, 100, 1, 1)) == Approx(4e-6 + 3e-6 + 1e-8));
  CHECK(token3(call(10, 1, 1279, 1, 1)) == Approx(4e-6 + 12e-6 + 1e-7));
  CHECK(token3(call(11, 1, 1279, 64, 1)) == Approx(4e-6 + 24e-6 + 1.1e-7));
  CHECK(token3(call(10, 1, 1279, 65, 1)) == Approx(4e-6 + 24e-6 + 1e-7));  // 64 heads to a block
  CHECK(token3(call(1000, 1, 100, 1, 1)) == Approx(4e-6 + 300e-6));        // too many to sort
  // One block of 10 steps: 9 parts of 2 fill nine cores, better than .85 of ten.
  CHECK(token3(call(1, 1, 1279, 1, 1)) == Approx(4e-6 + 4e-6 + 1e-8 + 7e-6 + 9e-7));
}

TEST_CASE("a wide head starts slower, a window masks, and keys of 8 bits stream no faster") {
  AttentionCall a = call(10, 1, 79, 1, 1);
  a.qk_dim = a.v_dim = 256;
  CHECK(token3(a) == Approx(4e-6 + 3e-6 * std::pow(2, 0.375) + 1e-7));
  a = call(20, 1, 100000, 1, 1);
  a.window = 1280;
  CHECK(token3(a) == Approx(4e-6 + 2 * (12e-6 + 2e-6) + 2e-7));
  a = call(10, 1, 1279, 1, 1);
  a.key_value_bytes = 1;
  CHECK(token3(a) == Approx(4e-6 + 12e-6 + 5e-6 + 1e-7));
}

TEST_CASE("more tokens, a longer context or more sequences make no attention of FlashAttention-3 faster") {
  ParameterValues v = flash3_values();
  for (const auto& [p, value] : {std::pair{decode_block_rate, 6e10}, {decode_block, 4e-6}, {decode_overlap, 1.6}}) {
    v[index(p)] = value;
  }
  for (const double context : {0.0, 1000.0}) {
    for (const double window : {0.0, 300.0}) {
      double before = 0;
      for (double queries = 2; queries < 1e5; queries = std::ceil(queries * 1.3)) {
        AttentionCall a = call(4, queries, context, 24, 8);
        a.window = window;
        const double now = prefill_seconds(round_device(), v, flash3(), a);
        CHECK(now >= before);
        before = now;
      }
    }
  }
  double before = 0;
  for (double context = 1; context < 1e6; context *= 1.5) {
    const double now = decode_seconds(round_device(), v, flash3(), call(4, 1, std::floor(context), 32, 8));
    CHECK(now >= before);
    before = now;
  }
  before = 0;
  for (double sequences = 1; sequences < 900; sequences *= 1.2) {
    AttentionCall a = call(std::floor(sequences), 1, 100, 32, 8);
    const double now = decode_seconds(round_device(), v, flash3(), a);
    CHECK(now >= before);
    before = now;
  }
}

TEST_CASE("new tokens on latents read them once for all heads, in steps dealt to all cores") {
  AttentionCall a = call(4, 1, 1919, 128, 1);
  a.qk_dim = 576;
  a.v_dim = 512;
  a.shared_kv = true;
  const ParameterValues v =
      values_with({{latent_launch, 4e-6}, {latent_share, 0.5}, {latent_block, 3e-6}, {latent_split, 7e-6}});
  // 4 sequences of 2 blocks of 30 steps: 240 on 10 cores.
  const double step = 2.0 * 64 * 64 * 1088 / 5e12;
  CHECK(latent_seconds(compute_device(), v, a) == Approx(4e-6 + 3e-6 + 24 * step + 7e-6));
  // Nine blocks of 45 steps on 10 cores stay whole, because an even share of 40.5 leaves room for five more; of 46 not.
  a.heads = 64;
  a.sequences = 9;
  a.context = 45 * 64 - 1;
  CHECK(latent_seconds(compute_device(), v, a) == Approx(4e-6 + 3e-6 + 45 * step));
  a.context = 46 * 64 - 1;
  CHECK(latent_seconds(compute_device(), v, a) == Approx(4e-6 + 3e-6 + 42 * step + 7e-6));
  a = call(4, 1, 639, 128, 1);
  a.qk_dim = 576;
  a.v_dim = 512;
  a.shared_kv = true;
  a.sequences = 10;
  CHECK(latent_seconds(compute_device(), v, a) == Approx(4e-6 + 6e-6 + 20 * step));
  // 576 elements of every token, and of every head 576 + 512 of queries and results.
  KernelDevice d = round_device();
  d.matrix = 1e30;
  CHECK(latent_seconds(d, values_with({}), a) == Approx((10 * 640 * 1152.0 + 10 * 128 * 1088 * 2.0) / 1e12));
}

}  // namespace
}  // namespace llmperf::mapper::attention_kernel_test
