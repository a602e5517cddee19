// Speed of the library. The figure to hold: one full estimate of an 80-layer dense model (graph, cost, roofline,
// prefill and decode integrated over its growing context, memory and capacity limits) in at most 5 us on one core.
#include <benchmark/benchmark.h>

#include "estimate/estimate.h"
#include "hardware/device.h"
#include "model/decoder.h"

namespace {

using namespace llmperf;

void full_estimate(benchmark::State& state, const char* model_name, const char* device_name, const char* weights) {
  const model::Decoder model = model::load_decoder(model_name);
  const hardware::Device device = hardware::load_device(device_name);
  estimate::Choices choices;
  choices.weights = weights;
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

void load_model(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(model::load_decoder("llama-3-70b"));
}
BENCHMARK(load_model);

}  // namespace
