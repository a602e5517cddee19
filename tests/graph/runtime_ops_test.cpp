// What software stacks launch for the same step (hardware::Chains, static_kv, overlap_collectives): the optimisation
// ladder of Llama-2-70B in fp16 on 8 devices. 80 layers, hidden 8192, 64 heads and 8 KV heads of 128, MLP 28672,
// vocabulary 32000; so 8 heads, one KV head and 3584 columns of the MLP per device.
#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "catch.h"
#include "graph/decoder_graph.h"

namespace llmperf::runtime_ops_test {

using graph::Graph;
using graph::Op;
using graph::SequenceGroup;
using hardware::Chains;

namespace {

constexpr SequenceGroup kPrompts{4, 1024, 0};
constexpr SequenceGroup kDecode{4, 1, 1536};
constexpr double kTokens = 4 * 1024;

const model::Decoder& llama() {
  static const model::Decoder m = model::load_decoder("llama-2-70b");
  return m;
}

Graph step(const SequenceGroup& group, const char* options, Chains chains, std::int64_t allocated_kv = 0,
           std::int64_t tensor = 8) {
  static std::vector<std::unique_ptr<graph::Execution>> alive;  // ops point into it
  graph::Execution& e = *alive.emplace_back(std::make_unique<graph::Execution>());
  e.model = &llama();
  e.weights = model::uniform_layout(llama(), model::parse_weight_scheme("fp16", Dtype::fp16));
  e.kv.keys = e.kv.values = model::parse_kv_scheme("fp16");
  e.activations = Dtype::fp16;
  e.runtime = hardware::parse_runtime_options(options);
  e.runtime.chains = chains;
  e.runtime.allocated_kv = allocated_kv;
  e.plan.tensor = tensor;
  Graph graph;
  graph::build_step(e, {&group, 1}, graph::Part::all, graph);
  return graph;
}

const Op* find(const Graph& graph, std::string_view name) {
  const auto found = std::find_if(graph.begin(), graph.end(), [&](const Op& op) { return op.name == name; });
  return found == graph.end() ? nullptr : &*found;
}
Op get(const Graph& graph, std::string_view name) {
  const Op* op = find(graph, name);
  INFO(name);
  REQUIRE(op != nullptr);
  return *op;
}
template <class Body>
Body body(const Graph& graph, std::string_view name) {
  return std::get<Body>(get(graph, name).body);
}
// Read and written by one execution, without weights.
double bytes(const Graph& graph, std::string_view name) {
  const Op op = get(graph, name);
  if (const auto* v = std::get_if<graph::Vector>(&op.body)) {
    return (v->reads + v->writes) * static_cast<double>(v->rows * v->width) * bytes_per_element(v->activation);
  }
  const auto& c = std::get<graph::Copy>(op.body);
  return c.read_elements * bytes_per_element(c.from) + c.write_elements * bytes_per_element(c.to);
}

// Per layer.
std::int64_t sum(const Graph& graph, std::int32_t Op::*number) {
  std::int64_t all = 0;
  for (const Op& op : graph) {
    if (op.layer_kind >= 0) all += op.*number * op.count;
  }
  return all / 80;
}
std::int64_t launches(const Graph& graph) { return sum(graph, &Op::launches); }

// The ladder: flash attention comes with the fused rotary embedding.
const char* const kRungs[] = {
    "baseline",
    "static_kv",
    "static_kv+flash_attention+fused_rope",
    "static_kv+flash_attention+fused_rope+fused_add_rmsnorm",
    "static_kv+flash_attention+fused_rope+fused_add_rmsnorm+last_token_head",
    "static_kv+flash_attention+fused_rope+fused_add_rmsnorm+last_token_head+fused_qkv",
    "static_kv+flash_attention+fused_rope+fused_add_rmsnorm+last_token_head+fused_qkv+mc2",
};

}  // namespace

TEST_CASE("an eager framework launches 53, 53, 34, 18, 18, 19 and 19 kernels per layer on the rungs of the ladder") {
  // Baseline: two norms of 8 and their adds 18, q k v 3, rope 2 + 5 + 5, cache 2, repeated K and V 2, scores 1, scale
  // and mask 2, softmax 3, weighted sum 1, transpose 1, o 1, gate up down 3, activation 2, two all-reduces 2.
  const std::int64_t expected[] = {53, 53, 34, 18, 18, 19, 19};
  for (std::size_t i = 0; i < std::size(kRungs); ++i) {
    INFO(kRungs[i]);
    CHECK(launches(step(kDecode, kRungs[i], Chains::framework)) == expected[i]);
  }
  // A prompt has no cache to append to, and MC2 copies two weight matrices.
  CHECK(launches(step(kPrompts, "baseline", Chains::framework)) == 51);
  CHECK(launches(step(kPrompts, kRungs[6], Chains::framework)) == 21);
}

TEST_CASE("a compiler leaves 36, 36, 23, 17, 17, 16 and 16 kernels per layer") {
  // Norms of 3, rope 2 + 3 + 3, mask 1, softmax 2, one kernel for the activation, and one that splits q, k and v.
  const std::int64_t expected[] = {36, 36, 23, 17, 17, 16, 16};
  for (std::size_t i = 0; i < std::size(kRungs); ++i) {
    INFO(kRungs[i]);
    CHECK(launches(step(kDecode, kRungs[i], Chains::compiled)) == expected[i]);
  }
  CHECK(launches(step(kPrompts, kRungs[6], Chains::compiled)) == 16);  // which keeps transposed weights
}

TEST_CASE("one kernel per chain: as many launches as ops") {
  for (const char* rung : kRungs) {
    for (const SequenceGroup& group : {kPrompts, kDecode}) {
      for (const Op& op : step(group, rung, Chains::one_kernel)) {
        CHECK(op.launches == 1);
        CHECK(op.views == 0);
      }
    }
  }
}

TEST_CASE("an RMSNorm chain over 4 x 1024 tokens moves 1.2 GB, a fused one 0.13") {
  const double tensor = kTokens * 8192 * 2;  // 67.1 MB
  // Reads and writes: widen 1 + 2, square 2 + 2, mean 2, scale 2 + 2, narrow 2 + 1, weight 1 + 1.
  CHECK(bytes(step(kPrompts, "baseline", Chains::framework), "mlp_norm") == 18 * tensor);
  CHECK(18 * tensor == Approx(1.208e9).epsilon(1e-3));
  // Compiled: widen 1 + 2, square and mean 2, the rest 2 + 1.
  CHECK(bytes(step(kPrompts, "baseline", Chains::compiled), "mlp_norm") == 8 * tensor);
  CHECK(bytes(step(kPrompts, "fused_norm", Chains::framework), "mlp_norm") == 2 * tensor);
  CHECK(bytes(step(kPrompts, "baseline", Chains::one_kernel), "mlp_norm") == 2 * tensor);
  CHECK(bytes(step(kPrompts, "baseline", Chains::framework), "mlp_add") == 3 * tensor);
  CHECK(bytes(step(kPrompts, kRungs[3], Chains::framework), "mlp_add_norm") == 4 * tensor);
}

TEST_CASE("the norms of q and k are chains, too; LayerNorm is a kernel of every framework") {
  const model::Decoder qwen = model::load_decoder("qwen3-8b");
  const model::Decoder gpt = model::load_decoder("gpt-block");
  const auto launches_of = [](const model::Decoder& m, std::string_view name) {
    graph::Execution e;
    e.model = &m;
    e.weights = model::uniform_layout(m, model::parse_weight_scheme("bf16"));
    e.runtime = hardware::parse_runtime_options("none");
    e.runtime.chains = Chains::framework;
    Graph graph;
    graph::build_step(e, {&kPrompts, 1}, graph::Part::all, graph);
    return get(graph, name).launches;
  };
  CHECK(launches_of(qwen, "q_norm") == 8);
  CHECK(launches_of(qwen, "k_norm") == 8);
  CHECK(launches_of(gpt, "mlp_norm") == 1);
}

TEST_CASE("naive attention's chains move the scores 19 times and the mask twice") {
  const double scores = 4. * 8 * 1024 * 1024 * 2;
  const double mask = 4. * 1024 * 1024 * 2;
  const Graph graph = step(kPrompts, "static_kv", Chains::framework);
  // Scale 1 + 1, mask 1 + 1 and the mask itself; widen 1 + 2, softmax 2 + 2, narrow 2 + 1. Two products: 1 each.
  CHECK(bytes(graph, "mask") == Approx(4 * scores + mask).epsilon(1e-14));
  CHECK(bytes(graph, "softmax") == 10 * scores);
  const Graph compiled = step(kPrompts, "static_kv", Chains::compiled);
  CHECK(bytes(compiled, "mask") == Approx(3 * scores + mask).epsilon(1e-14));
  CHECK(bytes(compiled, "softmax") == 7 * scores);
  // Before the layers ten kernels read and write a mask in bytes.
  CHECK(get(graph, "mask_prepare").launches == 10);
  CHECK(get(graph, "mask_prepare").layer_kind == -1);
  CHECK(bytes(graph, "mask_prepare") == 10 * mask);
}

TEST_CASE("rope as a chain moves 10 times q and k, compiled 8 times, and looks up its tables in every layer") {
  const double q = kTokens * 1024 * 2;
  CHECK(bytes(step(kPrompts, "none", Chains::framework), "rope_q") == 10 * q);
  CHECK(bytes(step(kPrompts, "none", Chains::framework), "rope_k") == 10 * q / 8);
  CHECK(bytes(step(kPrompts, "none", Chains::compiled), "rope_q") == 8 * q);
  CHECK(bytes(step(kPrompts, "none", Chains::framework), "rope_tables") == 2 * 2 * kTokens * 128 * 2);
  CHECK(bytes(step(kPrompts, "fused_rope", Chains::framework), "rope") == 2 * q * 9 / 8);
  CHECK(find(step(kPrompts, "fused_rope", Chains::framework), "rope_tables") == nullptr);
}

TEST_CASE("a cache that is concatenated gives 13 kernels per layer a new shape in every step") {
  // The two concatenations, the two table look-ups, repeated K and V, and the seven kernels of naive attention.
  CHECK(sum(step(kDecode, "baseline", Chains::framework), &Op::reshaped) == 13);
  CHECK(sum(step(kDecode, "static_kv", Chains::framework), &Op::reshaped) == 0);
  CHECK(sum(step(kPrompts, "baseline", Chains::framework), &Op::reshaped) == 0);
  CHECK(sum(step(kDecode, "flash_attention,fused_rope", Chains::framework), &Op::reshaped) == 2);
}

TEST_CASE("a concatenated cache is written by the concatenation alone") {
  const Graph graph = step(kDecode, "baseline", Chains::framework);
  CHECK(find(graph, "kv_write") == nullptr);
  CHECK(bytes(graph, "kv_concat") == 2 * 4. * 1537 * 2 * 128 * 2);  // read and written: 1537 tokens of 2 x 128 values
  CHECK(get(graph, "kv_concat").launches == 2);
  CHECK(find(step(kPrompts, "baseline", Chains::framework), "kv_write") == nullptr);
  CHECK(find(step(kPrompts, "baseline", Chains::framework), "kv_concat") == nullptr);
  CHECK(get(step(kPrompts, "static_kv", Chains::framework), "kv_write").launches == 2);
}

TEST_CASE("views: 31 per layer at first, 4 of a mask with flash attention, 3 more of a fused product") {
  const std::int64_t expected[] = {31, 31, 4, 4, 4, 7, 7};
  for (std::size_t i = 0; i < std::size(kRungs); ++i) {
    CHECK(sum(step(kDecode, kRungs[i], Chains::framework), &Op::views) == expected[i]);
  }
}

TEST_CASE("flash attention over an allocated cache is given a mask, over a concatenated one none") {
  const Graph graph = step(kDecode, kRungs[2], Chains::framework, 2048);
  CHECK(bytes(graph, "mask") == 3. * 4 * 2048);  // 16 bits read, 8 written
  CHECK(get(graph, "mask").grows_with_context);
  CHECK(find(step(kDecode, "flash_attention", Chains::framework), "mask") == nullptr);
  CHECK(find(step(kDecode, "flash_attention", Chains::framework), "mask_prepare") == nullptr);
}

TEST_CASE("decode over an allocated cache reads all of it, at least the present tokens") {
  const auto context = [](std::int64_t allocated, const char* options, const SequenceGroup& group) {
    return body<graph::Attention>(step(group, options, Chains::one_kernel, allocated), "attention").context;
  };
  CHECK(context(0, "all", kDecode) == 1536);
  CHECK(context(2048, "all", kDecode) == 2047);  // and the new token
  CHECK(context(1024, "all", kDecode) == 1536);
  CHECK(context(2048, "all", kPrompts) == 0);
  CHECK(context(2048, "flash_attention", kDecode) == 1536);  // concatenated: nothing is allocated
  CHECK(body<graph::Gemm>(step(kDecode, "static_kv", Chains::framework, 2048), "scores").n == 2048);
  CHECK(body<graph::Gemm>(step(kDecode, "none", Chains::framework, 2048), "scores").n == 1537);
  CHECK(body<graph::Copy>(step(kDecode, "static_kv", Chains::framework, 2048), "repeat_kv").read_elements ==
        4. * 2048 * 256);
}

TEST_CASE("the product of q, k and v is split by three copies, by one where it is compiled, by none in one kernel") {
  for (const Chains chains : {Chains::framework, Chains::compiled}) {
    const Graph graph = step(kPrompts, "fused_qkv", chains);
    CHECK(bytes(graph, "split_qkv") == 2 * kTokens * (1024 + 2 * 128) * 2);
    CHECK(get(graph, "split_qkv").launches == (chains == Chains::framework ? 3 : 1));
  }
  CHECK(find(step(kPrompts, "fused_qkv", Chains::one_kernel), "split_qkv") == nullptr);
  CHECK(find(step(kPrompts, "none", Chains::framework), "split_qkv") == nullptr);
}

TEST_CASE("logits are widened in 6 bytes each, of every token or the last ones") {
  CHECK(bytes(step(kPrompts, "none", Chains::framework), "logits_to_fp32") == 6 * kTokens * 32000);
  CHECK(bytes(step(kPrompts, "last_token_head", Chains::framework), "logits_to_fp32") == 6. * 4 * 32000);
  CHECK(find(step(kPrompts, "none", Chains::one_kernel), "logits_to_fp32") == nullptr);
}

TEST_CASE("with overlap the sums after o_proj and down_proj run beside these products, in steps of prompts") {
  const auto overlapping = [](const Graph& graph) {
    std::vector<std::string> names;
    for (std::size_t i = 1; i < graph.size(); ++i) {
      if (!graph[i].overlaps) continue;
      names.emplace_back(graph[i - 1].name);
      names.emplace_back(graph[i].name);
    }
    return names;
  };
  const std::vector<std::string> both = {"o_proj", "attention_reduce", "down_proj", "mlp_reduce"};
  for (const Chains chains : {Chains::one_kernel, Chains::framework, Chains::compiled}) {
    CHECK(overlapping(step(kPrompts, "mc2", chains)) == both);
    CHECK(overlapping(step(kPrompts, "all,mc2", chains)) == both);
    CHECK(overlapping(step(kPrompts, "all", chains)).empty());
    CHECK(overlapping(step(kDecode, "mc2", chains)).empty());
    CHECK(overlapping(step(kPrompts, "mc2", chains, 0, 1)).empty());
  }
}

TEST_CASE("the kernel of a sum over ranks adds the residual and takes the norm, in steps of new tokens") {
  const char* const kFused = "all,fused_all_reduce_norm";
  const Graph apart = step(kDecode, "all", Chains::one_kernel);
  const Graph joined = step(kDecode, kFused, Chains::one_kernel);
  for (const char* name : {"attention_add_norm", "mlp_add_norm"}) {
    CHECK(get(apart, name).launches == 1);
    CHECK(get(joined, name).launches == 0);
    // Of sum and residual in, and residual and norm out, the first stays in the kernel.
    CHECK(bytes(apart, name) == 4 * 2 * 4 * 8192);
    CHECK(bytes(joined, name) == 3 * 2 * 4 * 8192);
  }
  CHECK(launches(apart) - launches(joined) == 2);
  CHECK(launches(step(kPrompts, kFused, Chains::one_kernel)) == launches(step(kPrompts, "all", Chains::one_kernel)));
  CHECK(get(step(kDecode, kFused, Chains::one_kernel, 0, 1), "mlp_add_norm").launches == 1);  // no ranks, no sum
}

TEST_CASE("an eager framework copies the weights of products that overlap their sums") {
  const Graph graph = step(kPrompts, "mc2", Chains::framework);
  CHECK(bytes(graph, "o_proj_transpose") == 2 * 2. * 8192 * 1024);  // read and written
  CHECK(bytes(graph, "down_proj_transpose") == 2 * 2. * 8192 * 3584);
  CHECK(find(step(kPrompts, "mc2", Chains::compiled), "o_proj_transpose") == nullptr);
  CHECK(find(step(kPrompts, "none", Chains::framework), "o_proj_transpose") == nullptr);
  CHECK(find(step(kDecode, "mc2", Chains::framework), "o_proj_transpose") == nullptr);
  CHECK(find(step(kPrompts, "mc2", Chains::framework, 0, 1), "o_proj_transpose") == nullptr);
}

TEST_CASE("how chains run changes no matrix product") {
  const auto products = [](const Graph& graph) {
    std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>> all;
    for (const Op& op : graph) {
      if (const auto* g = std::get_if<graph::Gemm>(&op.body)) all.emplace_back(g->m, g->n, g->k, g->batch, op.count);
    }
    return all;
  };
  for (const char* rung : kRungs) {
    for (const SequenceGroup& group : {kPrompts, kDecode}) {
      const auto one = products(step(group, rung, Chains::one_kernel));
      CHECK(one.size() >= 6);
      CHECK(products(step(group, rung, Chains::framework)) == one);
      CHECK(products(step(group, rung, Chains::compiled)) == one);
    }
  }
}

}  // namespace llmperf::runtime_ops_test
