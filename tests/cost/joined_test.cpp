// RuntimeOptions::joined_vectors: norms, activations, rope and residual adds inside the products beside them.
#include <algorithm>
#include <string>

#include "catch.h"
#include "cost/work.h"
#include "graph/decoder_graph.h"
#include "graph/random_decoder.h"
#include "graph/video_cases.h"

namespace llmperf::graph::joined_test {
namespace {

Execution execution(const model::Decoder& m, const char* options) {
  Execution e;
  e.model = &m;
  e.weights = model::uniform_layout(m, model::parse_weight_scheme("bf16"));
  e.runtime = hardware::parse_runtime_options(options);
  return e;
}
Graph step(const Execution& e, const SequenceGroup& group) {
  Graph graph;
  build_step(e, {&group, 1}, Part::all, graph);
  return graph;
}
std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> result;
  for (const Op& op : graph) result.emplace_back(op.name);
  return result;
}
const Gemm& product(const Graph& graph, std::string_view name) {
  const auto found = std::find_if(graph.begin(), graph.end(), [&](const Op& op) { return op.name == name; });
  REQUIRE(found != graph.end());
  return std::get<Gemm>(found->body);
}
cost::Work work(const Graph& graph) {
  cost::Work sum;
  for (const Op& op : graph) sum += cost::work_of(op, {}) * static_cast<double>(op.count);
  return sum;
}

constexpr const char* kJoined = "all,joined_vectors";

}  // namespace

TEST_CASE("a layer with joined vectors is four products and attention") {
  const model::Decoder m = model::load_decoder("llama-2-7b");
  CHECK(names(step(execution(m, kJoined), {1, 512, 0})) ==
        std::vector<std::string>{"embed", "qkv_proj", "attention", "o_proj", "gate_up_proj", "down_proj", "lm_head",
                                 "sampling"});
}

TEST_CASE("a joined product moves its inputs, what it is joined with, and its results once") {
  const model::Decoder m = model::load_decoder("llama-2-7b");  // 4096 wide, 32 heads of 128, 11008 in the MLP
  const Execution e = execution(m, kJoined);                   // the ops point into it
  const Graph graph = step(e, {1, 512, 0});
  const auto of = [&](std::string_view name) {
    return cost::work_of({.name = name, .body = product(graph, name)}, {});
  };
  const double tokens = 512;
  const cost::Work qkv = of("qkv_proj");
  CHECK(qkv.activations_read.value == tokens * 4096 * 2);
  CHECK(qkv.activations_written.value == tokens * 4096 * 2);  // queries
  CHECK(qkv.kv_written.value == tokens * 8192 * 2);
  CHECK(qkv.weights.value == 4096.0 * 12288 * 2 + 4096 * 2);         // and those of the norm
  CHECK(qkv.vector.value == tokens * 4096 * 4 + tokens * 8192 * 3);  // norm, rope of queries and keys
  const cost::Work o = of("o_proj");
  CHECK(o.activations_read.value == 2 * tokens * 4096 * 2);  // and the residual
  CHECK(o.activations_written.value == tokens * 4096 * 2);
  CHECK(o.vector.value == tokens * 4096);
  const cost::Work up = of("gate_up_proj");
  CHECK(up.activations_written.value == tokens * 11008 * 2);
  CHECK(up.vector.value == tokens * 4096 * 4 + tokens * 11008 * 5);
}

TEST_CASE("joining changes no operation, only where it runs") {
  test::Random random(11);
  for (int i = 0; i < 60; ++i) {
    const model::Decoder m = test::random_decoder(random);
    const SequenceGroup group{random.in(1, 3), random.chance() ? 1 : random.in(2, 300), random.in(0, 500)};
    // The last norm is of the head's rows where it is joined: all of them, then.
    const cost::Work apart = work(step(execution(m, "all,no_last_token_logits"), group));
    const cost::Work joined = work(step(execution(m, "all,no_last_token_logits,joined_vectors"), group));
    INFO(i);
    CHECK(joined.matrix.value == Approx(apart.matrix.value));
    // The weights of a norm are read by each product that does it, nothing else is read or written more often.
    CHECK((joined.bytes() - joined.weights).value <= (apart.bytes() - apart.weights).value * (1 + 1e-12));
    // A norm that several products read is done by each of them.
    CHECK(joined.vector.value >= apart.vector.value * (1 - 1e-12));
  }
}

TEST_CASE("a norm that something other than a product reads stands by itself") {
  const model::Decoder m = model::load_decoder("mixtral-8x7b");
  const Graph graph = step(execution(m, kJoined), {1, 64, 0});
  const std::vector<std::string> all = names(graph);
  const auto router = std::find(all.begin(), all.end(), "router");
  REQUIRE(router != all.end());
  CHECK(*(router - 1) == "mlp_norm");
  CHECK_FALSE(product(graph, "router").joined.input);
  CHECK(product(graph, "qkv_proj").joined.input == VectorKind::rms_norm);
}

TEST_CASE("products that read the same norm do it each") {
  const model::Decoder m = model::load_decoder("phi-2");  // attention and MLP side by side
  const Graph graph = step(execution(m, kJoined), {1, 64, 0});
  CHECK(product(graph, "qkv_proj").joined.input == VectorKind::layer_norm);
  CHECK(product(graph, "up_proj").joined.input == VectorKind::layer_norm);
  CHECK_FALSE(product(graph, "o_proj").joined.input);
  CHECK(product(graph, "down_proj").joined.reads == 2);  // attention's result and the residual
}

TEST_CASE("rope stays apart where queries and keys are normalised first") {
  const model::Decoder m = model::load_decoder("qwen3-8b");
  const std::vector<std::string> all = names(step(execution(m, kJoined), {1, 64, 0}));
  CHECK(std::count(all.begin(), all.end(), "rope") == 1);
  CHECK(std::count(all.begin(), all.end(), "kv_write") == 1);
}

TEST_CASE("training, chains of kernels and what is exchanged between devices keep vector work apart") {
  const model::Decoder m = model::load_decoder("llama-2-7b");
  Execution e = execution(m, kJoined);
  e.plan.tensor = 2;
  const Graph graph = step(e, {1, 512, 0});
  CHECK_FALSE(product(graph, "o_proj").joined.output);  // summed over the devices first
  CHECK(product(graph, "gate_up_proj").joined.output == VectorKind::gated_activation);
  e.training = true;
  CHECK(names(step(e, {1, 512, 0}))[2] == "input_norm");
}

TEST_CASE("a video block keeps only the norm of queries and keys and the rotation beside its products") {
  VideoCase c;
  c.execution.runtime = hardware::parse_runtime_options(kJoined, hardware::Workload::video);
  const Graph graph = c.step();
  for (const Op& op : graph) {
    const auto* v = std::get_if<Vector>(&op.body);
    if (v == nullptr || op.layer_kind == static_cast<int>(VideoLayer::outside)) continue;
    INFO(op.name);
    CHECK((op.name == "qk_norm" || op.name == "rope" || op.name == "modulate_vectors"));
  }
  CHECK(product(graph, "qkv_proj").joined.input == VectorKind::modulate);
  CHECK(product(graph, "mlp_up_proj").joined.output == VectorKind::activation);
  CHECK(product(graph, "mlp_down_proj").joined.output == VectorKind::gate_add);
  CHECK(product(graph, "mlp_down_proj").joined.reads == 1);
  CHECK(product(graph, "cross_proj").joined.output == VectorKind::add);
}

}  // namespace llmperf::graph::joined_test
