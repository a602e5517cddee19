#include "model/weight_layout.h"

#include <string>

#include "base/error.h"
#include "catch.h"
#include "model/parameters.h"

namespace llmperf::weight_layout_test {

using namespace llmperf::model;

namespace {

WeightLayout layout_of(const Decoder& model, const char* weights) {
  return make_layout(model, weights, Dtype::bf16, GgufEra::v2024);
}

}  // namespace

TEST_CASE("a scheme stores all layers of a kind alike") {
  const Decoder gemma = load_decoder("gemma-2-2b");  // two kinds: sliding and full attention
  const WeightLayout layout = layout_of(gemma, "w4a16");
  REQUIRE(layout.groups.size() == 2);
  CHECK(layout.groups[0].count() == 13);
  CHECK(layout.groups[1].count() == 13);
  CHECK(layout.groups[0].layers[1] - layout.groups[0].layers[0] == 2);
  CHECK_FALSE(layout.gguf);
  CHECK_FALSE(layout.uses_host());
  CHECK(layout.groups[0][Role::q].group == 128);
}

TEST_CASE("layers that a mixture stores alike are one group") {
  // Q4_K_M of 32 layers: attn_v and ffn_down are Q6_K in the first four, the last four and every third between.
  const Decoder llama = load_decoder("llama-2-7b");
  const WeightLayout layout = layout_of(llama, "q4_k_m");
  REQUIRE(layout.groups.size() == 2);
  CHECK(layout.groups[0].count() == 16);
  CHECK(layout.groups[1].count() == 16);
  CHECK(layout.groups[0][Role::v].name == "Q6_K");
  CHECK(layout.groups[0].layers.front() == 0);
  CHECK(layout.groups[1][Role::v].name == "Q4_K");
  CHECK(layout.groups[1][Role::q] == layout.groups[0][Role::q]);
  CHECK(layout.lm_head.name == "Q6_K");
  CHECK(layout.vector_bits == 32);
}

TEST_CASE("a layout's bytes are the sum of its tensors' bytes") {
  for (const char* name : {"qwen1.5-0.5b", "llama-2-70b", "mixtral-8x7b", "gemma-2-2b", "phi-3-mini", "qwen2-0.5b",
                           "deepseek-v2-lite", "gpt-oss-20b"}) {
    for (const char* weights : {"f16", "q8_0", "q4_k_m", "q2_k", "iq3_xs"}) {
      for (const GgufEra era : {GgufEra::v2024, GgufEra::v2026}) {
        INFO(name << " " << weights);
        const Decoder model = load_decoder(name);
        Bytes sum;
        std::int64_t elements = 0;
        for (const GgufTensor& tensor : quantised_tensors(model, *find_gguf_file_type(weights), era)) {
          sum += tensor.bytes();
          elements += tensor.elements();
        }
        const WeightLayout layout = make_layout(model, weights, Dtype::bf16, era);
        CHECK(weight_bytes(model, layout).value == Approx(sum.value).epsilon(1e-14));
        CHECK(stored_weights(model, layout) == elements);
      }
    }
  }
}

TEST_CASE("with fewer layers offloaded, the first layers stay on the host and the head goes first") {
  const Decoder qwen = load_decoder("qwen1.5-7b");  // 32 layers, untied
  const WeightLayout whole = layout_of(qwen, "q4_k_m");
  const double total = weight_bytes(qwen, whole).value;
  double previous = -1;
  for (std::int64_t offloaded = 0; offloaded <= 34; ++offloaded) {
    WeightLayout split = whole;
    keep_on_host(qwen, offloaded, split);
    const PlacedBytes placed = placed_weight_bytes(qwen, split);
    CHECK(placed.device.value + placed.host.value == Approx(total).epsilon(1e-14));
    CHECK((offloaded > 33 ? placed.device.value == previous : placed.device.value > previous));
    previous = placed.device.value;
    CHECK(split.head_on_host == (offloaded == 0));
    std::int64_t on_host = 0;
    for (const LayerGroup& group : split.groups) {
      if (!group.on_host) continue;
      on_host += group.count();
      CHECK(group.layers.back() < 33 - offloaded);
    }
    CHECK(on_host == std::max<std::int64_t>(0, std::min<std::int64_t>(32, 33 - offloaded)));
    CHECK((on_host == 0 || split.groups.front().on_host));
  }
}

TEST_CASE("a tied embedding is stored once, and held twice when tokens are looked up on the host") {
  const Decoder qwen = load_decoder("qwen2-0.5b");  // tied: 151,936 x 896
  REQUIRE(qwen.tied_embeddings);
  WeightLayout layout = layout_of(qwen, "q8_0");
  const double embedding = 151936.0 * 896 * 34 / 32;
  const PlacedBytes placed = placed_weight_bytes(qwen, layout);
  CHECK(placed.host.value == embedding);
  CHECK(placed.device.value + placed.host.value == weight_bytes(qwen, layout).value + embedding);
  layout.embedding_on_host = false;
  CHECK(placed_weight_bytes(qwen, layout).device.value == weight_bytes(qwen, layout).value);
}

TEST_CASE("a tied lm_head that the checkpoint repeats is stored twice") {
  const Decoder qwen = load_decoder("qwen3-0.6b");
  REQUIRE(qwen.tied_embeddings);
  REQUIRE(qwen.checkpoint_repeats_lm_head);
  const WeightLayout layout = layout_of(qwen, "q2_k");
  CHECK(layout.lm_head_copy);
  CHECK(stored_weights(qwen, layout) == count_parameters(qwen).checkpoint);
  CHECK(layout.lm_head.name == "Q6_K");
}

TEST_CASE("a weight that is no scheme and no GGUF type is refused with the nearest of both") {
  const Decoder qwen = load_decoder("qwen1.5-0.5b");
  try {
    layout_of(qwen, "q4_k_x");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("q4_k_m") != std::string::npos);
  }
  CHECK(layout_of(qwen, "Q4_K_M").name == "q4_k_m");
  CHECK_FALSE(layout_of(qwen, "bf16").gguf);
  CHECK(layout_of(qwen, "f16").gguf);
}

}  // namespace llmperf::weight_layout_test
