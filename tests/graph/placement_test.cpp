// Where ops run when a GGUF model is split between device and host.
#include <algorithm>
#include <string>

#include "catch.h"
#include "graph/decoder_graph.h"
#include "model/parameters.h"

namespace llmperf::placement_test {

using graph::Execution;
using graph::Gemm;
using graph::Graph;
using graph::Op;
using graph::Place;
using graph::SequenceGroup;
using graph::Transfer;

namespace {

Execution split(const model::Decoder& m, std::int64_t offloaded, const char* weights = "q4_k_m") {
  Execution e;
  e.model = &m;
  e.weights = model::make_layout(m, weights, Dtype::fp16, model::GgufEra::v2024);
  e.activations = Dtype::fp16;
  model::keep_on_host(m, offloaded, e.weights);
  return e;
}

Graph step(const Execution& e, SequenceGroup group) {
  Graph graph;
  graph::build_step(e, {&group, 1}, graph::Part::all, graph);
  return graph;
}

std::int64_t count(const Graph& graph, std::string_view name, Place place) {
  std::int64_t n = 0;
  for (const Op& op : graph) n += op.name == name && op.place == place ? op.count : 0;
  return n;
}

double weights_multiplied(const Graph& graph) {
  double bytes = 0;
  for (const Op& op : graph) {
    if (const auto* gemm = std::get_if<Gemm>(&op.body); gemm && gemm->weights) {
      bytes += static_cast<double>(op.count) * gemm->weights->bytes(gemm->n, gemm->k).value;
    }
  }
  return bytes;
}

double weights_sent(const Graph& graph) {
  double bytes = 0;
  for (const Op& op : graph) {
    if (const auto* transfer = std::get_if<Transfer>(&op.body); transfer && transfer->weights) {
      bytes += static_cast<double>(op.count) * transfer->weights->bytes(transfer->rows, transfer->width).value;
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("with everything offloaded only the embedding and the sampling are on the host") {
  const model::Decoder m = model::load_decoder("qwen1.5-7b");
  const Graph graph = step(split(m, 33), {1, 1, 100});
  CHECK(graph.front().name == "embed");
  CHECK(graph.back().name == "sampling");
  CHECK(count(graph, "to_device", Place::link) == 1);
  CHECK(count(graph, "logits_to_host", Place::link) == 1);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const bool outer = i == 0 || i + 1 == graph.size();
    if (graph[i].place != Place::link) CHECK((graph[i].place == Place::host) == outer);
  }
}

TEST_CASE("a decode step runs the first layers on the host and crosses to the device once") {
  const model::Decoder m = model::load_decoder("qwen1.5-7b");
  const Graph graph = step(split(m, 13), {1, 1, 100});  // the head and 12 of 32 layers
  CHECK(count(graph, "o_proj", Place::host) == 20);
  CHECK(count(graph, "o_proj", Place::device) == 12);
  CHECK(count(graph, "attention", Place::host) == 20);
  CHECK(count(graph, "lm_head", Place::device) == 1);
  CHECK(count(graph, "to_device", Place::link) == 1);
  CHECK(count(graph, "to_host", Place::link) == 0);
  const auto crossing = std::find_if(graph.begin(), graph.end(), [](const Op& op) { return op.name == "to_device"; });
  CHECK(std::none_of(graph.begin(), crossing, [](const Op& op) { return op.place == Place::device; }));
  CHECK(std::get<Transfer>(crossing->body).rows == 1);
  CHECK(std::get<Transfer>(crossing->body).width == 4096);
}

TEST_CASE("with the head on the host nothing runs on the device in a decode step") {
  const model::Decoder m = model::load_decoder("qwen1.5-7b");
  const Graph graph = step(split(m, 0), {1, 1, 100});
  CHECK(std::all_of(graph.begin(), graph.end(), [](const Op& op) { return op.place == Place::host; }));
}

TEST_CASE("from 32 tokens on, weights kept on the host are sent and multiplied on the device") {
  const model::Decoder m = model::load_decoder("qwen1.5-7b");
  const Execution e = split(m, 13);
  CHECK(weights_sent(step(e, {1, 31, 0})) == 0);
  CHECK(count(step(e, {1, 31, 0}), "o_proj", Place::host) == 20);

  const Graph graph = step(e, {1, 32, 0});
  CHECK(count(graph, "o_proj", Place::host) == 0);
  CHECK(count(graph, "attention", Place::host) == 0);
  CHECK(count(graph, "kv_write", Place::host) == 20);  // where the cache is
  CHECK(count(graph, "kv_to_host", Place::link) == 20);
  CHECK(count(graph, "kv_to_device", Place::link) == 20);
  double kept = 0;
  for (const model::LayerGroup& group : e.weights.groups) {
    if (!group.on_host) continue;
    for (const model::Tensor& tensor : model::layer_tensors(m, m.kinds[group.kind])) {
      if (tensor.role == model::Role::vector) continue;
      kept += static_cast<double>(group.count()) * group[tensor.role].bytes(tensor.n, tensor.k).value;
    }
  }
  CHECK(weights_sent(graph) == kept);
}

TEST_CASE("a split neither adds nor loses weights that a step multiplies with") {
  for (const char* name : {"qwen1.5-7b", "gemma-2-2b", "deepseek-v2-lite"}) {
    const model::Decoder m = model::load_decoder(name);
    const double whole = weights_multiplied(step(split(m, 999), {1, 1, 100}));
    for (std::int64_t offloaded = 0; offloaded < m.num_layers() + 2; offloaded += 5) {
      CHECK(weights_multiplied(step(split(m, offloaded), {1, 1, 100})) == Approx(whole).epsilon(1e-14));
      CHECK(weights_multiplied(step(split(m, offloaded), {1, 64, 0})) ==
            Approx(weights_multiplied(step(split(m, 999), {1, 64, 0}))).epsilon(1e-14));
    }
  }
}

TEST_CASE("matrices of different formats are multiplied apart, whatever the runtime fuses") {
  const model::Decoder m = model::load_decoder("llama-2-7b");  // Q4_K_M: v is Q6_K in half of the layers
  const Graph graph = step(split(m, 33), {1, 1, 0});
  CHECK(count(graph, "qkv_proj", Place::device) == 16);
  CHECK(count(graph, "v_proj", Place::device) == 16);
  CHECK(count(graph, "gate_up_proj", Place::device) == 32);
}

TEST_CASE("keys and values of different types are written apart") {
  const model::Decoder m = model::load_decoder("llama-2-7b");
  Execution e = split(m, 33);
  e.kv = {model::parse_kv_scheme("q8_0"), model::parse_kv_scheme("q4_0")};
  const Graph graph = step(e, {1, 1, 0});
  CHECK(count(graph, "kv_write", Place::device) == 0);
  CHECK(count(graph, "k_write", Place::device) == 32);
  CHECK(count(graph, "v_write", Place::device) == 32);
}

TEST_CASE("a long prompt is cut into micro-batches: products run once for each, attention reads the cache for each") {
  const model::Decoder m = model::load_decoder("llama-2-7b");
  Execution e = split(m, 33, "f16");
  e.micro_batch = 100;
  const Graph graph = step(e, {1, 250, 0});
  std::int64_t rows = 0, full = 0, rest = 0;
  double weights = 0;
  for (const Op& op : graph) {
    if (op.name == "o_proj") {
      const auto& gemm = std::get<Gemm>(op.body);
      rows += gemm.m * op.count;
      full += gemm.m == 100 ? op.count : 0;
      rest += gemm.m == 50 ? op.count : 0;
      weights += 2.0 * 4096 * 4096 * static_cast<double>(op.count);
    }
    if (op.name == "attention") {
      CHECK(std::get<graph::Attention>(op.body).query_tile == 100);
      CHECK(op.count == 32);
    }
  }
  CHECK(rows == 250 * 32);
  CHECK(full == 2 * 32);
  CHECK(rest == 32);
  CHECK(weights == 3 * 32 * 2.0 * 4096 * 4096);
  CHECK(count(graph, "lm_head", Place::device) == 1);
  CHECK(count(graph, "embed", Place::host) == 3);
}

TEST_CASE("weights on the host are sent once for each micro-batch, but not for a last one of a few tokens") {
  const model::Decoder m = model::load_decoder("llama-2-7b");
  Execution e = split(m, 1, "f16");
  e.micro_batch = 64;
  const double once = weights_sent(step(e, {1, 64, 0}));
  CHECK(once > 0);
  CHECK(weights_sent(step(e, {1, 128, 0})) == 2 * once);
  CHECK(weights_sent(step(e, {1, 64 + 31, 0})) == once);
  CHECK(weights_sent(step(e, {1, 64 + 32, 0})) == 2 * once);
}

TEST_CASE("a cache on the host is sent to the device whole, for each micro-batch up to the last key it sees") {
  const model::Decoder m = model::load_decoder("llama-2-7b");
  Execution e = split(m, 1, "f16");
  e.micro_batch = 100;
  const auto rows_sent = [&](SequenceGroup group) {
    std::int64_t rows = 0;
    for (const Op& op : step(e, group)) {
      if (op.name == "kv_to_device") rows += std::get<Transfer>(op.body).rows * (op.count / 32);
    }
    return rows;
  };
  CHECK(rows_sent({1, 100, 0}) == 100);
  CHECK(rows_sent({1, 250, 0}) == 100 + 200 + 250);
  CHECK(rows_sent({1, 50, 1000}) == 1050);
  CHECK(rows_sent({40, 1, 1000}) == 40 * 1001);  // a decode step of 40 sequences is large enough, too
  CHECK(rows_sent({8, 1, 1000}) == 0);
}

TEST_CASE("llama.cpp keeps a micro-batch more than the window, in whole 256s") {
  const model::Decoder m = model::load_decoder("gemma-2-2b");
  Execution e = split(m, 99);
  const model::Attention& sliding = m.kinds[0].attention;
  REQUIRE(sliding.window == 4096);
  CHECK(e.cached_tokens(sliding, 4000) == 4000);
  CHECK(e.cached_tokens(sliding, 100'000) == 4608);
  e.micro_batch = 100;
  CHECK(e.cached_tokens(sliding, 100'000) == 4352);
  e.weights.gguf = false;
  CHECK(e.cached_tokens(sliding, 100'000) == 4096);
  e.windows = false;
  CHECK(e.cached_tokens(sliding, 100'000) == 100'000);
  CHECK_FALSE(e.window(sliding).has_value());
}

namespace {

Execution with_experts_on_host(const model::Decoder& m, std::int64_t layers, std::vector<model::Role> roles) {
  Execution e = split(m, m.num_layers() + 1, "q4_0");
  e.runtime.fused_gate_up = false;  // as the file keeps them
  model::keep_experts_on_host(
      [&](std::int64_t layer, model::Role role) {
        return layer < layers && std::find(roles.begin(), roles.end(), role) != roles.end();
      },
      e.weights);
  return e;
}
constexpr auto kExpertRoles = {model::Role::expert_gate, model::Role::expert_up, model::Role::expert_down};

}  // namespace

TEST_CASE("experts on the host are computed there in decode: tokens go there, every expert's result comes back") {
  const model::Decoder m = model::load_decoder("mixtral-8x7b");  // 32 layers, hidden 4096, 2 of 8 experts
  const Graph graph = step(with_experts_on_host(m, 10, kExpertRoles), {3, 1, 100});
  for (const char* product : {"experts_gate", "experts_up", "experts_down", "experts_activation", "dispatch"}) {
    INFO(product);
    CHECK(count(graph, product, Place::host) == 10);
    CHECK(count(graph, product, Place::device) == 22);
  }
  CHECK(count(graph, "combine", Place::device) == 32);
  CHECK(count(graph, "router", Place::device) == 32);
  CHECK(count(graph, "attention", Place::device) == 32);
  double there = 0, back = 0;
  for (const Op& op : graph) {
    if (op.layer_kind < 0 || op.place != Place::link) continue;
    const auto& sent = std::get<Transfer>(op.body);
    CHECK(sent.weights == nullptr);
    (op.name == "to_host" ? there : back) += static_cast<double>(op.count * sent.rows * sent.width);
  }
  CHECK(there == 10 * 3 * 4096.0);
  CHECK(back == 10 * 3 * 2 * 4096.0);
}

TEST_CASE("matrices of experts go to the device from 32 tokens on") {
  const model::Decoder m = model::load_decoder("mixtral-8x7b");
  const Execution e = with_experts_on_host(m, 32, kExpertRoles);
  CHECK(weights_sent(step(e, {1, 31, 0})) == 0);
  CHECK(count(step(e, {1, 31, 0}), "experts_up", Place::host) == 32);
  const Graph graph = step(e, {1, 32, 0});
  CHECK(count(graph, "experts_up", Place::device) == 32);
  double matrices = 0;
  for (const Op& op : graph) {
    if (op.name == "send_weights")
      matrices += static_cast<double>(op.count) * std::get<Transfer>(op.body).weight_matrices;
  }
  CHECK(matrices == Approx(3 * 32 * 8.0).epsilon(0.01));  // so many tokens reach nearly all eight
  Execution stays = e;
  stays.streams_weights = false;
  CHECK(weights_sent(step(stays, {1, 512, 0})) == 0);
  CHECK(count(step(stays, {1, 512, 0}), "experts_up", Place::host) == 32);
}

TEST_CASE("of experts whose matrices are in both places activations cross between two products") {
  const model::Decoder m = model::load_decoder("mixtral-8x7b");  // experts 14336 wide
  const Graph graph = step(with_experts_on_host(m, 1, {model::Role::expert_up, model::Role::expert_down}), {1, 1, 9});
  CHECK(count(graph, "experts_gate", Place::device) == 32);
  CHECK(count(graph, "experts_up", Place::host) == 1);
  CHECK(count(graph, "experts_activation", Place::host) == 1);
  double crossed = 0;
  for (const Op& op : graph) {
    if (op.layer_kind < 0 || op.place != Place::link) continue;
    const auto& sent = std::get<Transfer>(op.body);
    crossed += static_cast<double>(op.count * sent.rows * sent.width);
  }
  CHECK(crossed == 4096 + 2 * 14336 + 2 * 4096.0);  // the token, the gates of two experts, two results
}

TEST_CASE("a split of experts neither adds nor loses weights that a step multiplies with") {
  const model::Decoder m = model::load_decoder("deepseek-v2-lite");
  for (const std::int64_t tokens : {1, 64, 512}) {
    const double whole = weights_multiplied(step(split(m, 99, "q4_0"), {1, tokens, 0}));
    CHECK(weights_multiplied(step(with_experts_on_host(m, 9, kExpertRoles), {1, tokens, 0})) ==
          Approx(whole).epsilon(1e-14));
  }
}

TEST_CASE("without op offload a prompt runs where the weights are") {
  const model::Decoder m = model::load_decoder("qwen1.5-7b");
  Execution e = split(m, 13);
  e.streams_weights = false;
  const Graph graph = step(e, {1, 512, 0});
  CHECK(weights_sent(graph) == 0);
  CHECK(count(graph, "o_proj", Place::host) == 20);
  CHECK(count(graph, "kv_to_device", Place::link) == 0);
}

}  // namespace llmperf::placement_test
