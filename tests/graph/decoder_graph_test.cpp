#include "graph/decoder_graph.h"

#include <algorithm>
#include <string>

#include "catch.h"
#include "graph/random_decoder.h"

namespace llmperf::decoder_graph_test {

using graph::Execution;
using graph::Gemm;
using graph::Graph;
using graph::Op;
using graph::Part;
using graph::SequenceGroup;

namespace {

Execution execution(const model::Decoder& m, const char* options = "all") {
  Execution e;
  e.model = &m;
  e.weights = model::uniform_layout(m, model::parse_weight_scheme("bf16"));
  e.runtime = hardware::parse_runtime_options(options);
  return e;
}

Graph step(const Execution& e, const std::vector<SequenceGroup>& groups, Part part = Part::all) {
  Graph graph;
  graph::build_step(e, groups, part, graph);
  return graph;
}

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> result;
  for (const Op& op : graph) result.emplace_back(op.name);
  return result;
}

Op find(const Graph& graph, std::string_view name) {
  const auto found = std::find_if(graph.begin(), graph.end(), [&](const Op& op) { return op.name == name; });
  INFO(name);
  REQUIRE(found != graph.end());
  return *found;
}
// By value: the graph is often a temporary.
template <class Body>
Body body(const Graph& graph, std::string_view name) {
  return std::get<Body>(find(graph, name).body);
}

// FLOPs of the graph's GEMMs and fused attention as an integer: exact, whatever the order of the ops.
std::int64_t matrix_flops(const Graph& graph, int layer_kind) {
  std::int64_t sum = 0;
  for (const Op& op : graph) {
    if (layer_kind >= 0 && op.layer_kind != layer_kind) continue;
    if (const auto* g = std::get_if<Gemm>(&op.body)) sum += 2 * g->m * g->n * g->k * g->batch * op.count;
    if (const auto* a = std::get_if<graph::Attention>(&op.body)) {
      for (std::int64_t i = 1; i <= a->q_tokens; ++i) {
        const std::int64_t window = a->window.value_or(INT64_MAX / a->pool);
        const std::int64_t seen = std::min(a->context + i, window * a->pool);
        sum += 2 * (a->chunked ? (a->context + i - 1) % window + 1 : seen) * (a->qk_dim + a->v_dim) * a->heads *
               a->sequences * op.count / a->pool;
      }
    }
  }
  return sum;
}

std::int64_t executions(const Graph& graph, const std::vector<std::string>& of) {
  std::int64_t sum = 0;
  for (const Op& op : graph) {
    if (std::find(of.begin(), of.end(), op.name) != of.end()) sum += op.count;
  }
  return sum;
}

// Multi-head attention, an MLP of 4 h without a gate, two norms.
model::Decoder gpt(std::int64_t hidden, std::int64_t heads, std::int64_t layers) {
  model::Decoder m;
  m.hidden = hidden;
  m.vocab = 1000;
  m.norm = model::Norm::layer;
  model::Layer layer;
  layer.attention.heads = layer.attention.kv_heads = heads;
  layer.attention.head_dim = layer.attention.v_head_dim = hidden / heads;
  layer.feed_forward.intermediate = 4 * hidden;
  layer.feed_forward.gated = false;
  for (std::int64_t i = 0; i < layers; ++i) m.add_layer(layer);
  return m;
}

}  // namespace

TEST_CASE("a step is listed in execution order, fused as the runtime fuses it") {
  const model::Decoder m = model::load_decoder("llama-2-7b");
  CHECK(names(step(execution(m), {{1, 512, 0}})) ==
        std::vector<std::string>{"embed", "input_norm", "qkv_proj", "rope", "kv_write", "attention", "o_proj",
                                 "attention_add_norm", "gate_up_proj", "activation", "down_proj", "mlp_add_norm",
                                 "lm_head", "sampling"});
  CHECK(names(step(execution(m, "none"), {{1, 1, 512}})) ==
        std::vector<std::string>{"embed",     "input_norm", "q_proj",       "k_proj",     "v_proj",
                                 "rope_q",    "rope_k",     "kv_write",     "kv_concat",  "scores",
                                 "mask",      "softmax",    "weighted_sum", "o_proj",     "attention_add",
                                 "mlp_norm",  "gate_proj",  "up_proj",      "activation", "multiply_gate",
                                 "down_proj", "mlp_add",    "next_norm",    "lm_head",    "sampling"});
}

TEST_CASE("a checkpoint that holds q, k and v as one matrix is not split") {
  const model::Decoder m = model::load_decoder("qwen-7b");
  CHECK(executions(step(execution(m, "none"), {{1, 8, 0}}), {"qkv_proj"}) == 32);
}

TEST_CASE("layers are counted, not repeated, and projections have the model's shapes") {
  const model::Decoder m = model::load_decoder("llama-3-8b");  // 32 layers, hidden 4096, 32 and 8 heads of 128
  const Graph graph = step(execution(m), {{2, 100, 0}});
  CHECK(find(graph, "qkv_proj").count == 32);
  const Gemm qkv = body<Gemm>(graph, "qkv_proj");
  CHECK(qkv.m == 200);
  CHECK(qkv.n == 4096 + 2 * 1024);
  CHECK(qkv.k == 4096);
  CHECK(body<Gemm>(graph, "gate_up_proj").n == 2 * 14336);
  CHECK(body<Gemm>(graph, "down_proj").k == 14336);
}

TEST_CASE("the head runs on the last token of each sequence, or on every token") {
  const model::Decoder m = model::load_decoder("llama-3-8b");
  CHECK(body<Gemm>(step(execution(m), {{2, 100, 0}}), "lm_head").m == 2);
  CHECK(body<Gemm>(step(execution(m, "all,no_last_token_logits"), {{2, 100, 0}}), "lm_head").m == 200);
}

TEST_CASE("sequence groups share the linear ops and have an attention each") {
  const model::Decoder m = model::load_decoder("llama-3-8b");
  const Graph graph = step(execution(m), {{1, 512, 0}, {8, 1, 100}});
  CHECK(body<Gemm>(graph, "qkv_proj").m == 520);
  CHECK(body<Gemm>(graph, "lm_head").m == 9);
  CHECK(std::count_if(graph.begin(), graph.end(), [](const Op& op) { return op.name == "attention"; }) == 2);
}

TEST_CASE("a pre-norm model of L layers has 2 L adds and 2 L + 1 norms, fused or not") {
  const model::Decoder m = model::load_decoder("qwen-7b");  // 32 layers
  for (const char* options : {"all", "none", "all,no_fused_add_norm"}) {
    const Graph graph = step(execution(m, options), {{1, 8, 0}});
    CHECK(executions(graph, {"attention_add", "mlp_add", "attention_add_norm", "mlp_add_norm"}) == 64);
    CHECK(executions(graph, {"input_norm", "mlp_norm", "next_norm", "attention_add_norm", "mlp_add_norm"}) == 65);
  }
}

TEST_CASE("parallel blocks have one norm and one add of three tensors per layer") {
  const model::Decoder m = model::load_decoder("phi-2");  // 32 layers
  const Graph graph = step(execution(m, "none"), {{1, 8, 0}});
  CHECK(executions(graph, {"input_norm", "next_norm"}) == 33);
  CHECK(executions(graph, {"attention_add", "mlp_add"}) == 32);
  CHECK(body<graph::Vector>(graph, "mlp_add").reads == 3);
}

TEST_CASE("naive attention repeats K and V to the query heads, only when they are fewer") {
  const model::Decoder gqa = model::load_decoder("llama-3-8b");
  const auto copy = body<graph::Copy>(step(execution(gqa, "none"), {{1, 1, 99}}), "repeat_kv");
  CHECK(copy.read_elements == 100.0 * 8 * 256);
  CHECK(copy.write_elements == 100.0 * 32 * 256);
  const model::Decoder mha = model::load_decoder("qwen-7b");
  CHECK(executions(step(execution(mha, "none"), {{1, 1, 99}}), {"repeat_kv"}) == 0);
}

TEST_CASE("repeated_kv copies K and V to the query heads before a fused kernel, which reads the copy") {
  const model::Decoder gqa = model::load_decoder("llama-3-8b");  // 32 heads, 8 KV heads of 128
  const Graph graph = step(execution(gqa, "all,repeated_kv"), {{1, 1, 99}});
  const auto copy = body<graph::Copy>(graph, "repeat_kv");
  CHECK(copy.read_elements == 100.0 * 8 * 256);
  CHECK(copy.write_elements == 100.0 * 32 * 256);
  const auto attention = body<graph::Attention>(graph, "attention");
  CHECK(attention.kv_heads == 32);
  const model::Decoder mha = model::load_decoder("qwen-7b");
  CHECK(executions(step(execution(mha, "all,repeated_kv"), {{1, 1, 99}}), {"repeat_kv"}) == 0);
  const model::Decoder latent = model::load_decoder("deepseek-v2-lite");
  CHECK(executions(step(execution(latent, "all,repeated_kv"), {{1, 1, 99}}), {"repeat_kv"}) == 0);
}

TEST_CASE("soft-capped scores are an op of their own in naive attention") {
  const model::Decoder m = model::load_decoder("gemma-2-2b");  // 26 layers, 8 heads
  const Graph graph = step(execution(m, "none"), {{1, 10, 0}});
  CHECK(executions(graph, {"softcap"}) == 26);
  CHECK(body<graph::Vector>(graph, "softcap").rows == 80);
  CHECK(body<graph::Vector>(graph, "softcap").width == 10);
  CHECK(executions(step(execution(m), {{1, 10, 0}}), {"softcap"}) == 0);
}

TEST_CASE("naive attention over a window computes the keys that the new tokens may see") {
  const model::Decoder m = model::load_decoder("mistral-7b-v0.1");  // window 4096
  CHECK(body<Gemm>(step(execution(m, "none"), {{1, 1, 99}}), "scores").n == 100);
  CHECK(body<Gemm>(step(execution(m, "none"), {{1, 1, 9000}}), "scores").n == 4096);
  CHECK(body<Gemm>(step(execution(m, "none"), {{1, 10, 9000}}), "scores").n == 4105);
}

TEST_CASE("experts run on every routed copy and read the experts that are reached") {
  const model::Decoder m = model::load_decoder("mixtral-8x7b");  // 8 experts, 2 per token
  const Graph one = step(execution(m), {{1, 1, 10}});
  CHECK(body<Gemm>(one, "experts_down").m == 2);
  CHECK(body<Gemm>(one, "experts_down").weight_matrices == Approx(2).epsilon(1e-14));
  graph::Execution even = execution(m);
  even.routing.exponent = 0;
  CHECK(body<Gemm>(step(even, {{2, 1, 10}}), "experts_down").weight_matrices == Approx(8 - 8 * 0.5625));
  even.routing.balanced = true;
  CHECK(body<Gemm>(step(even, {{3, 1, 10}}), "experts_down").weight_matrices == 6);
  CHECK(body<Gemm>(step(even, {{16, 1, 10}}), "experts_down").row_tiles == std::array<double, 4>{8, 8, 8, 8});
  CHECK(body<Gemm>(step(execution(m), {{1, 4096, 0}}), "experts_down").weight_matrices == Approx(8));
}

TEST_CASE("what is before latent attention is one kernel of new tokens, where the runtime has it") {
  const model::Decoder m = model::load_decoder("deepseek-v3");
  const auto launches = [&](const char* options, const SequenceGroup& group) {
    std::int64_t sum = 0;
    for (const Op& op : step(execution(m, options), {group})) {
      if (op.layer_kind != 0 || op.tag == graph::Tag::attention) continue;
      if (op.tag >= graph::Tag::attention_gather && op.tag <= graph::Tag::q_absorb) sum += op.launches * op.count;
    }
    return sum / 3;  // dense layers
  };
  const char* const kFused = "all,fused_mla_prolog";
  // Three products, two norms, rope, the cache and the queries' way into the latent space.
  CHECK(launches("all", {8, 1, 1000}) == 8);
  CHECK(launches(kFused, {8, 1, 1000}) == 1);
  CHECK(launches(kFused, {8, 4, 1000}) == 1);
  CHECK(launches(kFused, {8, 1000, 0}) == launches("all", {8, 1000, 0}));
  CHECK(matrix_flops(step(execution(m, kFused), {{8, 1, 1000}}), -1) ==
        matrix_flops(step(execution(m), {{8, 1, 1000}}), -1));
}

TEST_CASE("both latents may be one product, and a shared expert one more of the routed ones") {
  const model::Decoder m = model::load_decoder("deepseek-v3");  // latents of 1,536 and 512 + 64; 8 of 256 experts
  const std::vector<Op> apart = step(execution(m), {{4, 1, 1000}});
  const std::vector<Op> joined = step(execution(m, "all,fused_qkv_a,fused_shared_expert"), {{4, 1, 1000}});
  CHECK(body<Gemm>(joined, "q_a_proj").n == 1536 + 576);
  CHECK(executions(joined, {"kv_a_proj"}) == 0);
  CHECK(matrix_flops(joined, -1) == matrix_flops(apart, -1));
  // Three dense layers have a feed-forward part of their own; behind them nine rows of each token go to experts.
  CHECK(executions(joined, {"down_proj"}) == 3);
  CHECK(executions(apart, {"down_proj"}) == 61);
  CHECK(executions(joined, {"add_shared"}) == 0);
  CHECK(body<Gemm>(joined, "experts_down").m == 9 * 4);
  CHECK(body<Gemm>(joined, "experts_down").weight_matrices == body<Gemm>(apart, "experts_down").weight_matrices + 1);
  CHECK(body<Gemm>(joined, "experts_down").row_tiles[0] == body<Gemm>(apart, "experts_down").row_tiles[0] + 1);
  // Where experts are dealt out, the shared one has products of its own.
  Execution dealt = execution(m, "all,fused_shared_expert");
  dealt.plan = {.tensor = 8, .expert = 8};
  CHECK(executions(step(dealt, {{4, 1, 1000}}), {"down_proj"}) == 61);
}

TEST_CASE("latent attention is absorbed as long as that takes fewer FLOPs per cached token") {
  const model::Decoder m = model::load_decoder("deepseek-v2-lite");  // latent 512 + 64, heads of 128 + 64 and 128
  const auto& a = m.kinds[0].attention;
  // Per head and cached token: q (512 + 64 + 512) absorbed, 512 (128 + 128) + q (192 + 128) expanded: equal at q =
  // 170.67.
  CHECK(graph::latent_absorbed(a, {1, 170, 1000}));
  CHECK_FALSE(graph::latent_absorbed(a, {1, 171, 1000}));
  CHECK_FALSE(graph::latent_absorbed(a, {1, 1, 0}));  // a prompt expands its own latents
  CHECK(executions(step(execution(m), {{1, 170, 1000}}), {"q_absorb"}) == 27);
  CHECK(executions(step(execution(m), {{1, 170, 1000}}), {"kv_b_proj"}) == 0);
  CHECK(executions(step(execution(m), {{1, 171, 1000}}), {"q_absorb"}) == 0);
  CHECK(executions(step(execution(m), {{1, 171, 1000}}), {"kv_b_proj"}) == 27);
}

TEST_CASE("a GPT block takes 24 b s h^2 + 4 b s^2 h FLOPs exactly, and the head 2 b s h v") {
  test::Random random(1);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t heads = random.in(1, 16);
    const std::int64_t h = heads * random.in(1, 64);
    const std::int64_t layers = random.in(1, 8);
    const std::int64_t b = random.in(1, 9);
    const std::int64_t s = random.in(1, 700);
    const model::Decoder m = gpt(h, heads, layers);
    const Graph graph = step(execution(m, "none"), {{b, s, 0}});
    const std::int64_t block = 24 * b * s * h * h + 4 * b * s * s * h;
    CHECK(matrix_flops(graph, 0) == layers * block);
    CHECK(matrix_flops(graph, -1) == layers * block + 2 * b * s * h * m.vocab);
  }
}

TEST_CASE("fusing changes no matrix FLOPs") {
  test::Random random(2);
  for (int i = 0; i < 200; ++i) {
    const model::Decoder m = test::random_decoder(random);
    Execution fused = test::random_execution(random, m);
    fused.runtime.allocated_kv = 0;  // a cache in place would be read to its end
    Execution split = fused;
    fused.runtime.fused_qkv = fused.runtime.fused_gate_up = fused.runtime.fused_add_norm = true;
    fused.runtime.fused_rope = fused.runtime.fused_activation = fused.runtime.static_kv = true;
    split.runtime.fused_qkv = split.runtime.fused_gate_up = split.runtime.fused_add_norm = false;
    split.runtime.fused_rope = split.runtime.fused_activation = split.runtime.static_kv = false;
    const std::vector<SequenceGroup> groups = {{random.in(1, 4), random.in(1, 300), 0},
                                               {random.in(1, 4), 1, random.in(1, 500)}};
    CHECK(matrix_flops(step(fused, groups), -1) == matrix_flops(step(split, groups), -1));
  }
}

TEST_CASE("the context-dependent part is exactly the ops that are flagged so, in the same order") {
  test::Random random(3);
  for (int i = 0; i < 300; ++i) {
    const model::Decoder m = test::random_decoder(random);
    const Execution e = test::random_execution(random, m);
    const std::vector<SequenceGroup> groups = {{random.in(1, 4), random.in(1, 300), random.in(0, 1) * 77},
                                               {random.in(1, 4), 1, random.in(1, 500)}};
    Graph flagged = step(e, groups);
    flagged.erase(std::remove_if(flagged.begin(), flagged.end(), [](const Op& op) { return !op.grows_with_context; }),
                  flagged.end());
    const Graph part = step(e, groups, Part::context_dependent);
    REQUIRE(names(part) == names(flagged));
    CHECK(matrix_flops(part, -1) == matrix_flops(flagged, -1));
    for (std::size_t k = 0; k < part.size(); ++k) {
      CHECK(part[k].count == flagged[k].count);
      CHECK(part[k].layer_kind == flagged[k].layer_kind);
    }
  }
}

TEST_CASE("ops that are not flagged do not change with the context") {
  test::Random random(4);
  for (int i = 0; i < 300; ++i) {
    const model::Decoder m = test::random_decoder(random);
    const Execution e = test::random_execution(random, m);
    const std::int64_t batch = random.in(1, 5);
    const Graph near = step(e, {{batch, 1, 1}});
    const Graph far = step(e, {{batch, 1, 5000}});
    REQUIRE(names(near) == names(far));
    for (std::size_t k = 0; k < near.size(); ++k) {
      if (near[k].grows_with_context) continue;
      CHECK(matrix_flops({near[k]}, -1) == matrix_flops({far[k]}, -1));
      if (const auto* v = std::get_if<graph::Vector>(&near[k].body)) {
        CHECK(v->rows * v->width ==
              std::get<graph::Vector>(far[k].body).rows * std::get<graph::Vector>(far[k].body).width);
      }
    }
  }
}

}  // namespace llmperf::decoder_graph_test
