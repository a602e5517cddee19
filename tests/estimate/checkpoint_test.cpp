// What a checkpoint's files say about storage is what an estimate starts from.
#include "base/error.h"
#include "builtin.h"
#include "catch.h"
#include "descriptor/node.h"
#include "estimate/estimate.h"
#include "estimate/training.h"
#include "model/weight_layout.h"

namespace llmperf::checkpoint_test {

using estimate::Choices;
using estimate::Estimator;
using estimate::Setup;

namespace {

// Four layers of which the first is not quantised, nor any attention; the cache is fp8.
const model::Decoder& mixed() {
  static const model::Decoder decoder = model::parse_decoder(descriptor::parse_json(
      R"({"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8,
          "num_key_value_heads": 8, "vocab_size": 1000, "intermediate_size": 4096, "quantization_config": {
          "quant_algo": "NVFP4", "kv_cache_scheme": "FP8", "ignore": ["lm_head", "model.layers.0.*", "*self_attn*"]}})",
      "config.json", descriptor::kConfigRules));
  return decoder;
}

Setup setup(const char* weights = nullptr, const char* kv = nullptr, const graph::Plan& plan = {}) {
  Choices choices;
  if (weights) choices.weights = weights;
  if (kv) choices.kv = kv;
  choices.plan = plan;
  return estimate::make_setup(mixed(), test::device("h100-sxm"), choices);
}

}  // namespace

TEST_CASE("the cache a checkpoint asks for is the default, and what is asked for wins") {
  CHECK(setup().execution.kv.name() == "fp8");
  CHECK(setup().checkpoint_kv);
  CHECK(setup("bf16").execution.kv.name() == "fp8");
  CHECK(setup(nullptr, "bf16").execution.kv.name() == "bf16");
  CHECK_FALSE(setup(nullptr, "bf16").checkpoint_kv);
  CHECK(setup("q4_k_m").execution.kv.name() == "fp16");  // llama.cpp's own
}

TEST_CASE("a mixed checkpoint runs each layer in its formats, on any plan") {
  const Setup one = setup();
  CHECK(one.execution.weights.name == "nvfp4+bf16");
  REQUIRE(one.execution.weights.groups.size() == 2);
  // Attention 4 x 1024^2 and MLP 3 x 4096 x 1024 in each layer; three MLPs at 4.5 bits and 4 bytes per matrix.
  const double attention = 4 * 1024.0 * 1024;
  const double mlp = 3 * 4096.0 * 1024;
  const double outer = 2 * (2 * 1000 * 1024 + 9 * 1024.0);
  const double bytes = 2 * (4 * attention + mlp) + 3 * (mlp * 4.5 / 8 + 3 * 4) + outer;
  CHECK(model::weight_bytes(mixed(), one.execution.weights).value == bytes);
  const auto memory = [](std::int64_t tensor, std::int64_t pipeline) {
    graph::Plan plan;
    plan.tensor = tensor;
    plan.pipeline = pipeline;
    return Estimator(setup(nullptr, nullptr, plan)).run({.batch = 2, .prompt = 16, .generate = 2}).memory.weights.value;
  };
  CHECK(memory(1, 1) == bytes);
  // Two stages of two layers: the first has the embedding, the layer in 16 bits and four norms.
  CHECK(memory(1, 2) == 2 * (2 * attention + mlp) + mlp * 4.5 / 8 + 3 * 4 + 2 * (1000 * 1024.0 + 4 * 1024));
  // Half of every matrix, all of every norm, and the scale of every matrix on both.
  CHECK(memory(2, 1) == (bytes - 2 * 9 * 1024 - 9 * 4) / 2 + 2 * 9 * 1024 + 9 * 4);
}

TEST_CASE("a checkpoint that is quantised in part is not trained") {
  CHECK_FALSE(estimate::trains_whole(setup().execution.weights));
  CHECK(estimate::trains_whole(setup("bf16").execution.weights));
}

}  // namespace llmperf::checkpoint_test
