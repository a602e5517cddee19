// GGUF models on a device with a host: memory against what llama.cpp prints, and the speed of a split.
#include "base/error.h"
#include "catch.h"
#include "estimate/estimate.h"
#include "estimate/gguf_study.h"

namespace llmperf::offload_test {

using estimate::Choices;
using estimate::Estimate;
using estimate::Estimator;

namespace {

const hardware::Device& rtx4090() {
  static const hardware::Device device = hardware::load_device("rtx4090");
  return device;
}
const hardware::Device& cpu() {
  static const hardware::Device device = hardware::load_device("ryzen-7950x");
  return device;
}

Choices choices_for(const char* weights) {
  Choices choices;
  choices.weights = weights;
  choices.gguf_era = model::GgufEra::v2024;
  choices.host = &cpu();
  return choices;
}

Estimator estimator(const model::Decoder& model, const Choices& choices) {
  return Estimator(estimate::make_setup(model, rtx4090(), choices));
}

double mebibytes(Bytes bytes) { return bytes.value / kMiB; }

}  // namespace

TEST_CASE("weights, cache and compute buffers are those in llama.cpp's logs") {
  // Public logs of llama.cpp (2024 to 2026, micro-batch 512), in MiB: weights on the device and on the CPU, KV cache,
  // compute buffers of the device and of the host. The host's include the logits that llama.cpp prints apart.
  struct Row {
    const char *model, *weights;
    bool flash_attention;
    std::int64_t context;
    double device, host, kv, compute, host_compute, logits;
  };
  constexpr Row kLogs[] = {
      {"llama-3-8b", "q4_0", false, 8192, 4156.00, 281.81, 1024, 560.00, 24.01, 0.49},
      {"llama-3.1-8b", "q4_k_m", false, 8192, 4403.49, 281.81, 1024, 560.00, 24.01, 0.49},
      {"qwen2.5-7b", "q4_k_m", true, 4096, 4168.09, 292.36, 224, 304.00, 15.01, 0.58},
      {"qwen2.5-3b", "q4_k_m", false, 4096, 0, 0, 144, 300.75, 12.01, 0.58},
      {"glm-4-9b", "q4_0", true, 32768, 0, 0, 1280, 304.00, 72.01, 0.58},
  };
  for (const Row& row : kLogs) {
    INFO(row.model);
    const model::Decoder model = model::load_decoder(row.model);
    Choices choices = choices_for(row.weights);
    choices.runtime.flash_attention = row.flash_attention;
    const Estimator e = estimator(model, choices);
    const estimate::Scenario whole{1, row.context - 1, 1};
    const cost::Memory device = e.memory(whole);
    const cost::Memory host = e.host_memory(whole);
    if (row.device > 0) {
      CHECK(mebibytes(device.weights) == Approx(row.device).margin(0.02));
      CHECK(mebibytes(host.weights) == Approx(row.host).margin(0.01));
    }
    CHECK(mebibytes(device.kv_cache) == row.kv);
    CHECK(mebibytes(device.activation) == Approx(row.compute).margin(0.01));
    CHECK(mebibytes(host.activation) == Approx(row.host_compute + row.logits).margin(0.02));
  }
}

TEST_CASE("with more layers on the device its memory grows, the host's shrinks and decoding is faster") {
  const model::Decoder model = model::load_decoder("qwen1.5-7b");
  Choices choices = choices_for("q4_k_m");
  std::optional<Estimate> before;
  for (const std::int64_t layers : {0, 1, 8, 16, 32, 33}) {
    choices.gpu_layers = layers;
    const Estimate e = estimator(model, choices).run({1, 200, 20});
    if (before) {
      CHECK(e.memory.weights > before->memory.weights);
      CHECK(e.host_memory.weights < before->host_memory.weights);
      CHECK(e.memory.kv_cache.value + e.host_memory.kv_cache.value ==
            before->memory.kv_cache.value + before->host_memory.kv_cache.value);
      CHECK(*e.tpot < *before->tpot);
    }
    before = e;
  }
  choices.gpu_layers.reset();
  CHECK(estimator(model, choices).run({1, 200, 20}).total == before->total);
}

TEST_CASE("decoding a split takes the host's weights over its bandwidth and the device's over its own") {
  // 28 layers of F16, and all but the head's weights of a 4,096 wide model over 67 GB/s.
  const model::Decoder model = model::load_decoder("llama-2-7b");
  Choices choices = choices_for("f16");
  choices.gpu_layers = 5;  // the head and 4 layers
  const Estimate e = estimator(model, choices).run({1, 1, 2});
  const double layer = 2.0 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008);
  const double head = 2.0 * 32000 * 4096;
  const double weights_only = 28 * layer / 67e9 + (4 * layer + head) / 1008e9;
  CHECK(e.tpot->value > weights_only);
  CHECK(e.tpot->value < 1.002 * weights_only);  // activations, the cache of one token and the link
}

TEST_CASE("a prompt of many tokens waits for the host's weights to cross the link") {
  const model::Decoder model = model::load_decoder("llama-2-7b");
  Choices choices = choices_for("f16");
  choices.gpu_layers = 5;
  const Estimate e = estimator(model, choices).run({1, 64, 1});
  const double layer = 2.0 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008);
  CHECK(e.phases[0].work.network.value > 28 * layer);
  CHECK(e.phases[0].bound_time[static_cast<std::size_t>(mapper::Bound::network)].value > 28 * layer / 32e9);
  CHECK(e.phases[0].bound == mapper::Bound::network);
}

TEST_CASE("a device without memory of its own keeps everything, and splits nothing") {
  const model::Decoder model = model::load_decoder("llama-2-7b");
  for (const char* name : {"epyc-9654", "apple-m2-ultra"}) {
    const hardware::Device device = hardware::load_device(name);
    Choices choices = choices_for("q4_0");
    const estimate::Setup setup = estimate::make_setup(model, device, choices);
    CHECK(setup.host == nullptr);
    CHECK_FALSE(setup.execution.weights.uses_host());
    choices.gpu_layers = 3;
    CHECK_THROWS_AS(estimate::make_setup(model, device, choices), Error);
  }
  Choices choices = choices_for("bf16");  // no GGUF type
  choices.gpu_layers = 3;
  CHECK_THROWS_AS(estimate::make_setup(model, rtx4090(), choices), Error);
}

TEST_CASE("cache types shrink the cache by their bits, and their blocks have to divide a row") {
  const model::Decoder model = model::load_decoder("llama-2-7b");
  Choices choices = choices_for("q4_0");
  const estimate::Scenario scenario{1, 1000, 24};
  const double fp16 = estimator(model, choices).memory(scenario).kv_cache.value;
  CHECK(fp16 == 1024.0 * 32 * 2 * 4096 * 2);
  choices.cache_k = "q8_0";
  CHECK(estimator(model, choices).memory(scenario).kv_cache.value == fp16 / 2 * (1 + 8.5 / 16));
  choices.cache_v = "q4_0";
  CHECK(estimator(model, choices).memory(scenario).kv_cache.value == fp16 / 2 * (8.5 / 16 + 4.5 / 16));
  CHECK(estimator(model, choices).setup().execution.kv.name() == "q8_0/q4_0");

  model::Decoder odd = model;
  for (model::Layer& layer : odd.kinds) layer.attention.kv_heads = 33;  // rows of 33 heads of 128 are fine
  CHECK_NOTHROW(estimate::make_setup(odd, rtx4090(), choices));
  for (model::Layer& layer : odd.kinds) layer.attention.head_dim = layer.attention.v_head_dim = 33;  // of 33 are not
  CHECK_THROWS_AS(estimate::make_setup(odd, rtx4090(), choices), Error);
}

TEST_CASE("windows that llama.cpp does not apply leave the cache whole") {
  const model::Decoder phi = model::load_decoder("phi-3-mini");  // 32 layers of 32 heads of 96
  const estimate::Scenario long_prompt{1, 16383, 1};
  const double whole = 16384.0 * 32 * 2 * 32 * 96 * 2;
  CHECK(estimator(phi, choices_for("q4_k_m")).memory(long_prompt).kv_cache.value == whole);
  CHECK(estimator(phi, choices_for("bf16")).memory(long_prompt).kv_cache.value < whole);
}

TEST_CASE("micro-batches of fewer than 32 tokens are computed, and buffered, where the weights are") {
  const model::Decoder model = model::load_decoder("llama-2-7b");  // vocabulary 32,000, hidden 4,096
  Choices choices = choices_for("q4_0");
  choices.gpu_layers = 0;
  choices.micro_batch = 16;
  const Estimator e = estimator(model, choices);
  const estimate::Scenario scenario{1, 99, 1};
  CHECK(e.memory(scenario).activation.value == 0);
  CHECK(e.host_memory(scenario).activation.value == 4.0 * 16 * (4096 + 100 + 32000 + 4096) + 4 * 32000);
  choices.micro_batch = 32;
  CHECK(estimator(model, choices).memory(scenario).activation.value > 4.0 * 32 * (32000 + 4096));
}

TEST_CASE("the study of GGUF types finds the most layers that fit, and no more would") {
  const model::Decoder model = model::load_decoder("qwen1.5-32b");
  const std::int64_t context = 4096;
  std::vector<estimate::GgufCandidate> candidates;
  for (const char* name : {"q8_0", "q5_0", "q2_k"}) {
    candidates.push_back(estimate::gguf_candidate(model, *model::find_gguf_file_type(name), model::GgufEra::v2024));
  }
  const auto rows = estimate::study_gguf(model, rtx4090(), candidates, context, choices_for("q8_0"));
  REQUIRE(rows.size() == 3);
  CHECK_FALSE(rows[0].fits);
  CHECK(rows[1].fits);
  CHECK(rows[2].fits);
  CHECK(rows[1].offloaded == model.num_layers() + 1);
  REQUIRE(rows[0].offloaded);
  Choices choices = choices_for("q8_0");
  choices.gpu_layers = *rows[0].offloaded;
  CHECK(estimator(model, choices).fits({1, context, 0}));
  ++*choices.gpu_layers;
  CHECK_FALSE(estimator(model, choices).fits({1, context, 0}));
  CHECK(rows[2].decode_tokens_per_second > rows[1].decode_tokens_per_second);
  CHECK(rows[1].decode_tokens_per_second > rows[0].decode_tokens_per_second);
}

}  // namespace llmperf::offload_test
