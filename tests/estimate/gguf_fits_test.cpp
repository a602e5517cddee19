// What is published as running on a card fits there, and is timed under llama.cpp's profile of it.
#include "catch.h"
#include "estimate/gguf_study.h"

namespace llmperf::gguf_fits_test {

using estimate::GgufStudyRow;

namespace {

const hardware::Device& cpu() {
  static const hardware::Device device = hardware::load_device("ryzen-7950x");
  return device;
}

struct Run {
  const char *model, *type, *device;
  std::int64_t devices = 1;
  std::int64_t context = 8192;
};

GgufStudyRow study(const Run& run, bool profiled = false) {
  const model::Decoder model = model::load_decoder(run.model);
  const hardware::Device device = hardware::load_device(run.device);
  std::optional<hardware::RuntimeProfile> profile;
  estimate::Choices choices;
  choices.host = &cpu();
  choices.plan.pipeline = run.devices;
  if (profiled) {
    profile = hardware::load_runtime_profile(device, "llama.cpp", hardware::UnknownRuntime::error);
    choices.profile = &*profile;
  }
  const auto* type = model::find_gguf_file_type(run.type);
  REQUIRE(type != nullptr);
  return estimate::study_gguf(model, device, {estimate::gguf_candidate(model, *type, choices.gguf_era)}, run.context,
                              choices)
      .front();
}

}  // namespace

TEST_CASE("runs that are published as fitting fit with 8192 tokens of context") {
  constexpr Run kFitting[] = {
      {"llama-3-8b", "q4_k_m", "rtx4060"},
      {"qwen3-8b", "q4_k_m", "rtx4060"},
      {"qwen3-14b", "q4_k_m", "rtx3060"},
      {"gpt-oss-20b", "mxfp4_moe", "rtx4060ti-16gb"},
      {"gpt-oss-20b", "mxfp4_moe", "rtx5080"},
      {"qwen3-30b-a3b", "q4_k_m", "rtx3090"},
      {"qwen3-30b-a3b", "q4_k_m", "rtx4090"},
      {"qwen3-32b", "q4_k_m", "rtx3090"},
      {"qwen3-32b", "q6_k", "rtx5090"},
      {"llama-3.3-70b", "q4_k_m", "rtx6000ada"},
      {"llama-3.3-70b", "q4_k_m", "rtx3090", 2},
      {"llama-3-8b", "q4_k_m", "apple-m1"},
      {"gpt-oss-120b", "mxfp4_moe", "gb10"},
      {"gpt-oss-120b", "mxfp4_moe", "strix-halo"},
      {"gpt-oss-120b", "mxfp4_moe", "apple-m4-max"},
      {"deepseek-r1", "q4_k_m", "apple-m3-ultra"},
  };
  for (const Run& run : kFitting) {
    INFO(run.model << " " << run.type << " on " << run.devices << " x " << run.device);
    CHECK(study(run).fits);
  }
}

TEST_CASE("what takes more bytes of weights than a card has does not fit") {
  // 8 bits: 8.5 of weights beside an 8 GB card's 7.78 GiB; 70B at 4.8 bits are 39.6 GiB.
  CHECK_FALSE(study({"llama-3-8b", "q8_0", "rtx4060"}).fits);
  CHECK_FALSE(study({"llama-3.3-70b", "q4_k_m", "rtx5090"}).fits);
  CHECK_FALSE(study({"gpt-oss-120b", "mxfp4_moe", "apple-m4-pro"}).fits);
}

TEST_CASE("predictions are below the speed of light, and nine of ten lie around them") {
  const GgufStudyRow row = study({"llama-3-8b", "q4_k_m", "rtx4060"}, true);
  for (const estimate::StudyRate& rate : {row.prefill, row.decode}) {
    REQUIRE(rate.predicted);
    CHECK(rate.predicted->rate < rate.bound);
    CHECK(rate.predicted->low() < rate.predicted->rate);
    CHECK(rate.predicted->low() * rate.predicted->high() == Approx(rate.predicted->rate * rate.predicted->rate));
  }
  const GgufStudyRow bound = study({"llama-3-8b", "q4_k_m", "rtx4060"});
  CHECK_FALSE(bound.decode.predicted);
  CHECK(bound.decode.bound == row.decode.bound);
}

TEST_CASE("of a model with experts that does not fit the faster split keeps experts on the host") {
  // 8 GB hold 48 layers and the head without the experts of most of them.
  const GgufStudyRow moe = study({"qwen3-30b-a3b", "q4_k_m", "rtx4060"}, true);
  CHECK_FALSE(moe.fits);
  CHECK(moe.offloaded == 49);
  REQUIRE(moe.cpu_moe);
  CHECK(*moe.cpu_moe > 24);
  CHECK(*moe.cpu_moe < 48);
  const GgufStudyRow dense = study({"qwen3-14b", "q4_k_m", "rtx4060"}, true);
  CHECK_FALSE(dense.cpu_moe);
  REQUIRE(dense.offloaded);
  CHECK(*dense.offloaded < 41);
}

TEST_CASE("layers on two cards take half the memory of each, and there is no split with the host") {
  const GgufStudyRow one = study({"llama-3.3-70b", "q4_k_m", "rtx3090"});
  const GgufStudyRow two = study({"llama-3.3-70b", "q4_k_m", "rtx3090", 2});
  CHECK_FALSE(one.fits);
  CHECK(one.offloaded);
  CHECK(two.memory.weights.value == Approx(one.memory.weights.value / 2).epsilon(0.03));
  const GgufStudyRow too_large = study({"llama-3.3-70b", "q8_0", "rtx3090", 2});
  CHECK_FALSE(too_large.fits);
  CHECK_FALSE(too_large.offloaded);
}

}  // namespace llmperf::gguf_fits_test
