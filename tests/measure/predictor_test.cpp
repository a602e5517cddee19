// From rows to seconds: by hand for round numbers, as `estimate` for a whole step, and the same whether one parameter
// or all of them changed.
#include "measure/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "catch.h"
#include "measure/row_ops.h"
#include "model/model_file.h"

namespace llmperf::measure::predictor_test {
namespace {

using enum hardware::Parameter;
using hardware::Parameter;
using hardware::ParameterValues;
using hardware::RuntimeProfile;

const std::string kSteps =
    "hardware,tp,runtime,execution,options,model,weights,batch,phase,new_tokens,context,latency_ms\n";
const std::string kOps =
    "hardware,op,dtype,ranks,batch,m,n,k,q_len,kv_len,heads,kv_heads,head_dim,causal,bytes,latency_us\n";

const hardware::Device& a100() {
  static const hardware::Device device = hardware::load_device("a100-sxm-80gb");
  return device;
}

// No menu of tiles, no launches or host; every rate is that of the datasheet times 1/2; what overlaps overlaps fully.
RuntimeProfile half_profile() {
  RuntimeProfile p;
  p.name = "half";
  p.hardware = "a100-sxm-80gb";
  p.choices.split_ungrouped = true;
  for (std::size_t i = 0; i < p.values.size(); ++i) {
    const hardware::ParameterInfo& info = hardware::parameter_info(i);
    const bool exponent = info.name.ends_with("overlap");
    p.values[i] = info.unit == "s" ? 0 : info.unit.find('/') != std::string::npos ? 1e30 : exponent ? 1e3 : 0.5;
  }
  return p;
}

// The rows of a text under a profile.
struct Case {
  Case(const std::string& text, const hardware::Device& device, const RuntimeProfile& p)
      : measurements(parse_measurements(text, "t.csv")),
        profile(p),
        predictor(measurements, all_rows(measurements.rows.size()), device, profile) {}

  static std::vector<std::size_t> all_rows(std::size_t n) {
    std::vector<std::size_t> rows(n);
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    return rows;
  }
  std::vector<double> full(const ParameterValues& values) {
    std::vector<double> seconds(measurements.rows.size());
    predictor.predict(values, std::nullopt, seconds);
    return seconds;
  }
  std::vector<double> full() { return full(profile.values); }

  Measurements measurements;
  RuntimeProfile profile;
  Predictor predictor;
};

// For every parameter: all rows predicted anew are what a prediction that is told of the change says, and rows change
// with those parameters only that the predictor names.
void check_changes(Case&& c) {
  const std::vector<std::size_t> named = c.predictor.parameters();
  const std::vector<double> before = c.full();
  std::size_t moved = 0;
  for (std::size_t p = 0; p < hardware::kAllParameters; ++p) {
    CAPTURE(hardware::parameter_info(p).name);
    ParameterValues values = c.profile.values;
    values[p] *= 1.3;
    std::vector<double> told = before;
    c.predictor.predict(values, p, told);
    const std::vector<double> anew = c.full(values);
    CHECK(told == anew);
    const bool is_named = std::find(named.begin(), named.end(), p) != named.end();
    if (anew != before) {
      CHECK(is_named);
      ++moved;
    }
    REQUIRE(c.full() == before);
  }
  CHECK(moved > 5);
}

}  // namespace

TEST_CASE("a product is predicted from its shape", "[predictor]") {
  RuntimeProfile p = half_profile();
  p.values[index(gemm_launch)] = 10e-6;
  p.values[index(gemm_overlap)] = 1;
  // 2 x 1024^3 FLOP at half of 312 TFLOP/s, 3 x 2 MiB at half of 2039 GB/s, one after the other.
  const double expected = 10e-6 + 2 * 1073741824.0 / 156e12 + 6291456.0 / 1019.5e9;
  Case c(kOps + "a100-sxm-80gb,gemm,bf16,1,,1024,1024,1024,,,,,,,,40\n", a100(), p);
  CHECK(c.full()[0] == Approx(expected));
  CHECK(expected == Approx(29.94e-6).epsilon(1e-3));
  CHECK(c.predictor.roofs()[0].compute.value == Approx(2 * 1073741824.0 / 312e12));
  CHECK(c.predictor.roofs()[0].memory.value == Approx(6291456.0 / 2039e9));
  CHECK(c.predictor.roofs()[0].kernels == 1);
}

TEST_CASE("a collective is predicted from its bytes and ranks", "[predictor]") {
  RuntimeProfile p = half_profile();
  p.values[index(collective_launch)] = 8e-6;
  p.values[index(collective_step)] = 1e-6;
  p.values[index(collective_copy_share)] = 1e30;
  p.values[index(collective_reduce)] = 1;
  // Eight ranks of an A100 with 300 GB/s of links each: 14 steps, 14/8 of 80 MB at half of the rate.
  const double expected = 8e-6 + 14e-6 + 1.75 * 80e6 / 150e9;
  Case c(kOps + "a100-sxm-80gb,all_reduce,fp16,8,,,,,,,,,,,80000000,1000\n", a100(), p);
  CHECK(c.full()[0] == Approx(expected));
}

TEST_CASE("a product is predicted under the load that it was measured under, where the profile tells loads apart") {
  RuntimeProfile p = half_profile();
  p.values[index(power_onset)] = 0.1;
  p.values[index(power_sustained)] = 1.25;
  // 8192^3: 7 ms at half of 312 TFLOP/s, and by then 1 / (1 + (1.7 / 7)^2) of the onset.
  const std::string rows =
      "hardware,op,dtype,m,n,k,power,latency_us\na100-sxm-80gb,matmul,bf16,8192,8192,8192,,8000\n"
      "a100-sxm-80gb,matmul,bf16,8192,8192,8192,short,8000\n"
      "a100-sxm-80gb,gemm,bf16,8192,8192,8192,sustained,9000\n";
  const auto seconds = [&](hardware::Power power) {
    p.choices.power = power;
    Case c(rows, a100(), p);
    return c.full();
  };
  const auto at = [](double t) { return t * (1 + 0.1 / (1 + (1.7e-3 / t) * (1.7e-3 / t))); };
  const std::vector<double> none = seconds(hardware::Power::none);
  CHECK(none[1] == none[0]);
  CHECK(none[2] == none[0]);
  const std::vector<double> by_row = seconds(hardware::Power::short_run);
  CHECK(by_row[0] == Approx(at(none[0])));
  CHECK(by_row[1] == by_row[0]);
  CHECK(by_row[2] == Approx(at(1.25 * none[0])).epsilon(0.01));
  const std::vector<double> steady = seconds(hardware::Power::sustained);
  CHECK(steady[0] == by_row[2]);
  CHECK(steady[1] == by_row[1]);
}

TEST_CASE("attention that was measured with its append has two ops", "[predictor]") {
  RuntimeProfile p = half_profile();
  const OpRow row{"attention_prefill", Dtype::bf16, AttentionShape{Phase::prefill, 2, 16, 128, 32, 8, 128, true}};
  CHECK(ops_of(row, p).size() == 1);
  p.choices.attention_appends = true;
  CHECK(ops_of(row, p).size() == 2);
  CHECK_THROWS_WITH(ops_of(OpRow{"vector:gelu", Dtype::bf16, VectorShape{"gelu", 4}}, p),
                    Catch::Contains("unknown layer 'gelu'"));
}

TEST_CASE("a decode step at half of the bandwidth takes twice its memory time", "[predictor]") {
  const RuntimeProfile p = half_profile();
  Case c(kSteps + "a100-sxm-80gb,1,half,,,llama-2-7b,bf16,1,decode,1,100,10\n", a100(), p);
  // Llama-2-7B has 6,738,415,616 parameters. All but the embedding, of which one row is read, cross the bus in 16 bits;
  // the cache holds 32 layers x 2 x 4096 elements per token.
  const double weights = (6738415616.0 - 32000 * 4096 + 4096) * 2;
  const double cache = 101 * 32 * 2 * 4096 * 2.0;
  const double by_hand = 2 * (weights + cache) / 2039e9;
  CHECK(c.full()[0] == Approx(by_hand).epsilon(0.003));  // activations
  CHECK(c.full()[0] > by_hand);
  CHECK(c.full()[0] == Approx(2 * c.predictor.roofs()[0].memory.value).epsilon(1e-6));
  CHECK(c.predictor.model_parameters(0) == 6738415616.0);
}

TEST_CASE("a step pays for itself, its sequences and its launches", "[predictor]") {
  RuntimeProfile p = half_profile();
  Case c(kSteps + "a100-sxm-80gb,1,half,graph,,llama-2-7b,bf16,4,decode,1,100,10\n" +
             "a100-sxm-80gb,1,half,graph,,llama-2-7b,bf16,4,prefill,100,0,30\n" +
             "a100-sxm-80gb,1,half,eager,,llama-2-7b,bf16,4,decode,1,100,10\n",
         a100(), p);
  const std::vector<double> before = c.full();
  const auto more = [&](Parameter parameter, double seconds) {
    ParameterValues values = p.values;
    values[index(parameter)] = seconds;
    std::vector<double> after = c.full(values);
    for (std::size_t i = 0; i < after.size(); ++i) after[i] -= before[i];
    return after;
  };
  CHECK(more(step_decode, 1)[0] == Approx(1));
  CHECK(more(step_decode, 1)[1] == Approx(0).margin(1e-12));
  CHECK(more(step_prefill, 1)[0] == Approx(0).margin(1e-12));
  CHECK(more(step_prefill, 1)[1] == Approx(1));
  CHECK(more(step_sequence, 1)[0] == Approx(4));
  CHECK(more(launch_gap, 1e-3)[0] == Approx(1e-3 * c.predictor.roofs()[0].kernels));
  // A graph is launched whole. In eager mode the host's 32 s (one per layer) hide what the device does meanwhile.
  CHECK(more(host_layer, 1)[0] == Approx(0).margin(1e-12));
  CHECK(more(host_layer, 1)[2] == Approx(32 - before[2]));
}

TEST_CASE("prompts of others lengthen the steps of a loaded server by what a mixed batch takes longer") {
  const std::string head =
      "hardware,runtime,model,weights,batch,phase,new_tokens,context,concurrency,prompt,generated,loaded,latency_ms\n";
  const std::string of = "a100-sxm-80gb,half,llama-2-7b,bf16,";
  RuntimeProfile p = half_profile();
  p.values[index(step_decode)] = 1e-3;
  // Products alone take time.
  for (const Parameter other : {vector_memory_share, vector_cached_share, prefill_share, prefill_memory_share,
                                decode_memory_share, append_share}) {
    p.values[index(other)] = 1e9;
  }
  Case c(head + of + "9,decode,1,1000,,,,,30\n" + of + "9,decode,1,1000,9,512,256,1,30\n" + of +
             "9,decode,1,1000,1,512,256,1,30\n",
         a100(), p);
  ParameterValues v = p.values;
  v[index(step_prompts)] = 1;
  const std::vector<double> once = c.full(v);
  v[index(step_prompts)] = 2;
  const std::vector<double> twice = c.full(v);
  CHECK(once[0] == twice[0]);
  CHECK(once[2] == once[0]);  // alone on the server
  CHECK(twice[1] - once[0] == Approx(2 * (once[1] - once[0])));
  // Eight others, each with a prompt in 256 steps. The step is bound by reading the weights, 521 tokens by products:
  // some 512 x 2 x 6.6e9 FLOP at 156 TFLOP/s, less the products of 9 tokens that hid behind the memory.
  const double mixed = (once[1] - once[0]) / (8.0 / 256);
  const double products = 2 * 6.6e9 * 521 / 156e12;
  const double weights = 2 * 6.6e9 / 1019.5e9;
  CHECK(mixed > products - weights);
  CHECK(mixed < 1.05 * (products - weights));  // small kernels never beat the full bandwidth
}

TEST_CASE("sequences beyond the memory wait where the runtime caps its batch", "[predictor]") {
  // A cache of 2048 tokens is 1 GiB in Llama-2-7B: the share leaves room for ten and a half.
  constexpr double kGibibyte = 1024.0 * 1024 * 1024;
  RuntimeProfile p = half_profile();
  p.values[index(memory_utilisation)] = (6738415616.0 * 2 + 10.5 * kGibibyte) / (79.25 * kGibibyte);
  std::string text = kSteps;
  for (const char* batch : {"9", "10", "11", "64"}) {
    text += std::string("a100-sxm-80gb,1,half,,,llama-2-7b,bf16,") + batch + ",decode,1,2047,10\n";
  }
  p.choices.caps_batch = true;
  const std::vector<double> capped = Case(text, a100(), p).full();
  CHECK(capped[0] < capped[1]);
  CHECK(capped[2] == capped[1]);
  CHECK(capped[3] == capped[1]);
  p.choices.caps_batch = false;
  const std::vector<double> free = Case(text, a100(), p).full();
  CHECK(free[1] == capped[1]);
  CHECK(free[3] > 2 * free[1]);
}

TEST_CASE("sequences wait that an engine's cache has no room for", "[predictor]") {
  // 65.5 GB of weights leave less than 13 GB of 85: 48,000 tokens of 256 KiB, eleven sequences of 4,352 at most.
  const hardware::Device device = hardware::load_device("h100-sxm");
  std::string text = kSteps;
  for (const char* batch : {"2", "12", "128"}) {
    text += std::string("h100-sxm,1,trtllm,,,qwen3-32b,bf16,") + batch + ",decode,1,4351,10\n";
  }
  const std::vector<double> seconds = Case(text, device, hardware::load_runtime_profile(device, "trtllm")).full();
  CHECK(seconds[0] < seconds[1]);
  CHECK(seconds[1] == seconds[2]);
}

// What an estimate chooses that runs as the profile's engine does.
estimate::Choices choices_under(const RuntimeProfile& profile, const std::string& weights) {
  estimate::Choices choices;
  choices.weights = weights;
  choices.profile = &profile;
  choices.runtime = profile.options;
  choices.dispatch = profile.prefill_dispatch;
  choices.decode_dispatch = profile.dispatch;
  return choices;
}

TEST_CASE("a step row takes the time that estimate gives the step", "[predictor]") {
  const hardware::Device device = hardware::load_device("rtx4090");
  const RuntimeProfile profile = hardware::load_runtime_profile(device, "vllm");
  const model::Decoder decoder = model::load_decoder("qwen1.5-7b");
  const estimate::Choices choices = choices_under(profile, "bf16");
  estimate::Estimator estimator(estimate::make_setup(decoder, device, choices));
  const estimate::Estimate e = estimator.run({.batch = 2, .prompt = 300, .generate = 2});
  Case c(kSteps + "rtx4090,1,vllm,,,qwen1.5-7b,bf16,2,prefill,300,0,30\n" +
             "rtx4090,1,vllm,,,qwen1.5-7b,bf16,2,decode,1,300,20\n",
         device, profile);
  CHECK(c.full()[0] == Approx(e.ttft->value).epsilon(1e-9));
  CHECK(c.full()[1] == Approx(e.tpot->value).epsilon(1e-9));
}

TEST_CASE("a step row of any plan and cache takes the time that estimate gives the step", "[predictor]") {
  const hardware::Device device = hardware::load_device("h100-sxm");
  const RuntimeProfile profile = hardware::load_runtime_profile(device, "vllm");
  const model::Decoder decoder = model::load_decoder("mixtral-8x7b");
  const std::string columns =
      "hardware,tp,ep,dp,pp,runtime,model,weights,kv,batch,phase,new_tokens,context,latency_ms\n";
  const auto check_plan = [&](const graph::Plan& plan, const std::string& kv) {
    estimate::Choices choices = choices_under(profile, "bf16");
    choices.kv = kv;
    choices.plan = plan;
    choices.plan.shard_embedding = !profile.choices.replicates_embedding;
    estimate::Estimator estimator(estimate::make_setup(decoder, device, choices));
    const estimate::Estimate e = estimator.run({.batch = 12, .prompt = 300, .generate = 2});
    REQUIRE(e.fits);
    const std::string row = fmt::format("h100-sxm,{},{},{},{},vllm,mixtral-8x7b,bf16,{},12,", plan.tensor, plan.expert,
                                        plan.data, plan.pipeline, kv);
    choices.serving.verify = 4;
    estimate::Estimator verifies(estimate::make_setup(decoder, device, choices));
    Case c(columns + row + "prefill,300,0,30\n" + row + "decode,1,300,20\n" + row + "verify,4,300,20\n", device,
           profile);
    CAPTURE(graph::to_text(plan), kv);
    CHECK(c.full()[0] == Approx(e.ttft->value).epsilon(1e-9));
    CHECK(c.full()[1] == Approx(e.tpot->value).epsilon(1e-9));
    CHECK(c.full()[2] == Approx(verifies.run(e.scenario).tpot->value).epsilon(1e-9));
    return c.full()[1];
  };
  const double tensor = check_plan({.tensor = 4}, "bf16");
  CHECK(check_plan({.tensor = 4}, "fp8") != tensor);
  CHECK(check_plan({.tensor = 4, .expert = 4}, "bf16") != tensor);
  CHECK(check_plan({.tensor = 4, .data = 2}, "bf16") < tensor);  // six of the twelve sequences each
  CHECK(check_plan({.tensor = 2, .pipeline = 2}, "bf16") != tensor);
}

TEST_CASE("a step that verifies has what a model's own layers draft", "[predictor]") {
  const hardware::Device device = hardware::load_device("ascend-910c-20");
  const RuntimeProfile profile = hardware::load_runtime_profile(device, "vllm-ascend");
  const model::Decoder decoder = model::load_decoder("qwen3.5-27b");
  auto file = std::make_shared<model::ModelFile>();
  file->decoder = model::next_token_draft(decoder);
  estimate::Choices choices = choices_under(profile, "w8a8");
  choices.plan.tensor = 2;
  choices.draft =
      estimate::Draft{.kind = estimate::Draft::Kind::next_token, .file = file, .tokens = 3, .acceptance = {}};
  estimate::Estimator estimator(estimate::make_setup(decoder, device, choices));
  const estimate::Estimate e = estimator.run({.batch = 3, .prompt = 300, .generate = 2});
  Case c(kSteps + "ascend-910c-20,2,vllm-ascend,,,qwen3.5-27b,w8a8,3,verify,4,300,20\n", device, profile);
  CHECK(c.full()[0] == Approx((e.phase("decode")->time + e.phase("draft")->time).value).epsilon(0.01));
  CHECK(c.full()[0] > 1.1 * e.phase("decode")->time.value);
}

TEST_CASE("a row of llama.cpp runs on its cards, beside its host and in its micro-batches", "[predictor]") {
  const hardware::Device device = hardware::load_device("rtx4090");
  const RuntimeProfile profile = hardware::load_runtime_profile(device, "llama.cpp");
  const std::string head =
      "hardware,runtime,model,weights,batch,phase,new_tokens,context,latency_ms,n_gpu,split,gpu_layers,host,"
      "flash_attention,options,ubatch\n";
  const std::string row = "rtx4090,llama.cpp,llama-2-7b,";
  Case c(head + row + "q4_0,1,prefill,1024,0,9,,,,,,,\n" + row + "q4_0,1,prefill,1024,0,9,2,layer,,,,,\n" + row +
             "q4_0,1,prefill,1024,0,9,2,none,,,,,\n" + row + "q4_0,1,decode,1,64,9,,,30,ryzen-7950x,1,,\n" + row +
             "q4_0,1,decode,1,64,9,,,33,,0,flash_attention,1024\n" + row + "mxfp4_moe,1,decode,1,64,9,,,,,,,\n",
         device, profile);
  const auto setup = [&](std::size_t i) -> const estimate::Setup& { return *c.predictor.setup_of(i); };
  const std::vector<double> seconds = c.full();
  CHECK(setup(0).execution.plan.devices() == 1);
  CHECK(setup(0).execution.micro_batch == 512);
  CHECK(setup(1).execution.plan ==
        graph::Plan{.pipeline = 2, .shard_embedding = setup(1).execution.plan.shard_embedding});
  CHECK(seconds[1] < 0.9 * seconds[0]);  // two micro-batches, the second one card behind
  CHECK(seconds[2] == seconds[0]);
  REQUIRE(setup(3).host != nullptr);
  CHECK(setup(3).host->name == "ryzen-7950x");
  CHECK(estimate::step_size(setup(3)).layers_on_host == 3);  // of 32; of the 30 on the card the head is one
  CHECK(setup(3).execution.runtime.flash_attention);
  CHECK(setup(4).host == nullptr);  // all layers are on the card
  CHECK_FALSE(setup(4).execution.runtime.flash_attention);
  CHECK(setup(4).execution.micro_batch == 1024);
  CHECK(seconds[5] > 0);  // though the profile's llama.cpp of 2024 could not write such a file

  const auto decoder = model::load_decoder("llama-2-7b");
  estimate::Choices choices;
  choices.weights = "q4_0";
  choices.profile = &profile;
  choices.runtime = profile.options;
  choices.plan = setup(1).execution.plan;
  estimate::Phase phase;
  estimate::Estimator(estimate::make_setup(decoder, device, choices)).prefill({.batch = 1, .prompt = 1024}, phase);
  CHECK(seconds[1] == Approx(phase.time.value).epsilon(1e-9));

  CHECK_THROWS_WITH(Case(head + row + "q4_0,1,decode,1,64,9,,,30,,,,\n", device, profile),
                    Catch::Contains("leaves layers of llama-2-7b to a CPU"));
}

TEST_CASE("layers and a host mean nothing where the device has no memory of its own", "[predictor]") {
  const hardware::Device device = hardware::load_device("ryzen-7950x");
  const RuntimeProfile profile = hardware::load_runtime_profile(device, "llama.cpp");
  const std::string head = "hardware,runtime,model,weights,batch,phase,new_tokens,context,latency_ms,gpu_layers,host\n";
  Case c(head + "ryzen-7950x,llama.cpp,llama-2-7b,q4_0,1,decode,1,64,9,0,epyc-9654\n" +
             "ryzen-7950x,llama.cpp,llama-2-7b,q4_0,1,decode,1,64,9,,\n",
         device, profile);
  CHECK(c.predictor.setup_of(0)->host == nullptr);
  CHECK(c.full()[0] == c.full()[1]);
}

TEST_CASE("the work of products is held against the 16-bit peak", "[predictor]") {
  Case c(kOps + "a100-sxm-80gb,gemm,bf16,1,,64,4096,8192,,,,,,,,40\n", a100(), half_profile());
  CHECK(c.predictor.roofs()[0].products.value == Approx(2.0 * 64 * 4096 * 8192 / 312e12));
}

TEST_CASE("a prediction that is told of one changed parameter is the full one, for every parameter", "[predictor]") {
  const hardware::Device device = hardware::load_device("rtx4090");
  SECTION("vLLM, four weight formats, host and graph") {
    std::string text = kSteps;
    for (const char* weights : {"bf16", "fp8", "gptq-int4-g128", "awq-int4-g128"}) {
      for (const char* phase : {"prefill,300,0,30\n", "decode,1,300,20\n", "prefill,17,0,30\n"}) {
        text += std::string("rtx4090,1,vllm,,,qwen1.5-1.8b,") + weights + ",2," + phase;
      }
    }
    check_changes(Case(text, device, hardware::load_runtime_profile(device, "vllm")));
  }
  SECTION("llama.cpp, kernels for few rows and for many") {
    std::string text = kSteps;
    for (const char* phase : {"prefill,1,0,9\n", "prefill,20,0,9\n", "prefill,300,0,30\n", "decode,1,300,9\n"}) {
      text += std::string("rtx4090,1,llama.cpp,,,qwen1.5-1.8b,q4_k_m,1,") + phase;
    }
    check_changes(Case(text, device, hardware::load_runtime_profile(device, "llama.cpp")));
  }
  SECTION("torchair on eight devices: collectives, chains, all ways to launch") {
    std::string text = kSteps;
    for (const char* how : {"eager,baseline", "graph,baseline", "graph,all"}) {
      for (const char* phase : {"prefill,1024,0,1000\n", "decode,1,1536,40\n"}) {
        text += std::string("atlas-800i-a2,8,torchair,") + how + ",llama-2-70b,fp16,4," + phase;
      }
    }
    const hardware::Device atlas = hardware::load_device("atlas-800i-a2");
    check_changes(Case(text, atlas, hardware::load_runtime_profile(atlas, "torchair")));
  }
  SECTION("two stages of a pipeline") {
    const std::string text =
        "hardware,tp,pp,runtime,model,weights,batch,phase,new_tokens,context,latency_ms\n"
        "rtx4090,1,2,vllm,qwen1.5-1.8b,bf16,4,prefill,300,0,30\n"
        "rtx4090,1,2,vllm,qwen1.5-1.8b,bf16,4,decode,1,300,20\n"
        "rtx4090,1,1,vllm,qwen1.5-1.8b,bf16,4,decode,1,300,20\n";
    check_changes(Case(text, device, hardware::load_runtime_profile(device, "vllm")));
  }
  SECTION("kernels") {
    check_changes(Case(kOps + "a100-sxm-80gb,gemm,bf16,1,,17,4096,4096,,,,,,,,40\n"
                              "a100-sxm-80gb,gemm,bf16,1,,1,512,16384,,,,,,,,40\n"
                              "a100-sxm-80gb,attention_prefill,bf16,1,2,,,,100,900,32,8,128,1,,40\n"
                              "a100-sxm-80gb,attention_decode,bf16,1,2,,,,1,9000,32,8,128,1,,40\n"
                              "a100-sxm-80gb,vector:layernorm,bf16,1,,64,,,,,,,,,,40\n"
                              "a100-sxm-80gb,all_reduce,fp16,4,,,,,,,,,,,1000000,40\n",
                       a100(), hardware::load_runtime_profile(a100(), "vllm")));
  }
}

TEST_CASE("rows that name no model, scheme or option are errors with their line", "[predictor]") {
  const auto error_of = [](const std::string& row) {
    try {
      Case c(kSteps + row, a100(), hardware::load_runtime_profile(a100(), "vllm"));
    } catch (const Error& error) {
      CHECK(error.diagnostics().front().where.file == "t.csv");
      CHECK(error.diagnostics().front().where.line == 2);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK_THAT(error_of("a100-sxm-80gb,1,vllm,,,lama-2-7b,bf16,1,decode,1,1,9\n"), Catch::Contains("'lama-2-7b'"));
  CHECK_THAT(error_of("a100-sxm-80gb,1,vllm,,,llama-2-7b,bf15,1,decode,1,1,9\n"), Catch::Contains("'bf15'"));
  CHECK_THAT(error_of("a100-sxm-80gb,1,vllm,,fused_qvk,llama-2-7b,bf16,1,decode,1,1,9\n"),
             Catch::Contains("'fused_qvk'"));
  CHECK_THAT(error_of("a100-sxm-80gb,1,vllm,egaer,,llama-2-7b,bf16,1,decode,1,1,9\n"), Catch::Contains("'egaer'"));
  CHECK_THAT(error_of("a100-sxm-80gb,7,vllm,,,llama-2-7b,bf16,1,decode,1,1,9\n"), Catch::Contains("heads"));
}

TEST_CASE("what a framework calls one by one takes its call, too", "[predictor]") {
  // 4096 rows of 4096 in bf16, read and written: 67.1 MB at half of 2.039 TB/s, 65.8 us.
  const std::string header = "hardware,op,dtype,m,n,mode,latency_us\n";
  const auto rows = [&](const char* hardware) {
    return header + fmt::format(
                        "{0},vector:rms_norm,bf16,4096,4096,,1\n{0},vector:rms_norm,bf16,4096,4096,graph,1\n"
                        "{0},vector:rms_norm,bf16,4096,4096,eager,1\n{0},vector:softmax,bf16,4096,4096,eager,1\n",
                        hardware);
  };
  using hardware::CallParameter;
  RuntimeProfile profile = half_profile();
  profile.values[*index("softmax", CallParameter::passes)] = 1;
  profile.values[*index("rms_norm", CallParameter::passes)] = 3;
  profile.values[*index("rms_norm", CallParameter::call)] = 100e-6;
  profile.values[*index("softmax", CallParameter::call)] = 100e-6;
  SECTION("a device with a queue: the longer of the two") {
    const std::vector<double> seconds = Case(rows("a100-sxm-80gb"), a100(), profile).full(profile.values);
    CHECK(seconds[0] == Approx(65.8e-6).epsilon(0.01));
    CHECK(seconds[1] == seconds[0]);
    // Three passes, beside which the call is nearly hidden, and one that the call nearly hides.
    const auto longer = [](double a, double b) { return std::pow(std::pow(a, 4) + std::pow(b, 4), 0.25); };
    CHECK(seconds[2] == Approx(longer(3 * seconds[0], 100e-6)).epsilon(1e-3));
    CHECK(seconds[2] < 1.02 * 3 * seconds[0]);
    CHECK(seconds[3] == Approx(longer(seconds[0], 100e-6)).epsilon(1e-3));
  }
  SECTION("a processor: one after the other") {
    const hardware::Device cpu = hardware::load_device("epyc-9654");
    const std::vector<double> seconds = Case(rows("epyc-9654"), cpu, profile).full(profile.values);
    CHECK(seconds[2] == Approx(3 * seconds[0] + 100e-6).epsilon(1e-3));
    CHECK(seconds[3] == Approx(seconds[0] + 100e-6).epsilon(1e-3));
  }
  SECTION("a profile of rows that were all called is predicted so where a row does not say") {
    profile.choices.eager = true;
    const std::vector<double> seconds = Case(rows("a100-sxm-80gb"), a100(), profile).full(profile.values);
    CHECK(seconds[0] == seconds[2]);
    CHECK(seconds[1] == Approx(65.8e-6).epsilon(0.01));
  }
  SECTION("only called rows depend on these numbers") {
    const auto depends = [&](const std::string& text) {
      const std::vector<std::size_t> all = Case(text, a100(), profile).predictor.parameters();
      return std::ranges::count(all, *index("rms_norm", CallParameter::call));
    };
    CHECK(depends(rows("a100-sxm-80gb")) == 1);
    CHECK(depends(header + "a100-sxm-80gb,vector:rms_norm,bf16,64,64,graph,1\n") == 0);
  }
}

TEST_CASE("a copy over the link takes the share of its rate that pinned memory gets, and starts", "[predictor]") {
  const std::string text =
      "hardware,op,dtype,bytes,latency_us\na100-sxm-80gb,copy_to_device,fp16,1000000000,1\n"
      "a100-sxm-80gb,copy_to_host,fp16,1000000000,1\n";
  RuntimeProfile profile = half_profile();
  profile.values[index(upload_pinned_share)] = 0.25;
  Case c(text, a100(), profile);
  const double light = 1e9 / a100().host_link->per_direction.value;
  const double start = get(profile.values, vector_launch);
  for (const double seconds : c.full(profile.values)) CHECK(seconds == Approx(4 * light + start));
  for (const RowRoof& roof : c.predictor.roofs()) CHECK(roof.roof.value == Approx(light));
  const std::vector<std::size_t> all = c.predictor.parameters();
  CHECK(all == std::vector<std::size_t>{index(vector_launch), index(upload_pinned_share)});
  // A processor's memory is the host's.
  const hardware::Device cpu = hardware::load_device("epyc-9654");
  CHECK_THROWS_WITH(Case("hardware,op,dtype,bytes,latency_us\nepyc-9654,copy_to_host,fp16,1000,1\n", cpu, profile),
                    Catch::Contains("no memory of its own"));
}

TEST_CASE("a number that changes a called row's time is one that the row depends on", "[predictor]") {
  for (const char* runtime : {"vllm", "llama.cpp", "replay"}) {
    const hardware::Device card = hardware::load_device("rtx4090");
    RuntimeProfile profile = hardware::load_runtime_profile(card, runtime);
    for (std::size_t p = 0; p < profile.values.size(); ++p) {
      if (hardware::parameter_info(p).name.starts_with("eager.")) profile.values[p] *= 3;  // where calls are seen
    }
    Case c(
        "hardware,op,dtype,batch,m,n,k,hidden,inter,topk,experts,q_len,kv_len,heads,kv_heads,head_dim,mode,latency_us\n"
        "rtx4090,gemm,fp16,,8,512,512,,,,,,,,,,eager,1\n"
        "rtx4090,moe,bf16,,8,,,2048,768,8,128,,,,,,eager,1\n"
        "rtx4090,attention_decode,fp16,2,,,,,,,,1,256,8,8,64,eager,1\n"
        "rtx4090,vector:softmax,fp16,,64,64,,,,,,,,,,,eager,1\n"
        "rtx4090,vector:sampling,fp16,,8,4096,,,,,,,,,,,eager,1\n"
        "rtx4090,gather,fp16,,64,512,4096,,,,,,,,,,eager,1\n"
        "rtx4090,kv_write,fp16,,64,,,,,,,,,,8,64,eager,1\n",
        card, profile);
    const std::vector<double> before = c.full(profile.values);
    const std::vector<std::size_t> listed = c.predictor.parameters();
    for (std::size_t p = 0; p < profile.values.size(); ++p) {
      hardware::ParameterValues values = profile.values;
      values[p] *= 1.5;
      if (c.full(values) == before) continue;
      INFO(runtime << " " << hardware::parameter_info(p).name);
      CHECK(std::ranges::count(listed, p) == 1);
    }
  }
}

}  // namespace llmperf::measure::predictor_test
