// The error of like predictions is printed where it was cross-validated, elsewhere that of the parts of a step.
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
    estimate::Estimator estimator(estimate::make_setup(decoder, device, choices));
    const estimate::Estimate e = estimator.run(c.scenario);
    beyond = extrapolations(estimator.setup(), c.scenario);
    prefill = band(estimator.setup(), e, "prefill");
    decode = band(estimator.setup(), e, "decode");
    text = band_text(estimator.setup(), e);
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

TEST_CASE("a prompt and a context beyond the fitted ones have a band of their parts") {
  const Said said({.runtime = "llama.cpp+llama-cpp-python", .weights = "q4_0", .scenario = {1, 16384, 128}});
  CHECK(said.beyond == Ways{"new tokens 16,384 (fitted up to 500)", "context 16,448 (fitted up to 8,001)"});
  REQUIRE(said.prefill);
  REQUIRE(said.decode);
  CHECK(said.prefill->rows == 0);
  CHECK(said.prefill->p90 > said.profile.error_of("prefill")->p90);
  CHECK(said.decode->p90 > said.profile.error_of("decode")->p90);
  CHECK(said.text.ends_with("from the errors of the parts of a step"));
}

TEST_CASE("a phase inside keeps its band beside one that is outside") {
  // 700 tokens of a prompt, where 500 were fitted; the context of 799 is inside.
  const Said said({.scenario = {1, 700, 100}});
  CHECK(said.beyond == Ways{"new tokens 700 (fitted up to 500)"});
  REQUIRE(said.prefill);
  REQUIRE(said.decode);
  CHECK(said.prefill->rows == 0);
  CHECK(said.decode->rows == 176);
  CHECK(said.text.ends_with("; cross-validated on 176 rows; prefill from the errors of its parts"));
}

TEST_CASE("two cards, another type of cache and another kind of model are wider than what was measured") {
  const Said inside({});
  const Said cards({.plan = {.tensor = 2}});
  const Said cache({.kv = "fp8"});
  const Said experts({.model = "deepseek-v2-lite", .plan = {.tensor = 2}});
  CHECK(cards.beyond == Ways{"plan tp 2 (fitted 1 device)"});
  CHECK(cache.beyond == Ways{"KV cache fp8 (fitted bf16)"});
  CHECK(experts.beyond == Ways{"plan tp 2 (fitted 1 device)", "model with experts, latent attention (fitted dense)"});
  for (const Said* said : {&cards, &cache, &experts}) {
    REQUIRE(said->decode);
    CHECK(said->decode->p90 > inside.decode->p90);
    CHECK(said->prefill->p90 > inside.prefill->p90);
  }
  CHECK(experts.decode->p90 > cards.decode->p90);
}

TEST_CASE("a class default says that nothing was measured, and its band is wider than that of the device it is from") {
  const Said said({.hardware = "h20"});
  CHECK(said.beyond.front() == "device h20 (the profile is not its own)");
  REQUIRE(said.decode);
  CHECK(said.decode->rows == 0);
  CHECK(said.decode->p90 > Said({.hardware = "rtx4090"}).decode->p90);
  CHECK(said.text.find("from the errors of the parts") != std::string::npos);
}

TEST_CASE("a profile of single kernels has a band of these for steps") {
  // By its path: by name it comes with an engine.
  const Said said(
      {.hardware = "a100-sxm-80gb", .runtime = LLMPERF_SOURCE_DIR "/hardware/runtimes/a100-sxm-80gb-vllm.yaml"});
  CHECK(said.beyond == Ways{"whole steps (fitted on single kernels)"});
  REQUIRE(said.prefill);
  CHECK(said.prefill->rows == 0);
  CHECK(said.prefill->p90 > 0.1);
  CHECK(said.decode->p90 < 0.7);
}

TEST_CASE("an engine whose steps were fitted on another device is a way beyond, and widens the band") {
  const Said said({.hardware = "a100-sxm-80gb"});
  REQUIRE_FALSE(said.beyond.empty());
  CHECK(said.beyond.front() == "vllm-async from 0.14 on this device (its steps were fitted on h100-sxm)");
  REQUIRE(said.decode);
  CHECK(said.decode->rows == 0);
  CHECK(said.decode->p90 > Said({.hardware = "h100-sxm"}).decode->p90);
}

}  // namespace llmperf::result::band_test
