// How long a program takes to be read, and to be estimated.
#include <benchmark/benchmark.h>

#include <string>

#include "hardware/device.h"
#include "program/estimate.h"
#include "program/flatten.h"

namespace {

using namespace llmperf;
namespace hlo = program;

// A constant of `bytes` of text between two ops: what a dump with weights in it is made of.
std::string program_with_constant(std::size_t bytes, bool numbers) {
  std::string text = "func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {\n  %c = stablehlo.constant dense<";
  text += numbers ? "[" : "\"0x";
  while (text.size() < bytes) text += numbers ? "1.250000e+00, " : "3FA00000";
  text += numbers ? "0.0]" : "\"";
  text += "> : tensor<8xf32>\n  %0 = stablehlo.add %arg0, %c : tensor<8xf32>\n  return %0 : tensor<8xf32>\n}\n";
  return text;
}

void parse_constant(benchmark::State& state) {
  const std::string text = program_with_constant(std::size_t{64} << 20, state.range(0) != 0);
  for (auto _ : state) {
    benchmark::DoNotOptimize(hlo::parse_text("constant.mlir", text).instructions);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}
BENCHMARK(parse_constant)->ArgName("numbers")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void estimate_program(benchmark::State& state, const char* file) {
  const std::string path = std::string(LLMPERF_SOURCE_DIR "/tests/program/programs/") + file;
  const hardware::Device device = hardware::load_device("rtx4090");
  program::ProgramSetup setup;
  setup.device = &device;
  setup.cluster = cost::make_cluster(device);
  setup.fusion = hlo::Fusion::elementwise;
  const hlo::CustomCalls calls = hlo::CustomCalls::built_in();
  for (auto _ : state) {
    const hlo::Module module = hlo::parse_file(path);
    const hlo::Program program = hlo::flatten(module, {.custom_calls = &calls});
    benchmark::DoNotOptimize(program::run_program(program, setup).time());
  }
}
BENCHMARK_CAPTURE(estimate_program, llama_block, "llama_block.mlir")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(estimate_program, stdit_block, "stdit_block.mlir")->Unit(benchmark::kMicrosecond);

}  // namespace
