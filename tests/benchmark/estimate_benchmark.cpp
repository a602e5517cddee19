// Speed of the library. The figure to hold: one full estimate of an 80-layer dense model (graph, cost, roofline,
// prefill and decode integrated over its growing context, memory and capacity limits) in at most 5 us on one core,
// of a 61-layer model with experts and latent attention in at most 12 us.
#include <benchmark/benchmark.h>

#include "estimate/estimate.h"
#include "estimate/plan_search.h"
#include "estimate/step_cost.h"
#include "hardware/device.h"
#include "hardware/runtime_execution.h"
#include "model/decoder.h"

namespace {

using namespace llmperf;

void full_estimate(benchmark::State& state, const char* model_name, const char* device_name, const char* weights,
                   std::int64_t tensor = 1) {
  const model::Decoder model = model::load_decoder(model_name);
  const hardware::Device device = hardware::load_device(device_name);
  estimate::Choices choices;
  choices.weights = weights;
  choices.plan.tensor = tensor;
  estimate::Estimator estimator(estimate::make_setup(model, device, choices));
  estimate::Estimate result;
  std::int64_t prompt = 512;
  for (auto _ : state) {
    estimator.run({.batch = 4, .prompt = prompt, .generate = 256}, result);
    prompt ^= 1;  // never the same scenario twice
    benchmark::DoNotOptimize(result.total);
  }
  if (!result.fits) state.SkipWithError("the model does not fit");
}

BENCHMARK_CAPTURE(full_estimate, dense_80_layers, "llama-3-70b", "h200-sxm", "fp8");
BENCHMARK_CAPTURE(full_estimate, dense_80_layers_mha, "qwen1.5-72b", "h200-sxm", "fp8");
BENCHMARK_CAPTURE(full_estimate, sliding_windows, "gemma-2-27b", "h200-sxm", "bf16");
BENCHMARK_CAPTURE(full_estimate, experts_and_latent_attention, "deepseek-v2-lite", "h200-sxm", "bf16");
BENCHMARK_CAPTURE(full_estimate, experts_61_layers, "deepseek-v3", "h200-sxm", "fp8-block128", 8);

// The figure to hold: a step of continuous batching in at most 0.2 us once its tables are filled.
void mixed_step(benchmark::State& state, const char* model_name, std::int64_t tensor) {
  const model::Decoder model = model::load_decoder(model_name);
  const hardware::Device device = hardware::load_device("h100-sxm");
  const hardware::RuntimeProfile profile = hardware::load_runtime_profile(device, "vllm");
  estimate::Choices choices;
  choices.plan.tensor = tensor;
  choices.profile = &profile;
  choices.run_as(hardware::resolve_execution(profile, profile.options, ""));
  const estimate::StepCost cost(estimate::make_setup(model, device, choices));
  const estimate::Chunk chunk{.tokens = 256, .context = 512};
  std::int64_t i = 0;
  const auto step = [&] {
    i = (i + 1) % 4096;  // decodes that go on, at other contexts in every step
    const std::int64_t decodes = 40 + i % 24;
    return cost({.decodes = decodes,
                 .context_sum = decodes * (500 + i),
                 .context_max = 1500 + i,
                 .chunks = {&chunk, i % 2 > 0 ? 1U : 0U}});
  };
  for (int warm = 0; warm < 4096; ++warm) benchmark::DoNotOptimize(step());
  for (auto _ : state) benchmark::DoNotOptimize(step());
}
BENCHMARK_CAPTURE(mixed_step, dense_32_layers, "llama-3.1-8b", 1);
BENCHMARK_CAPTURE(mixed_step, dense_80_layers, "llama-3.1-70b", 4);
BENCHMARK_CAPTURE(mixed_step, experts_61_layers, "deepseek-v3", 8);

// The figure to hold: 10,000 legal plans enumerated, checked for legality and memory, costed and ranked in at most 0.2
// s.
void rank_plans(benchmark::State& state, const char* model_name, const char* device_name, bool training) {
  const model::Decoder model = model::load_decoder(model_name);
  const hardware::Device device = hardware::load_device(device_name);
  const estimate::Setup setup = estimate::make_setup(model, device, {});
  std::vector<graph::TrainingOptions> options;
  for (const auto recompute : {graph::Recompute::none, graph::Recompute::selective, graph::Recompute::full}) {
    for (int zero = 0; zero <= 3; ++zero) options.push_back({.recompute = recompute, .zero = zero});
  }
  // Clusters of growing size until there are enough plans.
  std::size_t plans = 0;
  std::size_t fitting = 0;
  for (auto _ : state) {
    plans = fitting = 0;
    for (std::int64_t devices = 8; plans < 10'000 && devices <= 65'536; devices *= 2) {
      const estimate::SearchSpace space{.devices = devices,
                                        .batch = 4096,
                                        .sequence = 8192,
                                        .training = training,
                                        .options = training ? options : std::vector<graph::TrainingOptions>(1)};
      std::vector<estimate::Candidate> legal = estimate::enumerate_plans(model, space).legal;
      if (legal.size() > 10'000 - plans) legal.resize(10'000 - plans);
      plans += legal.size();
      estimate::PlanSearch search(setup, space);
      for (const estimate::PlanCost& cost : search.rank(legal)) fitting += cost.fits ? 1 : 0;
    }
  }
  state.counters["plans"] = static_cast<double>(plans);
  state.counters["fitting"] = static_cast<double>(fitting);
}
BENCHMARK_CAPTURE(rank_plans, training, "llama-2-70b", "a100-sxm-80gb", true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rank_plans, training_gpt, "megatron-175b", "a100-sxm-80gb", true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rank_plans, prefill_experts, "mixtral-8x22b", "h200-sxm", false)->Unit(benchmark::kMillisecond);

void load_model(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(model::load_decoder("llama-3-70b"));
}
BENCHMARK(load_model);

}  // namespace
