// The published mapper's own figures (PJLAB-CHIP/LLMPerf-for-TiledArch, June 2024, default configuration): a layer of
// Llama-7B over 4096 tokens, in ms.
#include "catch.h"
#include "mapper/tile/published.h"
#include "tile_machine.h"

namespace llmperf::mapper::tile::tile_published_test {
namespace {

struct PublishedOp {
  std::string_view name;
  PublishedTime time;
  int count = 1;
};
PublishedTime product(std::int64_t m, std::int64_t n, std::int64_t k, double finish_ops = 0) {
  return published_time(tx8(), GemmProblem{.m = m, .n = n, .k = k, .finish_ops = finish_ops});
}
PublishedTime vector(std::int64_t rows, std::int64_t width, double operands) {
  return published_time(tx8(), VectorProblem{.rows = rows, .width = width, .in_bytes = 2 * operands});
}
// The op list of a decoder layer with multi-head attention and a gated MLP.
std::vector<PublishedOp> published_layer(std::int64_t tokens, std::int64_t hidden, std::int64_t ffn,
                                         std::int64_t heads) {
  const VectorProblem norm{.rows = tokens, .width = hidden, .shared_bytes = 2, .ops = 4, .row_wise = true};
  const AttentionProblem attention{.kv_heads = heads, .queries = tokens, .keys = tokens, .qk_dim = hidden / heads};
  return {{"RMSNorm", published_time(tx8(), norm), 2},
          {"QKV", product(tokens, 3 * hidden, hidden)},
          {"flash attention", published_time(tx8(), attention)},
          {"output", product(tokens, hidden, hidden)},
          {"residual", vector(tokens, hidden, 2), 2},
          {"up and SiLU", product(tokens, ffn, hidden, 4)},
          {"gate", product(tokens, ffn, hidden)},
          {"multiply", vector(tokens, ffn, 2)},
          {"down", product(tokens, hidden, ffn)}};
}

TEST_CASE("the published formulas give the published times") {
  const std::vector<PublishedOp> layer = published_layer(4096, 4096, 11008, 32);
  const std::pair<double, double> expected[] = {{0.332650, 20.17}, {3.301525, 97.57}, {2.200923, 99.53},
                                                {1.104042, 97.26}, {0.336862, 4.98},  {3.140086, 97.64},
                                                {2.959731, 97.50}, {0.886790, 5.08},  {2.925981, 98.62}};
  REQUIRE(layer.size() == 9);
  double total = 0;
  double compute = 0;
  for (std::size_t i = 0; i < layer.size(); ++i) {
    INFO(layer[i].name);
    CHECK(layer[i].time.seconds * 1e3 == Approx(expected[i].first).margin(1e-6));
    CHECK(layer[i].time.utilisation() * 100 == Approx(expected[i].second).margin(0.006));
    total += layer[i].count * layer[i].time.seconds;
    compute += layer[i].count * layer[i].time.compute;
  }
  CHECK(32e3 * total == Approx(571.459289).margin(1e-5));
  CHECK(compute / total * 100 == Approx(86.995).margin(0.001));
}

TEST_CASE("published products keep the inputs on the tiles and k in the slices that were printed") {
  const PublishedTime qkv = product(4096, 12288, 4096);
  CHECK((qkv.splits[0] == 1 && qkv.splits[1] == 1 && qkv.splits[2] == 64 && !qkv.transposed));
  const PublishedTime down = product(4096, 4096, 11008);
  CHECK((down.splits[0] == 1 && down.splits[1] == 1 && down.splits[2] == 88 && !down.transposed));
}

}  // namespace
}  // namespace llmperf::mapper::tile::tile_published_test
