// Adapters beside the products of a step that serves requests.
#include <cmath>
#include <map>

#include "catch.h"
#include "cost/memory.h"
#include "cost/work.h"
#include "graph/decoder_graph.h"
#include "model/decoder.h"

namespace llmperf::graph::served_adapters_test {
namespace {

// Ops point into what they are made from.
struct Step {
  Step(const model::Decoder& m, const Adapters& adapters, const Plan& plan, const SequenceGroup& group) {
    e.model = &m;
    e.weights = model::uniform_layout(m, model::parse_weight_scheme("bf16"));
    e.plan = plan;
    e.adapters = adapters;
    build_step(e, {&group, 1}, Part::all, graph);
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  Execution e;
  Graph graph;
};

TEST_CASE("a product with adapters is followed by two, one down to their rank and one up that adds to its result") {
  // Llama-3-8B: 4096 wide, 32 + 2 x 8 heads of 128, 14336. Beside qkv (three), o, gate and up (two) and down.
  const model::Decoder m = model::load_decoder("llama-3-8b");
  const Step s(m, {.rank = 16, .mlp = true, .served = 8}, {}, {32, 1, 500});
  std::map<std::pair<std::int64_t, std::int64_t>, int> down;
  std::map<std::pair<std::int64_t, std::int64_t>, int> up;
  // Eight alike among 32 requests: 8 (1 - (7/8)^32).
  const double used = 8 * (1 - std::pow(7.0 / 8, 32));
  for (std::size_t i = 0; i < s.graph.size(); ++i) {
    const Op& op = s.graph[i];
    if (op.tag != Tag::adapter_down && op.tag != Tag::adapter_up) continue;
    const Gemm& g = std::get<Gemm>(op.body);
    ++(op.tag == Tag::adapter_down ? down : up)[{g.n, g.k}];
    CHECK(g.m == 32);
    CHECK(g.weight_matrices == Approx(used));
    CHECK(op.count == 32);
    CHECK(op.launches == 1);
    CHECK(op.scope == Scope::sequences);
    if (op.tag == Tag::adapter_up) CHECK(s.graph[i - 1].tag == Tag::adapter_down);
    if (op.tag == Tag::adapter_down) CHECK(std::get<Gemm>(s.graph[i - 1].body).k == g.k);
  }
  CHECK(down == std::map<std::pair<std::int64_t, std::int64_t>, int>{
                    {{48, 4096}, 1}, {{16, 4096}, 1}, {{32, 4096}, 1}, {{16, 14336}, 1}});
  CHECK(up == std::map<std::pair<std::int64_t, std::int64_t>, int>{{{6144, 16}, 1}, {{4096, 16}, 2}, {{28672, 16}, 1}});
  // On q, k, v and o alone, and none of the head.
  int products = 0;
  const Step attention(m, {.rank = 16}, {}, {32, 1, 500});
  for (const Op& op : attention.graph) {
    products += op.tag == Tag::adapter_down ? 1 : 0;
  }
  CHECK(products == 2);
}

TEST_CASE("an adapter's product reads those that are used, and the result that it adds to") {
  const model::Decoder m = model::load_decoder("llama-3-8b");
  const Step s(m, {.rank = 16, .served = 1}, {}, {4, 1, 10});
  for (const Op& op : s.graph) {
    if (op.tag != Tag::adapter_up || std::get<Gemm>(op.body).n != 6144) continue;
    const cost::Work work = cost::work_of(op, {});
    CHECK(work.weights.value == Approx(2.0 * 6144 * 16));
    CHECK(work.matrix.value == Approx(2.0 * 4 * 6144 * 16));
    CHECK(work.activations_written.value == Approx(2.0 * 4 * 6144));
    CHECK(work.activations_read.value == Approx(2.0 * 4 * (6144 + 16)));
  }
}

TEST_CASE("all adapters are in memory, A whole where a matrix is divided by outputs and B where it is by inputs") {
  const model::Decoder m = model::load_decoder("llama-3-8b");
  const auto bytes = [&](const Adapters& adapters, const Plan& plan, std::int64_t stage = 0) {
    const Step s(m, adapters, plan, {1, 1, 10});
    return cost::adapter_weight_bytes(s.e, stage).value;
  };
  // Rank times n + k of q, k, v, o and of gate, up, down; 32 layers, 16 bits.
  const double attention = (4096 + 4096) + 2 * (1024 + 4096) + (4096 + 4096);
  const double mlp = 3 * (14336 + 4096);
  CHECK(bytes({.rank = 16}, {}) == Approx(32 * 16 * attention * 2));
  CHECK(bytes({.rank = 16, .mlp = true, .served = 8}, {}) == Approx(8 * 32 * 16 * (attention + mlp) * 2));
  CHECK(bytes({}, {}) == 0);
  // Of two devices each has half of every n or k that is divided; the 4096 is whole.
  const double half = (2048 + 4096) + 2 * (512 + 4096) + (4096 + 2048);
  CHECK(bytes({.rank = 16}, {.tensor = 2}) == Approx(32 * 16 * half * 2));
  CHECK(bytes({.rank = 16}, {.pipeline = 2}, 1) == Approx(16 * 16 * attention * 2));
}

TEST_CASE("an adapter of experts has matrices for each, and rows reach no more of them than they are") {
  const model::Decoder m = model::load_decoder("mixtral-8x7b");
  const auto matrices = [&](std::int64_t served, std::int64_t requests) {
    const Step s(m, {.rank = 8, .attention = false, .mlp = true, .served = served}, {}, {requests, 1, 10});
    double found = 0;
    for (const Op& op : s.graph) {
      if (op.tag == Tag::adapter_down) found = std::get<Gemm>(op.body).weight_matrices;
    }
    return found;
  };
  CHECK(matrices(1, 1) == Approx(2));     // a token's two experts, of one adapter
  CHECK(matrices(100, 1) == Approx(2));   // likewise
  CHECK(matrices(100, 8) == Approx(16));  // 16 rows, each of another adapter and expert for all that is known
  CHECK(matrices(4, 4000) == Approx(4 * 8));
}

}  // namespace
}  // namespace llmperf::graph::served_adapters_test
