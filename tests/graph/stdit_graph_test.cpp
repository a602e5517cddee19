#include "graph/stdit_graph.h"

#include <algorithm>
#include <numeric>

#include "catch.h"
#include "graph/video_cases.h"

namespace llmperf::graph::stdit_graph_test {
namespace {

std::int64_t launches(const Graph& graph, VideoLayer layer) {
  std::int64_t sum = 0;
  for (const Op& op : graph) {
    if (op.layer_kind == static_cast<int>(layer)) sum += op.launches;
  }
  return sum;
}
std::int64_t launches(const Graph& graph) {
  return std::accumulate(graph.begin(), graph.end(), std::int64_t{0},
                         [](std::int64_t sum, const Op& op) { return sum + op.count * op.launches; });
}
bool has(const Graph& graph, std::string_view name) {
  return std::any_of(graph.begin(), graph.end(), [&](const Op& op) { return op.name == name; });
}
std::int64_t executions(const Graph& graph, std::string_view name) {
  std::int64_t sum = 0;
  for (const Op& op : graph) sum += op.name == name ? op.count : 0;
  return sum;
}
const Op& find(const Graph& graph, std::string_view name, VideoLayer layer) {
  const auto found = std::find_if(graph.begin(), graph.end(), [&](const Op& op) {
    return op.name == name && op.layer_kind == static_cast<int>(layer);
  });
  REQUIRE(found != graph.end());
  return *found;
}

}  // namespace

TEST_CASE("Eager PyTorch launches 61 kernels in a spatial block, 92 in a temporal one and 4,359 in a step") {
  VideoCase c;
  const Graph step = c.eager().step();
  CHECK(launches(step, VideoLayer::spatial) == 61);
  CHECK(launches(step, VideoLayer::temporal) == 92);
  CHECK(launches(step) == 28 * (61 + 92) + 75);
  CHECK(launches(step) == 4359);
}

TEST_CASE("A library of fused kernels runs one kernel for each part of a block") {
  const VideoCase c;
  const Graph step = c.step();
  // vectors; modulate, qkv, q/k norm, attention, output, gate; four products' worth of cross-attention and its
  // residual; modulate, MLP of three, gate
  CHECK(launches(step, VideoLayer::spatial) == 1 + 6 + 5 + 5);
  CHECK(launches(step, VideoLayer::temporal) == 1 + 7 + 5 + 5);  // and rope
}

TEST_CASE("Every fusion takes away kernels of its own purpose and of no other") {
  struct Fusion {
    const char* option;
    std::vector<VideoPurpose> purposes;
    std::int64_t kernels;  // fewer in a pair of blocks
  };
  // Of a pair of blocks: four norms to modulate, on two sides of the mask; four gates; two query/key norms, one rope.
  const Fusion fusions[] = {
      {"fused_qk_norm", {VideoPurpose::qk_norm}, 2 * (2 * 8 - 1)},
      {"fused_rope", {VideoPurpose::rope}, 2 * 11 - 1},
      {"fused_modulate", {VideoPurpose::modulate, VideoPurpose::frame_mask}, 4 * 2 * (4 - 1) + 2 * (4 - 1)},
      {"fused_gate", {VideoPurpose::gate}, 4},
      {"skip_frame_mask", {VideoPurpose::frame_mask, VideoPurpose::modulate}, 4 * (4 + 1) + 4 * 2 + 2 * 2},
      {"flash_any_length", {VideoPurpose::temporal_attention, VideoPurpose::rearrange}, 7 + 2},
  };
  VideoCase c;
  const Graph before = c.eager().step();
  const auto of_purpose = [](const Graph& graph, VideoPurpose purpose) {
    std::int64_t sum = 0;
    for (const Op& op : graph) sum += purpose_of(op) == purpose ? op.launches : 0;
    return sum;
  };
  for (const Fusion& f : fusions) {
    INFO(f.option);
    hardware::set_option(c.execution.runtime, f.option, true, hardware::Workload::video);
    const Graph after = c.step();
    hardware::set_option(c.execution.runtime, f.option, false, hardware::Workload::video);
    const auto of_blocks = [](const Graph& graph) {
      return launches(graph, VideoLayer::spatial) + launches(graph, VideoLayer::temporal);
    };
    CHECK(of_blocks(before) - of_blocks(after) == f.kernels);
    for (int i = 0; i < static_cast<int>(VideoPurpose::outside); ++i) {
      const auto purpose = static_cast<VideoPurpose>(i);
      const bool own = std::find(f.purposes.begin(), f.purposes.end(), purpose) != f.purposes.end();
      INFO(name(purpose));
      CHECK((of_purpose(before, purpose) == of_purpose(after, purpose)) != own);
    }
  }
}

TEST_CASE("Flash attention needs sequences longer than their number unless it takes any length") {
  VideoCase c;
  c.eager();
  // 480p, 2 s: 30 sequences of 1590 tokens in space, 3180 of 15 in time.
  Graph step = c.step();
  CHECK(has(step, "spatial_attention"));
  CHECK(has(step, "temporal_attention_softmax"));
  CHECK_FALSE(has(step, "temporal_attention"));
  c.execution.runtime.flash_any_length = true;
  step = c.step();
  const auto& temporal = std::get<Attention>(find(step, "temporal_attention", VideoLayer::temporal).body);
  CHECK(temporal.sequences == 2 * 1590);
  CHECK(temporal.q_tokens == 15);
  CHECK(temporal.keys == 15);
  CHECK_FALSE(has(step, "rearrange_to_time"));

  // 144p, 16 s: 240 sequences of 144 tokens.
  VideoCase small("stdit3-xl2", "144p", 408);
  CHECK(has(small.eager().step(), "spatial_attention_softmax"));
  // Over divided sequences the rule does not hold.
  small.execution.plan.ulysses = 2;
  CHECK(has(small.step(), "spatial_attention"));
  // One latent frame: one key, and yet the naive path.
  VideoCase image("stdit3-xl2", "480p", 1);
  CHECK(has(image.eager().step(), "temporal_attention_softmax"));
}

TEST_CASE("Cross-attention sees the prompt's tokens, the text embedder the padded text") {
  VideoCase c;
  c.execution.text_tokens = 77;
  const Graph step = c.step();
  const auto& attention = std::get<Attention>(find(step, "cross_attention", VideoLayer::spatial).body);
  CHECK(attention.sequences == 2);
  CHECK(attention.q_tokens == 15 * 1590);
  CHECK(attention.keys == 77);
  CHECK(std::get<Gemm>(find(step, "cross_kv_proj", VideoLayer::temporal).body).m == 2 * 77);
  CHECK(std::get<Gemm>(find(step, "text_embed_in", VideoLayer::outside).body).m == 2 * 300);
}

TEST_CASE("Without guidance a step works on half as many sequences") {
  VideoCase c;
  c.execution.guidance = false;
  const Graph step = c.step();
  CHECK(std::get<Gemm>(find(step, "qkv_proj", VideoLayer::spatial).body).m == 15 * 1590);
  CHECK_FALSE(has(step, "guidance"));
  CHECK_FALSE(has(step, "repeat_latent"));
}

TEST_CASE("Earlier models have one cross-attention and one MLP for two attentions") {
  for (const char* name : {"stdit-xl2", "stdit2-xl2"}) {
    INFO(name);
    VideoCase c(name, "512x512", 16);
    const Graph step = c.eager().step();
    CHECK(executions(step, "mlp_up_proj") == 28);
    CHECK(executions(step, "cross_q_proj") == 28);
    CHECK(executions(step, "qkv_proj") == 56);
    CHECK_FALSE(has(step, "frame_mask_select"));
    const bool second = c.model().architecture == model::VideoArchitecture::stdit2;
    CHECK(has(step, "rope_add") == second);
    CHECK(has(step, "qk_norm_mean") == second);
    CHECK(executions(step, "modulate_norm") == (second ? 3 : 2) * 28);
  }
}

TEST_CASE("All tokens of all frames go through the decoders once") {
  const VideoCase c;
  std::int64_t frames = 0;
  std::int64_t latents = 0;
  for (const Op& op : c.decoding()) {
    const auto* convolution = std::get_if<Convolution>(&op.body);
    if (convolution == nullptr) continue;
    if (op.name == "2d_conv_out") frames += op.count * convolution->positions;
    if (op.name == "3d_quant") latents += op.count * convolution->positions;
  }
  CHECK(frames == 51 * 480 * 848);  // latents are 60 x 106
  CHECK(latents == 15 * 60 * 106);
}

TEST_CASE("Models without a temporal autoencoder decode frames alone") {
  const VideoCase c("stdit2-xl2", "512x512", 16);
  const Graph graph = c.decoding();
  CHECK_FALSE(has(graph, "3d_quant"));
  CHECK(executions(graph, "2d_conv_out") == 4);
}

}  // namespace llmperf::graph::stdit_graph_test
