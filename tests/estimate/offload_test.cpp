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
  CHECK(rows[2].decode.bound > rows[1].decode.bound);
  CHECK(rows[1].decode.bound > rows[0].decode.bound);
}

TEST_CASE("experts of the first layers are counted where they are") {
  const model::Decoder model = model::load_decoder("mixtral-8x7b");  // 8 experts of 3 matrices of 4096 x 14336
  Choices choices = choices_for("q4_0");
  const estimate::Scenario scenario{1, 100, 10};
  const double device = estimator(model, choices).memory(scenario).weights.value;
  const double host = estimator(model, choices).host_memory(scenario).weights.value;
  choices.cpu_moe = 10;
  const double moved = 10 * 8 * 3 * 4096.0 * 14336 * 4.5 / 8;
  CHECK(estimator(model, choices).memory(scenario).weights.value == device - moved);
  CHECK(estimator(model, choices).host_memory(scenario).weights.value == host + moved);
  CHECK(estimator(model, choices).host_memory(scenario).kv_cache.value == 0);

  choices.cpu_moe.reset();
  choices.override_tensor = "blk\\.[0-9]\\.ffn_(up|gate|down)_exps=CPU";  // the same layers by name
  CHECK(estimator(model, choices).host_memory(scenario).weights.value == host + moved);
  choices.override_tensor = "blk\\.7\\.ffn_up_exps=CPU,blk\\.8\\.ffn_down_exps\\.weight=CPU";
  CHECK(estimator(model, choices).host_memory(scenario).weights.value == host + moved / 10 * 2 / 3);
  // Of several patterns about a tensor the first counts: layers 10 to 31 stay where the device has them.
  choices.override_tensor = "blk\\.([1-2][0-9]|3[01])\\.=CUDA0,exps=CPU";
  CHECK(estimator(model, choices).host_memory(scenario).weights.value == host + moved);
}

TEST_CASE("decoding with experts on the host takes those that tokens reach over its bandwidth") {
  const model::Decoder model = model::load_decoder("mixtral-8x7b");
  Choices choices = choices_for("q4_0");
  choices.cpu_moe = 32;
  const Estimate e = estimator(model, choices).run({1, 1, 2});
  const double experts = 32 * 2 * 3 * 4096.0 * 14336 * 4.5 / 8 / 67e9;  // two of eight
  CHECK(e.tpot->value > experts);
  CHECK(e.tpot->value < 1.05 * experts);
}

TEST_CASE("patterns place routed experts on the CPU, and nothing else") {
  const model::Decoder model = model::load_decoder("mixtral-8x7b");
  Choices choices = choices_for("q4_0");
  const auto refused = [&](const char* text) {
    choices.override_tensor = text;
    try {
      estimate::make_setup(model, rtx4090(), choices);
    } catch (const Error& error) {
      return error.diagnostics().front().message;
    }
    return std::string();
  };
  CHECK(refused("ffn_up_exps=CPU").empty());
  CHECK(refused("ffn=CPU").find("'ffn' is about blk.0.ffn_norm.weight, too") != std::string::npos);
  CHECK(refused("attn_q=CPU").find("only routed experts") != std::string::npos);
  CHECK(refused("ffn_up_exps=CUDA0").find("places nothing on the CPU") != std::string::npos);
  CHECK(refused("ffn_up_exps=CUDA1,exps=CPU").find("'ffn_up_exps=CUDA1' places nothing on the CPU") !=
        std::string::npos);
  CHECK(refused("(?!blk\\.0)_exps=CPU").find("character 2: a look-ahead") != std::string::npos);
  CHECK(refused("ffn_up_exps").find("places nothing on the CPU") != std::string::npos);
  CHECK(refused("exps[=CPU").find("no regular expression") != std::string::npos);
  CHECK(refused("blk\\.40\\..*_exps=CPU").find("no tensor of mixtral-8x7b") != std::string::npos);
}

TEST_CASE("the fewest layers whose experts stay on the host are found, and fewer would not do") {
  const model::Decoder model = model::load_decoder("mixtral-8x7b");
  Choices choices = choices_for("q4_k_m");
  const estimate::Scenario scenario{1, 512, 128};
  const auto layers = estimate::fewest_cpu_moe(model, rtx4090(), choices, scenario);
  REQUIRE(layers);
  choices.cpu_moe = layers;
  CHECK(estimator(model, choices).fits(scenario));
  --*choices.cpu_moe;
  CHECK_FALSE(estimator(model, choices).fits(scenario));
  CHECK_FALSE(estimate::fewest_cpu_moe(model::load_decoder("llama-2-7b"), rtx4090(), choices_for("f16"), scenario));
}

namespace {

// What sending weights takes of a prompt of 64 tokens.
double sent(const model::Decoder& model, const Choices& choices) {
  const Estimate e = estimator(model, choices).run({1, 64, 1});
  double seconds = 0;
  for (const estimate::OpEstimate& op : e.phases[0].ops) {
    if (op.op.name == "send_weights") seconds += op.step_time().value;
  }
  return seconds;
}
constexpr double kSentBytes = 28 * 2.0 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008);  // of 28 layers of llama-2-7b

}  // namespace

TEST_CASE("weights on the host are uploaded at a share of the link's rate, and pinned ones at another") {
  const model::Decoder model = model::load_decoder("llama-2-7b");
  hardware::RuntimeProfile profile = hardware::load_runtime_profile(rtx4090(), "llama.cpp");
  profile.values[index(hardware::Parameter::upload_share)] = 0.25;
  profile.values[index(hardware::Parameter::upload_pinned_share)] = 0.5;
  Choices choices = choices_for("f16");
  choices.gpu_layers = 5;  // the head and 4 layers
  choices.profile = &profile;
  CHECK(sent(model, choices) == Approx(kSentBytes / (0.25 * 32e9)));
  choices.pinned_weights = true;
  CHECK(sent(model, choices) == Approx(kSentBytes / (0.5 * 32e9)).epsilon(1e-3));  // and a start each
  choices.op_offload = false;
  CHECK(sent(model, choices) == 0);
  choices.profile = nullptr;
  choices.op_offload = true;
  CHECK(sent(model, choices) == Approx(kSentBytes / 32e9));
}

TEST_CASE("a CPU beside a device reads what it has at a share of what it reads by itself") {
  const model::Decoder model = model::load_decoder("llama-2-7b");
  hardware::RuntimeProfile profile = hardware::load_runtime_profile(rtx4090(), "llama.cpp");
  const hardware::RuntimeProfile of_host = hardware::load_runtime_profile(cpu(), "llama.cpp");
  Choices choices = choices_for("f16");
  choices.gpu_layers = 5;
  choices.profile = &profile;
  choices.host_profile = &of_host;
  const auto read_by_host = [&](double share) {
    profile.values[index(hardware::Parameter::host_memory_share)] = share;
    const Estimate e = estimator(model, choices).run({1, 64, 2});
    double seconds = 0;
    for (const estimate::OpEstimate& op : e.phases[1].ops) {
      if (op.op.place == graph::Place::host && op.op.tag == graph::Tag::down_proj) seconds += op.step_time().value;
    }
    return seconds;
  };
  // Products of one row are bound by the reads: twice as long at half the rate, but for their launches.
  const double alone = read_by_host(1);
  REQUIRE(alone > 0);
  CHECK(read_by_host(0.5) == Approx(2 * alone).epsilon(0.03));
}

TEST_CASE(
    "a host that says what its driver brings of pageable memory replaces the share of it, and not that of pinned") {
  const model::Decoder model = model::load_decoder("llama-2-7b");
  const hardware::RuntimeProfile profile = hardware::load_runtime_profile(rtx4090(), "llama.cpp");
  Choices choices = choices_for("f16");
  choices.gpu_layers = 5;  // the head and 4 layers
  choices.profile = &profile;
  hardware::Device host = cpu();
  host.staging = BytesPerSecond{4e9};
  choices.host = &host;
  CHECK(sent(model, choices) == Approx(kSentBytes / 4e9));
  host.staging = BytesPerSecond{1e12};
  CHECK(sent(model, choices) == Approx(kSentBytes / 32e9));  // no more than the link's
  host.staging = BytesPerSecond{4e9};
  choices.pinned_weights = true;
  CHECK(sent(model, choices) == Approx(kSentBytes / (0.8 * 32e9)).epsilon(1e-3));  // and a start each
}

TEST_CASE("the host's ops are timed by a profile of its own, where it computes any") {
  const model::Decoder model = model::load_decoder("llama-2-7b");
  const hardware::RuntimeProfile profile = hardware::load_runtime_profile(rtx4090(), "llama.cpp");
  const hardware::RuntimeProfile of_host = hardware::load_runtime_profile(cpu(), "llama.cpp");
  Choices choices = choices_for("q4_0");
  choices.profile = &profile;
  choices.host_profile = &of_host;
  CHECK(estimator(model, choices).setup().host_profile == nullptr);
  choices.gpu_layers = 5;
  Estimator split = estimator(model, choices);
  REQUIRE(split.setup().host_profile == &of_host);
  hardware::RuntimeProfile beside = of_host;
  beside.values[index(hardware::Parameter::gemm_memory_share)] *=
      get(profile.values, hardware::Parameter::host_memory_share);
  const mapper::Machine alone(cpu(), cost::make_cluster(cpu()), nullptr, {}, &beside);
  estimate::Phase step;
  split.decode_step({1, 100, 1}, 100, step);
  int compared = 0;
  for (const estimate::OpEstimate& e : step.ops) {
    if (e.op.place != graph::Place::host) continue;
    graph::Op op = e.op;
    op.place = graph::Place::device;
    CHECK(e.time.total.value == alone.time(op, alone.work(op)).total.value);
    ++compared;
  }
  CHECK(compared > 10);
  choices.profile = nullptr;
  CHECK(estimator(model, choices).setup().host_profile == nullptr);  // the speed of light
}

TEST_CASE("a host of which few threads run draws what they draw") {
  const model::Decoder model = model::load_decoder("llama-2-7b");
  Choices choices = choices_for("f16");
  choices.gpu_layers = 1;
  const double all = estimator(model, choices).run({1, 1, 2}).tpot->value;
  choices.threads = 2;  // 40 of 67 GB/s
  Estimator few = estimator(model, choices);
  CHECK(few.setup().host->dram().bandwidth->value == 40e9);
  CHECK(few.run({1, 1, 2}).tpot->value == Approx(all * 67 / 40).epsilon(0.01));
  CHECK(few.host_capacity().value == cpu().dram().capacity->value);

  Choices own;
  own.weights = "q4_0";
  own.threads = 2;
  const estimate::Setup setup = estimate::make_setup(model, cpu(), own);
  CHECK(setup.device->cores == 2);
  CHECK(Estimator(setup).machine().roofline().bandwidth().value == 40e9);
}

TEST_CASE("what is cached before the prompt takes its room and is attended to") {
  const model::Decoder model = model::load_decoder("llama-2-7b");
  Estimator e = estimator(model, choices_for("q4_0"));
  const Estimate deep = e.run({.batch = 1, .prompt = 100, .generate = 10, .depth = 1000});
  const Estimate whole = e.run({.batch = 1, .prompt = 1100, .generate = 10});
  const Estimate shallow = e.run({.batch = 1, .prompt = 100, .generate = 10});
  CHECK(deep.memory.total() == whole.memory.total());
  CHECK(*deep.tpot == *whole.tpot);
  CHECK(*deep.tpot_first == *whole.tpot_first);
  CHECK(*deep.tpot_last == *whole.tpot_last);
  CHECK(*deep.ttft > *shallow.ttft);
  CHECK(*deep.ttft < *whole.ttft);
  CHECK(deep.prefill_tokens_per_second == Approx(100 / deep.ttft->value));
  CHECK(deep.longest_context == whole.longest_context);
  CHECK(deep.phases[0].first.context == 1000);
  CHECK(deep.phases[1].first.context == 1100);
}

}  // namespace llmperf::offload_test
