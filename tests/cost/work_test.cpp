#include "cost/work.h"

#include <algorithm>

#include "catch.h"
#include "graph/random_decoder.h"

namespace llmperf::work_test {

using cost::Work;
using cost::work_of;
using graph::Attention;
using graph::Copy;
using graph::Gather;
using graph::Gemm;
using graph::Op;
using graph::OpBody;
using graph::Vector;
using graph::VectorKind;

namespace {

Work work(OpBody body, cost::Cache cache = std::nullopt) {
  return work_of(Op{.name = "op", .count = 1, .layer_kind = -1, .grows_with_context = false, .body = std::move(body)},
                 cache);
}

// `sequences` sequences that add q_tokens to `context` cached ones, without a window.
Attention attention(std::int64_t sequences, std::int64_t q_tokens, std::int64_t context, std::int64_t heads,
                    std::int64_t kv_heads, std::int64_t qk_dim, std::int64_t v_dim) {
  Attention a;
  a.sequences = sequences;
  a.q_tokens = q_tokens;
  a.context = context;
  a.heads = heads;
  a.kv_heads = kv_heads;
  a.qk_dim = qk_dim;
  a.v_dim = v_dim;
  return a;
}

// Visible pairs of one sequence.
double pairs_of(std::int64_t q_tokens, std::int64_t context, std::optional<std::int64_t> window = std::nullopt) {
  Attention a = attention(1, q_tokens, context, 1, 1, 1, 1);
  a.window = window;
  return cost::visible_pairs(a);
}

double attention_bytes(const Attention& a) { return work(a).bytes().value; }

}  // namespace

TEST_CASE("a GEMM multiplies and adds once per inner step and reads every operand once") {
  const model::StoredFormat bf16;
  const Work w = work(Gemm{.m = 10, .n = 30, .k = 20, .weights = &bf16});
  CHECK(w.matrix.value == 2 * 10 * 30 * 20);
  CHECK(w.vector.value == 0);
  CHECK(w.weights.value == 30 * 20 * 2);
  CHECK(w.activations_read.value == 10 * 20 * 2);
  CHECK(w.activations_written.value == 10 * 30 * 2);
  CHECK(w.bytes().value == 1200 + 400 + 600);
}

TEST_CASE("a bias is an add per result and one more row of weights") {
  const model::StoredFormat bf16;
  const Work w = work(Gemm{.m = 10, .n = 30, .k = 20, .weights = &bf16, .bias = true});
  CHECK(w.vector.value == 300);
  CHECK(w.weights.value == 1200 + 60);
}

TEST_CASE("quantised weights are read at their stored size and unpacked on the vector engine") {
  const model::StoredFormat int4 = {
      .bits = 4, .group = 128, .bits_per_group = 20, .compute = Dtype::fp16, .dequant_flops = 2};
  const Work w = work(Gemm{.m = 1, .n = 256, .k = 512, .weights = &int4});
  CHECK(w.weights.value == (256 * 512 * 4 + 256 * 4 * 20) / 8);
  CHECK(w.vector.value == 2 * 256 * 512);
  CHECK(w.matrix_dtype == Dtype::fp16);
}

TEST_CASE("experts read the weights of each that is reached, whatever the number of rows") {
  const model::StoredFormat bf16;
  const Work w = work(Gemm{.m = 60, .n = 30, .k = 20, .weights = &bf16, .weight_matrices = 6});
  CHECK(w.matrix.value == 2 * 60 * 30 * 20);
  CHECK(w.weights.value == 6 * 30 * 20 * 2);
}

TEST_CASE("a product with the cache reads the cache, at its own type") {
  const Work w = work(
      Gemm{.m = 1, .n = 100, .k = 64, .batch = 8, .cached_operand = true, .cached = model::element_format(Dtype::fp8)});
  CHECK(w.matrix.value == 2 * 100 * 64 * 8);
  CHECK(w.kv_read.value == 100 * 64 * 8 * 1);
  CHECK(w.activations_read.value == 64 * 8 * 2);
  CHECK(w.weights.value == 0);
  const Work both = work(Gemm{.m = 1, .n = 100, .k = 64, .batch = 8});
  CHECK(both.kv_read.value == 0);
  CHECK(both.activations_read.value == (64 + 100 * 64) * 8 * 2);
}

TEST_CASE("operands are read once while either of them fits in the cache") {
  const cost::OperandReads reads = cost::gemm_reads(1000, 1000, 100, 1e9, 2, Bytes{100});
  CHECK(reads.first == 1);
  CHECK(reads.second == 1);
  const cost::OperandReads unlimited = cost::gemm_reads(1000, 1000, 1e9, 1e9, 2, std::nullopt);
  CHECK(unlimited.first == 1);
  CHECK(unlimited.second == 1);
}

TEST_CASE("larger operands are read again under the cheapest schedule") {
  const cost::Cache cache = Bytes{20000};  // holds a square tile of 100 x 100 two-byte elements
  // Tiles: 10 x 200 kB + 10 x 200 kB. Slabs of the first: 1 x 200 kB + 10 x 200 kB: cheaper.
  const cost::OperandReads slabs = cost::gemm_reads(1000, 1000, 200'000, 200'000, 2, cache);
  CHECK(slabs.first == 1);
  CHECK(slabs.second == 10);
  // A long inner product: tiles of the result 1 x 1, against 100 slabs.
  const cost::OperandReads tiles = cost::gemm_reads(100, 100, 2'000'000, 2'000'000, 2, cache);
  CHECK(tiles.first == 1);
  CHECK(tiles.second == 1);
  // The second operand is the smaller: keeping slabs of it reads the first 3 times.
  const cost::OperandReads second = cost::gemm_reads(1e6, 1000, 2e9, 60'000, 2, cache);
  CHECK(second.first == 3);
  CHECK(second.second == 1);
}

TEST_CASE("a larger cache never means more traffic, and nothing is read less than once") {
  test::Random random(5);
  for (int i = 0; i < 1000; ++i) {
    const double m = static_cast<double>(random.in(1, 5000));
    const double n = static_cast<double>(random.in(1, 5000));
    const double k = static_cast<double>(random.in(1, 5000));
    double before = 1e300;
    for (double cache = 16; cache < 1e9; cache *= 3) {
      const cost::OperandReads reads = cost::gemm_reads(m, n, m * k * 2, n * k * 2, 2, Bytes{cache});
      CHECK(reads.first >= 1);
      CHECK(reads.second >= 1);
      const double traffic = reads.first * m * k * 2 + reads.second * n * k * 2;
      CHECK(traffic <= before);
      before = traffic;
    }
    CHECK(before == m * k * 2 + n * k * 2);
  }
}

TEST_CASE("causal attention counts the pairs that are not masked") {
  CHECK(pairs_of(4, 0) == 1 + 2 + 3 + 4);
  CHECK(pairs_of(1, 99) == 100);
  CHECK(pairs_of(4, 0, 2) == 1 + 2 + 2 + 2);
  CHECK(pairs_of(2, 10, 5) == 5 + 5);
  const Work w = work(attention(3, 4, 0, 8, 2, 16, 32));
  CHECK(w.matrix.value == 2 * 10 * (16 + 32) * 8 * 3);
  CHECK(w.vector.value == 5 * 10 * 8 * 3);
  CHECK(w.kv_read.value == 3 * 4 * 2 * (16 + 32) * 2);
  CHECK(w.activations_read.value == 3 * 4 * 8 * 16 * 2);
  CHECK(w.activations_written.value == 3 * 4 * 8 * 32 * 2);
}

TEST_CASE("soft-capped scores take one more operation each") {
  Attention a = attention(1, 4, 0, 8, 8, 16, 16);
  const double plain = work(a).vector.value;
  a.softcap = true;
  CHECK(work(a).vector.value == plain + 10 * 8);
}

TEST_CASE("keys that are also the values are read once") {
  Attention a = attention(1, 1, 9, 4, 1, 24, 16);
  a.shared_kv = true;
  a.cached = {model::element_format(Dtype::fp8), model::element_format(Dtype::fp8)};
  CHECK(work(a).kv_read.value == 10 * 24);
}

TEST_CASE("pairs and keys of any window, context and tile are those of a count one by one") {
  test::Random random(6);
  for (int i = 0; i < 2000; ++i) {
    Attention a = attention(1, random.in(1, 60), random.in(0, 80), 1, 1, 1, 1);
    if (random.chance()) a.window = random.in(1, 90);
    a.query_tile = random.in(0, 70);
    const std::int64_t tile = a.query_tile == 0 ? a.q_tokens : a.query_tile;
    std::int64_t pairs = 0;
    std::int64_t keys = 0;
    for (std::int64_t first = 1; first <= a.q_tokens; first += tile) {
      std::vector<bool> seen(static_cast<std::size_t>(a.context + a.q_tokens), false);
      for (std::int64_t q = first; q < first + tile && q <= a.q_tokens; ++q) {
        for (std::int64_t key = 0; key < a.context + q; ++key) {
          if (a.window && key < a.context + q - *a.window) continue;
          ++pairs;
          seen[static_cast<std::size_t>(key)] = true;
        }
      }
      keys += std::count(seen.begin(), seen.end(), true);
    }
    CHECK(cost::visible_pairs(a) == static_cast<double>(pairs));
    CHECK(graph::keys_read(a) == static_cast<double>(keys));
  }
}

TEST_CASE("doubling the batch doubles attention bytes") {
  test::Random random(7);
  for (int i = 0; i < 500; ++i) {
    Attention a = attention(random.in(1, 50), random.in(1, 500), random.in(0, 5000), 4 * random.in(1, 16), 4,
                            8 * random.in(1, 32), 8 * random.in(1, 32));
    if (random.chance()) a.window = random.in(1, 3000);
    if (random.chance()) a.query_tile = random.in(1, 200);
    const double once = attention_bytes(a);
    a.sequences *= 2;
    CHECK(attention_bytes(a) == 2 * once);
  }
}

TEST_CASE("grouped-query attention reads kv_heads / heads of the cache that multi-head attention reads") {
  test::Random random(8);
  for (int i = 0; i < 500; ++i) {
    const std::int64_t kv_heads = random.in(1, 8);
    const std::int64_t heads = kv_heads * random.in(1, 8);
    Attention a = attention(random.in(1, 50), random.in(1, 500), random.in(0, 5000), heads, kv_heads, 64, 64);
    if (random.chance()) a.window = random.in(1, 3000);
    const double grouped = work(a).kv_read.value;
    a.kv_heads = heads;
    CHECK(grouped * static_cast<double>(heads) == work(a).kv_read.value * static_cast<double>(kv_heads));
  }
}

TEST_CASE("an element-wise op costs by its kind and moves the tensors it names") {
  const Work w = work(Vector{.kind = VectorKind::add_rms_norm,
                             .rows = 7,
                             .width = 100,
                             .reads = 2,
                             .writes = 2,
                             .parameters = Bytes{200},
                             .activation = Dtype::fp32});
  CHECK(w.vector.value == 5 * 700);
  CHECK(w.matrix.value == 0);
  CHECK(w.activations_read.value == 2 * 700 * 4);
  CHECK(w.activations_written.value == 2 * 700 * 4);
  CHECK(w.weights.value == 200);
}

TEST_CASE("an update by Adam is twelve operations per parameter") {
  CHECK(work(Vector{.kind = VectorKind::adam, .rows = 1000, .width = 1}).vector.value == 12'000);
}

TEST_CASE("attention's backward pass multiplies five times in place of two") {
  // 10 visible pairs of 4 tokens, 8 heads, 3 sequences: scores and the gradients of Q and K over 16 elements, those of
  // the probabilities and of V over 32.
  Attention a = attention(3, 4, 0, 8, 8, 16, 32);
  a.backward = true;
  const Work w = work(a);
  CHECK(w.matrix.value == 2 * (3 * 16 + 2 * 32) * 10 * 8 * 3);
  CHECK(w.vector.value == 2 * cost::kSoftmaxFlops * 10 * 8 * 3);
  // Of every token and head Q, the result and its gradient; written are the gradients of Q, K and V.
  CHECK(w.activations_read.value == 3 * 4 * 8 * (16 + 2 * 32) * 2);
  CHECK(w.activations_written.value == 3 * 4 * 8 * (16 + 16 + 32) * 2);
}

TEST_CASE("a score takes the operations of a softmax") { CHECK(cost::kSoftmaxFlops == 5); }

TEST_CASE("a gather reads the rows it picks and nothing else of the table") {
  const model::StoredFormat int8 = {.bits = 8, .bits_per_row = 16, .dequant_flops = 2};
  const Work w = work(Gather{.rows = 5, .width = 100, .table = &int8});
  CHECK(w.weights.value == 5 * (100 + 2));
  CHECK(w.vector.value == 2 * 500);
  CHECK(w.activations_written.value == 5 * 100 * 2);
}

TEST_CASE("a copy moves elements at both types and converts them when the sizes differ") {
  const Work same = work(Copy{.read_elements = 100, .write_elements = 100, .from_cache = true, .to_cache = true});
  CHECK(same.kv_read.value == 200);
  CHECK(same.kv_written.value == 200);
  CHECK(same.vector.value == 0);
  const Work narrow = work(
      Copy{.read_elements = 100, .write_elements = 100, .to = model::element_format(Dtype::int4), .to_cache = true});
  CHECK(narrow.activations_read.value == 200);
  CHECK(narrow.kv_written.value == 50);
  CHECK(narrow.vector.value == 200);
}

TEST_CASE("a narrower cache is unpacked with two operations per value read") {
  graph::Attention a = attention(3, 1, 9, 4, 2, 8, 8);
  const double softmax = 3 * 10 * 4 * cost::kSoftmaxFlops;
  CHECK(work(a).vector.value == softmax);
  a.cached = {model::element_format(Dtype::int8), model::element_format(Dtype::int8)};
  CHECK(work(a).kv_read.value == 3 * 10 * 2 * 16);
  CHECK(work(a).vector.value == softmax + 2 * (3 * 10 * 2 * 16));
  Gemm scores{
      .m = 1, .n = 10, .k = 8, .batch = 6, .cached_operand = true, .cached = model::element_format(Dtype::int4)};
  CHECK(work(scores).vector.value == 2 * 10 * 8 * 6);
  scores.cached = model::element_format(Dtype::fp16);
  CHECK(work(scores).vector.value == 0);
}

TEST_CASE("works add up and scale number by number") {
  const model::StoredFormat int8 = {.bits = 8, .dequant_flops = 1};
  Work w = work(Gemm{.m = 3, .n = 5, .k = 7, .weights = &int8, .bias = true});
  w += work(attention(1, 2, 0, 2, 1, 4, 4));
  w += work(Copy{.read_elements = 9, .write_elements = 9, .to_cache = true});
  const Work thrice = w * 3;
  CHECK(thrice.matrix.value == 3 * w.matrix.value);
  CHECK(thrice.vector.value == 3 * w.vector.value);
  CHECK(thrice.bytes().value == 3 * w.bytes().value);
  CHECK(w.matrix.value == 2 * 105 + 2 * 3 * 8 * 2);
}

TEST_CASE("overhead asks nothing of the device") {
  const Work w = work(OpBody(graph::Overhead{}));
  CHECK(w.bytes().value == 0);
  CHECK(w.network.value == 0);
  CHECK((w.matrix + w.vector).value == 0);
}

}  // namespace llmperf::work_test
