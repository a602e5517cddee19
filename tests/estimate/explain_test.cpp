#include "estimate/explain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/expression.h"
#include "catch.h"
#include "descriptor/catalog.h"
#include "estimate/builtin.h"
#include "graph/mixer_cases.h"
#include "graph/random_decoder.h"
#include "hardware/runtime_execution.h"
#include "model/gguf/tensors.h"
#include "model/model_file.h"

namespace llmperf::explain_test {

using estimate::Choices;
using estimate::Estimate;
using estimate::Estimator;
using estimate::Explanation;
using estimate::Scenario;
using test::decoder;
using test::device;

namespace {

Estimator estimator(const std::string& model, const std::string& hardware, const Choices& choices = {}) {
  return Estimator(estimate::make_setup(decoder(model), device(hardware), choices));
}

bool agrees(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

// The rules every explanation keeps, its parts included.
void check_rules(const Explanation& x) {
  INFO(x.path << " = " << x.formula);
  INFO(x.substituted);
  const double printed = test::evaluate(x.substituted);
  if (!agrees(printed, x.value)) CHECK(printed == x.value);
  for (const auto& v : x.variables) {
    if (v.meaning.empty()) FAIL_CHECK("variable without a meaning: " << v.name);
    if (x.formula.find(v.name) == std::string::npos) FAIL_CHECK("a variable that the formula does not use: " << v.name);
  }
  for (const Explanation& part : x.parts) check_rules(part);
}

// Explains everything; returns how many numbers that were.
std::size_t check_everything(Estimator& estimator, const Scenario& scenario) {
  const Estimate e = estimator.run(scenario);
  const std::vector<std::string> paths = explainable_paths(estimator, e);
  for (std::size_t i = 0; i < paths.size(); i += test::kSanitized ? 10 : 1) {
    const std::string& path = paths[i];
    try {
      const Explanation x = explain(estimator, e, path);
      if (x.path != path) CHECK(x.path == path);
      check_rules(x);
    } catch (const std::exception& error) {
      FAIL_CHECK(path << ": " << error.what());
    }
  }
  return paths.size();
}

const estimate::Variable& variable(const Explanation& x, std::string_view name) {
  const auto found =
      std::find_if(x.variables.begin(), x.variables.end(), [&](const auto& v) { return v.name == name; });
  REQUIRE(found != x.variables.end());
  return *found;
}

}  // namespace

TEST_CASE("every number of an estimate is reproduced by its formula, and by the formula with numbers in it") {
  constexpr const char* kDevices[] = {"rtx4090", "h100-sxm", "b200-sxm"};
  std::size_t turn = 0;
  for (const char* model : {"qwen-7b", "llama-3-8b", "gemma-2-2b", "mixtral-8x7b", "deepseek-v2-lite", "gpt-oss-20b"}) {
    for (const char* weights : {"bf16", "w4a16", "w8a8", "4.5"}) {
      for (const char* options : {"all", "none"}) {
        const char* hardware = kDevices[turn++ % 3];
        INFO(model << " " << weights << " " << options << " " << hardware);
        Choices choices;
        choices.weights = weights;
        choices.runtime = hardware::parse_runtime_options(options);
        Estimator e = estimator(model, hardware, choices);
        CHECK(check_everything(e, {2, 700, 90}) >= 8);
      }
    }
  }
}

TEST_CASE("formulas hold while windows fill up, over long generations, for one token, and when nothing fits") {
  const auto runs = [](const char* model, const char* hardware, const char* options, const char* kv,
                       Scenario scenario) {
    INFO(model << " " << hardware << " " << options << " " << kv << " " << scenario.prompt << "+" << scenario.generate);
    Choices choices;
    choices.runtime = hardware::parse_runtime_options(options);
    choices.kv = kv;
    Estimator e = estimator(model, hardware, choices);
    CHECK(check_everything(e, scenario) >= 8);
  };
  for (const char* options : {"all", "none"}) {
    runs("gpt-oss-20b", "b200-sxm", options, "bf16", {3, 40, 400});
    runs("gemma-2-2b", "h100-sxm", options, "fp8", {1, 4000, 300});
    runs("gemma-2-2b", "h100-sxm", options, "bf16", {1, 5000, 20});
    runs("mistral-7b-v0.1", "h100-sxm", options, "int8", {2, 1, 6000});
    runs("deepseek-v2-lite", "h100-sxm", options, "fp8", {4, 30, 2});
    runs("qwen-7b", "rtx4090", options, "int4", {1, 1, 1});
    runs("llama-3-70b", "rtx4090", options, "bf16", {1, 512, 128});
    runs("qwen3-8b", "epyc-9654", options, "bf16", {1, 3000, 2000});
    runs("phi-2", "rtx4090", options, "bf16", {1, 20000, 3});
    runs("qwen1.5-moe-a2.7b", "h100-sxm", options, "bf16", {64, 2000, 12});
    runs("deepseek-v3", "b200-sxm", options, "bf16", {1, 64, 8});
  }
}

TEST_CASE("formulas hold for chains of kernels, allocated caches, overlapping sums and what an allocator adds") {
  for (const hardware::Chains chains : {hardware::Chains::framework, hardware::Chains::compiled}) {
    for (const char* options : {"none", "static_kv", "static_kv+flash_attention+mc2", "flash_attention", "all"}) {
      for (const char* model : {"llama-3-8b", "gemma-2-2b", "qwen3-8b"}) {
        INFO(model << " " << options);
        Choices choices;
        choices.runtime = hardware::parse_runtime_options(options);
        choices.runtime.chains = chains;
        choices.runtime.allocated_kv = 500;  // outgrown on the way
        estimate::Setup setup = estimate::make_setup(decoder(model), device("h100-sxm"), choices);
        setup.execution.plan.tensor = std::string_view(model) == "gemma-2-2b" ? 1 : 2;
        setup.execution.allocation = {.padding = 32, .granule = 512};
        Estimator e(std::move(setup));
        CHECK(check_everything(e, {2, 400, 300}) >= 8);
      }
    }
  }
}

TEST_CASE("formulas hold for mixtures of GGUF types, split between device and host, and for two cache types") {
  constexpr const char* kWeights[] = {"q4_k_m", "iq3_xs", "f16"};
  std::size_t turn = 0;
  for (const char* model : {"qwen1.5-4b", "gemma-2-2b", "mixtral-8x7b", "deepseek-v2-lite", "qwen2-0.5b"}) {
    for (const std::int64_t layers : {0, 1, 7, 999}) {
      Choices choices;
      choices.weights = kWeights[turn % 3];
      choices.gpu_layers = layers;
      choices.host = &device("epyc-9654");
      choices.cache_v = "q8_0";
      choices.micro_batch = turn % 4 < 2 ? 70 : 16;  // below 32 the host computes what it keeps
      choices.runtime = hardware::parse_runtime_options(turn % 2 == 0 ? "all" : "none");
      INFO(model << " " << *choices.weights << " " << layers << " " << turn % 2);
      Estimator e = estimator(model, "b200-sxm", choices);
      CHECK(check_everything(e, {2, 50, 20}) >= 14);
      CHECK(check_everything(e, {1, 8, 1}) >= 14);
      ++turn;
    }
  }
}

TEST_CASE("formulas hold for random models on caches of any size") {
  test::Random random(21);
  for (int i = 0; i < 15; ++i) {
    INFO("model " << i);
    const model::Decoder model = test::random_decoder(random);
    hardware::Device hardware = device("h100-sxm");
    hardware.memory.front().capacity =
        Bytes{static_cast<double>(random.in(1, 1'000'000'000) % (1 << random.in(1, 30)))};
    estimate::Setup setup;
    setup.execution = test::random_execution(random, model);
    setup.device = &hardware;
    Estimator e(setup);
    check_everything(e, {random.in(1, 40), random.in(1, 900), random.in(1, 400)});
  }
}

TEST_CASE("formulas hold for every mixer, kind of expert and residual stream") {
  for (const auto& [name, model] : test::mixer_decoders()) {
    for (const char* options : {"all", "none"}) {
      for (const char* weights : {"bf16", "w4a16-g32"}) {
        INFO(name << " " << options << " " << weights);
        Choices choices;
        choices.weights = weights;
        choices.runtime = hardware::parse_runtime_options(options);
        Estimator e(estimate::make_setup(model, device("h100-sxm"), choices));
        CHECK(check_everything(e, {3, 37, 60}) > 50);
      }
    }
  }
}

TEST_CASE("formulas hold for tiles of queries that share a pass over keys and values") {
  for (const std::int64_t tile : {1, 64, 100}) {
    for (const char* model : {"qwen-7b", "gemma-2-2b"}) {
      Choices choices;
      choices.runtime.attention_query_tile = tile;
      Estimator e = estimator(model, "h100-sxm", choices);
      CHECK(check_everything(e, {2, 700, 3}) > 100);
    }
  }
}

// A stride through the product of all built-in models and devices, of which it leaves out none: all pairs take most of
// an hour. Models that do not fit are given the memory. Arrays of tiles are held against the roofline where no runtime
// is named (tile_test.cpp explains their mappings). A test of its own (tests/CMakeLists.txt), as it takes long.
TEST_CASE("whatever an estimate prints is explained, on every model, device and runtime", "[.every_model]") {
  constexpr std::array kRuntimes = {"none", "", "vllm", "transformers", "llama.cpp"};
  constexpr std::array<Scenario, 5> kShapes = {{{1, 16, 12}, {1, 1, 2}, {3, 700, 300}, {64, 129, 2}, {1, 5000, 40}}};
  constexpr std::array kWeights = {"bf16", "w4a16", "fp8"};
  const std::vector<std::string> models = model::decoder_names();
  const std::vector<std::string> devices = descriptor::names(descriptor::Kind::device);
  constexpr std::size_t kStride = 113;
  std::set<std::size_t> visited;
  std::size_t turn = 0;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    hardware::Device hardware = device(devices[d]);
    hardware.memory.back().capacity = Bytes{1e14};
    std::vector<std::optional<hardware::RuntimeProfile>> profiles;
    for (const std::string_view runtime : kRuntimes) {
      profiles.emplace_back();
      if (runtime == "none") continue;
      profiles.back() =
          hardware::load_runtime_profile(hardware, std::string(runtime), hardware::UnknownRuntime::use_default);
    }
    for (std::size_t m = 0; m < models.size(); ++m) {
      const std::size_t r = (m + d) % kRuntimes.size();
      if ((m + 2 * d) % kStride != 0) continue;
      visited.insert(m);
      ++turn;
      Choices choices;
      // Some models have no GGUF file.
      const bool gguf =
          std::string_view(kRuntimes[r]) == "llama.cpp" && !model::gguf_architecture_name(decoder(models[m])).empty();
      choices.weights = gguf ? "q4_k_m" : kWeights[turn % kWeights.size()];
      choices.tiles = mapper::TileModel::roofline;
      choices.price = estimate::hour_price(hardware);
      choices.runtime = hardware::parse_runtime_options(turn % 2 == 0 ? "all" : "none");
      if (profiles[r]) {
        const auto run = hardware::resolve_execution(*profiles[r], turn % 2 == 0 ? "all" : "none", "");
        choices.run_as(run);
        choices.profile = &*profiles[r];
      }
      const Scenario& shape = kShapes[turn % kShapes.size()];
      INFO(models[m] << " on " << devices[d] << ", runtime " << kRuntimes[r] << ", " << *choices.weights << ", batch "
                     << shape.batch << ", prompt " << shape.prompt);
      Estimator e(estimate::make_setup(decoder(models[m]), hardware, choices));
      CHECK(check_everything(e, shape) > 50);
    }
  }
  CHECK(visited.size() == models.size());
  CHECK(models.size() >= kStride);  // so that each device has one
}

TEST_CASE("formulas hold for prompts in pieces, alike or not, with windows, latents, states and scores in memory") {
  const auto profile = hardware::load_runtime_profile(device("b200-sxm"), "vllm");
  const auto check = [&](const char* model, std::int64_t chunk, const char* options, bool predicted) {
    INFO(model << " " << chunk << " " << options << " " << predicted);
    Choices choices;
    choices.runtime = hardware::parse_runtime_options(options);
    choices.serving.prefill_chunk = chunk;
    if (predicted) choices.profile = &profile;
    Estimator e = estimator(model, "b200-sxm", choices);
    CHECK(check_everything(e, {.batch = 2, .prompt = 2000, .generate = 3, .depth = chunk == 300 ? 100 : 0}) > 100);
  };
  for (const char* model : {"llama-3-8b", "gemma-2-2b", "gpt-oss-20b", "deepseek-v2-lite", "qwen3-next-80b-a3b"}) {
    for (const std::int64_t chunk : {128, 300, 500, 1999}) {
      check(model, chunk, chunk == 500 ? "none" : "all", chunk == 128);
    }
  }
  // Keys are chosen from 2048 on, which 1500 before 600 more pass.
  Choices choices;
  choices.serving.prefill_chunk = 600;
  choices.plan.tensor = 8;
  Estimator e = estimator("deepseek-v3.2", "b200-sxm", choices);
  CHECK(check_everything(e, {.batch = 1, .prompt = 4200, .generate = 2}) > 100);
}

TEST_CASE("the time to the first token of a prompt in pieces is explained by its phases") {
  Choices choices;
  choices.serving.prefill_chunk = 512;
  Estimator e = estimator("llama-3-8b", "h100-sxm", choices);
  const Estimate result = e.run({1, 2100, 1});
  const Explanation x = explain(e, result, "ttft_s");
  CHECK(x.formula == "phases.prefill.total_s + phases.prefill_2.time_s");
  CHECK(x.parts.front().value == 4 * result.phases[0].time.value);
}

TEST_CASE("where the host is slower than the device the first token's overhead is its own, not the mean one") {
  const hardware::RuntimeProfile profile = hardware::load_runtime_profile(device("b200-sxm"), "transformers");
  const auto run = hardware::resolve_execution(profile, "all", "");
  Choices choices;
  choices.run_as(run);
  choices.profile = &profile;
  Estimator e = estimator("gemma-2-9b", "b200-sxm", choices);
  const Estimate result = e.run({1, 16, 128});
  const estimate::Phase& decode = result.phases.at(1);
  // The host takes as long at every step, so that what the device takes longer at the last is waited for less.
  CHECK(decode.first_overhead > decode.ops.back().time.total);
  CHECK(decode.ops.back().time.total > decode.last_overhead);
  const Explanation first = explain(e, result, "tpot_first_s");
  const Explanation last = explain(e, result, "tpot_last_s");
  CHECK(first.value == result.tpot_first->value);
  CHECK(variable(first, "runtime_overhead").value == decode.first_overhead.value);
  CHECK(variable(last, "runtime_overhead").value == decode.last_overhead.value);
}

TEST_CASE("a GEMM's FLOPs are twice the product of its dimensions") {
  Estimator e = estimator("qwen-7b", "rtx4090");
  const Estimate result = e.run({1, 512, 128});
  const Explanation x = explain(e, result, "phases.prefill.ops.qkv_proj.matrix_flops");
  CHECK(x.formula == "2 * m * n * k * batch * count");
  CHECK(x.substituted == "2 * 512 * 12288 * 4096 * 1 * 32");
  CHECK(x.value == 2.0 * 512 * 12288 * 4096 * 32);
  CHECK(x.unit == "FLOP");
}

TEST_CASE("the pairs of causal attention are explained by what query i sees") {
  Estimator e = estimator("qwen-7b", "rtx4090");
  const Estimate result = e.run({1, 512, 128});
  const Explanation x = explain(e, result, "phases.prefill.ops.attention.matrix_flops");
  CHECK(x.formula == "2 * pairs * (qk_dim + v_dim) * heads * sequences * count");
  CHECK(x.value == 2.0 * (512 * 513 / 2) * 256 * 32 * 1 * 32);
  REQUIRE(x.parts.size() == 1);
  CHECK(x.parts[0].path == "pairs");
  CHECK(x.parts[0].formula == "q * context + q * (q + 1) / 2");
  CHECK(x.parts[0].value == 131328);
}

TEST_CASE("the pairs of a window are the growing part and the full part") {
  Estimator e = estimator("mistral-7b-v0.1", "h100-sxm");
  const Estimate result = e.run({1, 5000, 1});
  const Explanation x = explain(e, result, "phases.prefill.ops.attention.matrix_flops");
  REQUIRE(x.parts.size() == 1);
  CHECK(x.parts[0].value == 4096.0 * 4097 / 2 + 904.0 * 4096);
}

TEST_CASE("quantised weights are explained with their scales") {
  Choices choices;
  choices.weights = "w4a16";
  Estimator e = estimator("llama-3-8b", "rtx4090", choices);
  const Estimate result = e.run({1, 16, 4});
  const Explanation x = explain(e, result, "phases.decode.ops.o_proj.weight_bytes");
  CHECK(x.formula == "(n * k * bits + n * ceil(k / group) * group_bits) / 8 * count");
  CHECK(x.value == 32 * (4096.0 * 4096 * 4 + 4096.0 * 32 * 20) / 8);
}

TEST_CASE("a GEMM too large for the cache is explained with how often it reads its operands") {
  Estimator e = estimator("llama-3-8b", "h100-sxm");  // 50 MiB of L2
  const Estimate result = e.run({1, 8192, 1});
  // 64 MiB of input against 224 MiB of weights: two slabs of input, the weights are read for each.
  const Explanation x = explain(e, result, "phases.prefill.ops.gate_up_proj.weight_bytes");
  CHECK(x.formula == "ceil(m * k * element_bytes / cache_bytes) * n * k * bits / 8 * count");
  CHECK(x.value == 2.0 * 28672 * 4096 * 2 * 32);
}

TEST_CASE("an op's time is held against the slowest of three resources") {
  Estimator e = estimator("qwen-7b", "rtx4090");
  const Estimate result = e.run({1, 512, 128});
  const Explanation x = explain(e, result, "phases.decode.ops.qkv_proj.time_s");
  CHECK(x.formula ==
        "count * max(matrix_flops_each / matrix_rate, vector_flops_each / vector_rate, bytes_each / bandwidth)");
  CHECK(variable(x, "matrix_rate").value == Approx(165.2e12 * 1.07));  // at the clock that was measured
  CHECK(variable(x, "vector_rate").value == Approx(82.58e12 * 1.07));
  CHECK(variable(x, "bandwidth").value == 1008e9);
  REQUIRE(x.parts.size() == 1);
  CHECK(x.parts[0].path == "phases.decode.ops.qkv_proj.bytes");
}

TEST_CASE("a number that grows linearly with the context is the mean of its first and last step") {
  Estimator e = estimator("qwen-7b", "rtx4090");
  const Estimate result = e.run({1, 512, 129});  // 128 steps, at 512 to 639 cached tokens
  const Explanation x = explain(e, result, "phases.decode.ops.attention.kv_read_bytes");
  CHECK(x.formula == "(first + last) / 2");
  CHECK(variable(x, "first").value == 513.0 * 8192 * 2 * 32);
  CHECK(variable(x, "last").value == 640.0 * 8192 * 2 * 32);
  REQUIRE(x.parts.size() == 1);
  CHECK(x.parts[0].path == "first");
  CHECK(x.parts[0].formula == "sequences * keys * kv_heads * (qk_dim + v_dim) * kv_element_bytes * count");
}

TEST_CASE("a number that stops growing when a window is full is the mean of two linear pieces") {
  Estimator e = estimator("mistral-7b-v0.1", "h100-sxm");
  const Estimate result = e.run({1, 4091, 11});  // keys 4092, …, 4096, then five more steps at 4096
  const Explanation x = explain(e, result, "phases.decode.ops.attention.kv_read_bytes");
  CHECK(x.formula == "(steps_1 * (first_1 + last_1) / 2 + steps_2 * (first_2 + last_2) / 2) / steps");
  const double key = 8 * 256 * 2 * 32;
  CHECK(x.value == Approx((4092 + 4093 + 4094 + 4095 + 6 * 4096) / 10.0 * key).epsilon(1e-12));
}

TEST_CASE("the first and last token's times are those of their own steps") {
  Estimator e = estimator("qwen-7b", "rtx4090");
  const Estimate result = e.run({1, 512, 128});
  const Explanation first = explain(e, result, "tpot_first_s");
  const Explanation mean = explain(e, result, "tpot_s");
  const Explanation last = explain(e, result, "tpot_last_s");
  CHECK(variable(first, "attention").value < variable(mean, "attention").value);
  CHECK(variable(mean, "attention").value < variable(last, "attention").value);
  CHECK(variable(first, "qkv_proj").value == variable(last, "qkv_proj").value);
}

TEST_CASE("the largest batch comes with the memory that still fits and the memory that does not") {
  Estimator e = estimator("qwen-7b", "rtx4090");
  const Estimate result = e.run({1, 512, 128});
  const Explanation x = explain(e, result, "largest_batch");
  CHECK(x.value > 1);
  REQUIRE(x.notes.size() == 2);
  CHECK(x.notes[0].find(": fits") != std::string::npos);
  CHECK(x.notes[1].find(": does not fit") != std::string::npos);
  const Explanation context = explain(e, result, "longest_context_tokens");
  REQUIRE(context.notes.size() == 2);
  CHECK(context.notes[1].find(": does not fit") != std::string::npos);
}

TEST_CASE("the KV cache is explained by layers, values per token and tokens") {
  Estimator e = estimator("llama-3-8b", "h100-sxm");
  const Estimate result = e.run({2, 1000, 24});
  const Explanation x = explain(e, result, "memory.kv_cache_bytes");
  CHECK(x.formula == "batch * (layers * tokens * values_per_token * kv_element_bytes)");
  CHECK(x.value == 2.0 * 32 * 2048 * 1024 * 2);
}

TEST_CASE("ops of one name in the same phase are numbered") {
  Estimator e = estimator("gemma-2-2b", "h100-sxm");
  const Estimate result = e.run({1, 512, 1});
  const std::vector<std::string> paths = explainable_paths(e, result);
  const auto has = [&](const char* path) { return std::find(paths.begin(), paths.end(), path) != paths.end(); };
  CHECK(has("phases.prefill.ops.attention.time_s"));
  CHECK(has("phases.prefill.ops.attention#2.time_s"));
  CHECK_FALSE(has("phases.prefill.ops.attention#3.time_s"));
  CHECK_FALSE(has("tpot_s"));
}

TEST_CASE("an unknown path is an error that names the nearest ones") {
  Estimator e = estimator("qwen-7b", "rtx4090");
  const Estimate result = e.run({1, 512, 128});
  for (const char* path :
       {"ttft", "", "phases.prefill", "phases.prefill.ops.qkv_proj", "phases.prefill.ops.nobody.time_s",
        "phases.prefill.ops.qkv_proj.nothing", "phases.prefil.time_s", "memory.weight_byte"}) {
    INFO(path);
    CHECK_THROWS_AS(explain(e, result, path), Error);
  }
  try {
    explain(e, result, "phases.prefill.ops.qkv_prj.time_s");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    CHECK(error.diagnostics().at(0).hint.find("phases.prefill.ops.qkv_proj.time_s") != std::string::npos);
  }
}

TEST_CASE("an estimate that does not fit explains its memory and says why there are no times") {
  Estimator e = estimator("llama-3-70b", "rtx4090");
  const Estimate result = e.run({1, 512, 128});
  REQUIRE_FALSE(result.fits);
  CHECK(explain(e, result, "memory.weight_bytes").value > 24e9);
  CHECK(explain(e, result, "largest_batch").value == 0);
  try {
    explain(e, result, "ttft_s");
    FAIL("explained a time that does not exist");
  } catch (const Error& error) {
    CHECK(error.diagnostics().at(0).hint.find("does not fit") != std::string::npos);
  }
}

}  // namespace llmperf::explain_test
