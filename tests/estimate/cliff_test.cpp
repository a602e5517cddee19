// What one more row does to the time of a step, for every number of them. A step may jump where a kernel changes
// (docs/runtimes.md, Jumps): a multiple of 64 rows is full and another row of tiles starts, or of 16 where a library
// rounds rows up to that; or the rows from which weights are unpacked first. Elsewhere it never does, by more than what
// one more row asks of the machine (experts that nobody chose before).
#include <fmt/format.h>

#include "catch.h"
#include "estimate/estimate.h"
#include "hardware/device.h"
#include "model/decoder.h"

namespace llmperf::estimate::cliff_test {
namespace {

constexpr double kJump = 0.12;
constexpr std::int64_t kMost = 8192;

struct Case {
  const char* model;
  const char* hardware;
  const char* weights;
  std::int64_t tensor = 1;
};

// The rows at which a step took off, as text.
std::vector<std::string> cliffs(const Case& c, bool prompts) {
  const hardware::Device device = hardware::load_device(c.hardware);
  const hardware::RuntimeProfile profile = hardware::load_runtime_profile(device, "");
  const model::Decoder decoder = model::load_decoder(c.model);
  Choices choices;
  choices.weights = c.weights;
  choices.profile = &profile;
  choices.runtime = profile.options;
  choices.dispatch = profile.prefill_dispatch;
  choices.decode_dispatch = profile.dispatch;
  choices.plan.tensor = c.tensor;
  Estimator estimator(make_setup(decoder, device, choices));
  const hardware::KernelChoices& kernels = profile.choices;
  const std::int64_t tile = c.weights == std::string_view("awq-int4-g128") ? kernels.format_granule : 64;
  const std::int64_t unpacked = kernels.dequantise_rows[static_cast<std::size_t>(FormatKernel::awq)];
  std::vector<std::string> found;
  Phase phase;
  double before = 0;
  double roof = 0;
  for (std::int64_t rows = 1; rows <= kMost; ++rows) {
    estimator.step(prompts ? graph::SequenceGroup{1, rows, 0} : graph::SequenceGroup{rows, 1, 16}, 0, phase);
    const double growth = before > 0 ? phase.time.value / before - 1 : 0;
    const double asked = roof > 0 ? phase.roof.value / roof - 1 : 0;
    const bool changes = (rows - 1) % tile == 0 || rows == unpacked;
    if (growth > std::max(kJump, asked) && !changes) {
      found.push_back(fmt::format("{} on {} {} {}: {:+.1f} % at {} rows", c.model, c.hardware, c.weights,
                                  prompts ? "prompt" : "decode", 100 * growth, rows));
    }
    before = phase.time.value;
    roof = phase.roof.value;
  }
  return found;
}

TEST_CASE("one more row never makes a step longer by more than 12 % but where a kernel changes") {
  for (const Case& c :
       {Case{"llama-3.1-8b", "h100-sxm", "bf16"}, Case{"llama-3.1-8b", "h100-sxm", "fp8"},
        Case{"llama-3.1-8b", "h100-sxm", "fp8-block128"}, Case{"llama-3.1-8b", "mi300x", "fp8-block128"},
        Case{"llama-3-70b", "a100-sxm-80gb", "bf16", 4}, Case{"qwen3-30b-a3b", "h100-sxm", "bf16"},
        Case{"deepseek-v3", "h200", "fp8-block128", 16}, Case{"llama-3.1-8b", "b200-sxm", "bf16"},
        Case{"qwen1.5-7b", "rtx4090", "awq-int4-g128"}, Case{"llama-2-70b", "atlas-800i-a2", "fp16", 8}}) {
    for (const bool prompts : {true, false}) CHECK(cliffs(c, prompts) == std::vector<std::string>{});
  }
}

}  // namespace
}  // namespace llmperf::estimate::cliff_test
