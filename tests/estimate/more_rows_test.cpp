// What one more row saves. A library goes over to another kernel at a number of rows that is written in its source, and
// not where that kernel is faster; but the costs of the two are physical, and no device does one row more in less than
// nine tenths of the time.
#include <fmt/format.h>

#include <set>

#include "builtin.h"
#include "catch.h"
#include "descriptor/catalog.h"
#include "estimate/estimate.h"

namespace llmperf::estimate::more_rows_test {
namespace {

constexpr double kLeast = 0.9;
constexpr std::int64_t kMost = 130;

// Numbers of rows n of which n + 1 take less than nine tenths of what n take, of sequences or of one prompt.
std::vector<std::string> drops(const hardware::Device& device, const hardware::RuntimeProfile& profile,
                               const std::string& model, const std::string& weights) {
  Choices choices;
  choices.weights = weights;
  choices.profile = &profile;
  choices.runtime = profile.options;
  choices.dispatch = profile.prefill_dispatch;
  choices.decode_dispatch = profile.dispatch;
  Estimator estimator(make_setup(test::decoder(model), device, choices));
  std::vector<std::string> found;
  for (const bool prompt : {false, true}) {
    double before = 0;
    for (std::int64_t rows = 1; rows <= kMost; ++rows) {
      // A prompt of one token has kernels of its own.
      if (prompt && rows == 1) continue;
      const graph::SequenceGroup group = prompt ? graph::SequenceGroup{1, rows, 0} : graph::SequenceGroup{rows, 1, 128};
      const double seconds = estimator.step_time({&group, 1}).value;
      if (seconds < kLeast * before) {
        found.push_back(fmt::format("{} {} on {} under {}, {} {}: {:.3f} -> {:.3f} ms", model, weights, device.name,
                                    profile.name, rows, prompt ? "tokens" : "sequences", 1e3 * before, 1e3 * seconds));
      }
      before = seconds;
    }
  }
  return found;
}

// On every device but arrays of tiles, whose mappings are searched; each profile that the runtime means somewhere.
void check(const char* runtime, const char* model, std::initializer_list<const char*> formats) {
  std::set<std::string> profiles;
  int devices = 0;
  for (const std::string& name : descriptor::names(descriptor::Kind::device)) {
    if (test::kSanitized && devices++ % 10 != 0) continue;
    const hardware::Device& device = test::device(name);
    if (device.tile_array) continue;
    const hardware::RuntimeProfile profile =
        hardware::load_runtime_profile(device, runtime, hardware::UnknownRuntime::use_default);
    profiles.insert(profile.title);
    for (const char* weights : formats) CHECK(drops(device, profile, model, weights) == std::vector<std::string>{});
  }
  CHECK(!profiles.empty());
}

}  // namespace

TEST_CASE("a step of one more row takes no less than nine tenths under llama.cpp, on any device and backend") {
  for (const char* runtime : {"llama.cpp", "llama.cpp-vulkan", "llama.cpp-rocm"}) {
    check(runtime, "llama-3.2-1b", {"q4_0", "q4_k_m", "q6_k", "f16"});
  }
}

TEST_CASE("a step of one more row takes no less than nine tenths where weights are unpacked for a dense product") {
  check("transformers", "llama-3.2-1b", {"w4a16"});
  check("exllamav2", "llama-3.2-1b", {"w4a16"});
}

}  // namespace llmperf::estimate::more_rows_test
