// The error of like predictions is printed where it was cross-validated, and nowhere else.
#include "catch.h"
#include "model/model_file.h"
#include "result/basis.h"

namespace llmperf::result::band_test {
namespace {

struct Case {
  std::string model = "llama-3.1-8b";
  std::string hardware = "rtx4090";
  std::string runtime = {};
  std::string weights = "bf16";
  std::string kv = {};
  graph::Plan plan = {};
  estimate::Scenario scenario = {.batch = 1, .prompt = 500, .generate = 100};
};

// What is said of a case, and the bands of its two phases.
struct Said {
  explicit Said(const Case& c)
      : device(hardware::load_device(c.hardware)),
        profile(hardware::load_runtime_profile(device, c.runtime)),
        decoder(model::load_decoder(c.model)) {
    estimate::Choices choices;
    choices.weights = c.weights;
    if (!c.kv.empty()) choices.kv = c.kv;
    choices.profile = &profile;
    choices.runtime = profile.options;
    choices.plan = c.plan;
    const estimate::Estimator estimator(estimate::make_setup(decoder, device, choices));
    beyond = extrapolations(estimator.setup(), c.scenario);
    prefill = band(estimator.setup(), c.scenario, "prefill");
    decode = band(estimator.setup(), c.scenario, "decode");
    text = band_text(estimator.setup(), c.scenario);
  }
  hardware::Device device;
  hardware::RuntimeProfile profile;
  model::Decoder decoder;
  std::vector<std::string> beyond;
  std::optional<Band> prefill;
  std::optional<Band> decode;
  std::string text;
};

using Ways = std::vector<std::string>;

}  // namespace

TEST_CASE("inside of what was fitted both phases have the errors of the rows left out") {
  const Said said({});
  CHECK(said.beyond.empty());
  REQUIRE(said.prefill);
  REQUIRE(said.decode);
  CHECK(said.prefill->rows == said.profile.error_of("prefill")->rows);
  CHECK(said.decode->mean == Approx(said.profile.error_of("decode")->mean).epsilon(0.02));
  CHECK(said.text.find("cross-validated on 386 rows") != std::string::npos);
}

TEST_CASE("a prompt and a context beyond the fitted ones have no band") {
  const Said said({.runtime = "llama.cpp", .weights = "q4_0", .scenario = {1, 32768, 128}});
  CHECK(said.beyond == Ways{"new tokens 32768 (fitted up to 500)", "context 32832 (fitted up to 8001)"});
  CHECK_FALSE(said.prefill);
  CHECK_FALSE(said.decode);
  CHECK(said.text.starts_with("none: extrapolated"));
}

TEST_CASE("a phase inside keeps its band beside one that is outside") {
  // 700 tokens of a prompt, where 500 were fitted; the context of 799 is inside.
  const Said said({.scenario = {1, 700, 100}});
  CHECK(said.beyond == Ways{"new tokens 700 (fitted up to 500)"});
  CHECK_FALSE(said.prefill);
  CHECK(said.decode);
  CHECK(said.text.starts_with("prefill none (extrapolated), decode +- "));
}

TEST_CASE("two cards have no band where one was measured") {
  const Said said({.plan = {.tensor = 2}});
  CHECK(said.beyond == Ways{"plan tp 2 (fitted 1 device)"});
  CHECK_FALSE(said.prefill);
  CHECK_FALSE(said.decode);
}

TEST_CASE("another type of cache and another kind of model have no band") {
  CHECK(Said({.kv = "fp8"}).beyond == Ways{"KV cache fp8 (fitted bf16)"});
  CHECK_FALSE(Said({.kv = "fp8"}).decode);
  const Said experts({.model = "deepseek-v2-lite"});
  CHECK(experts.beyond == Ways{"model with experts, latent attention (fitted dense)"});
  CHECK_FALSE(experts.prefill);
}

TEST_CASE("a class default says that nothing was measured, and its band is an assumption") {
  const Said said({.hardware = "h200-sxm"});
  CHECK(said.beyond == Ways{"device h200-sxm (nothing was measured on it)"});
  REQUIRE(said.decode);
  CHECK(said.decode->rows == 0);
  CHECK(said.text.find("an assumption") != std::string::npos);
}

TEST_CASE("beyond what was fitted a profile may assume a band, and says so") {
  const Said said({.hardware = "h100-sxm"});  // of the models that were measured none is as small
  CHECK(said.beyond.size() == 3);
  REQUIRE(said.decode);
  CHECK(said.decode->rows == 0);
  CHECK(said.decode->mean == 0.2);
  CHECK(said.text.ends_with("an assumption: such steps were not measured on this device"));
}

TEST_CASE("a profile of single kernels has no band for steps") {
  // By its path: by name it comes with an engine.
  const Said said(
      {.hardware = "a100-sxm-80gb", .runtime = LLMPERF_SOURCE_DIR "/hardware/runtimes/a100-sxm-80gb-vllm.yaml"});
  CHECK(said.beyond == Ways{"whole steps (fitted on single kernels)"});
  CHECK_FALSE(said.prefill);
  CHECK_FALSE(said.decode);
  CHECK(said.text.starts_with("none: no whole steps were measured"));
}

TEST_CASE("an engine of another device's steps brings what it promises beyond its range") {
  const Said said({.hardware = "a100-sxm-80gb"});
  REQUIRE_FALSE(said.beyond.empty());
  CHECK(said.beyond.front() == "vllm-v1 on this device (its steps were fitted on h100-sxm)");
  REQUIRE(said.decode);
  CHECK(said.decode->rows == 0);
  CHECK(said.decode->mean == said.profile.error_of("decode beyond")->mean);
}

}  // namespace llmperf::result::band_test
