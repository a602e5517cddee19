// Whole models on an array of tiles.
#include "catch.h"
#include "estimate/builtin.h"
#include "estimate/estimate.h"
#include "estimate/video.h"
#include "hardware/runtime_execution.h"
#include "model/video/video_dit.h"

namespace llmperf::estimate::tile_test {
namespace {

Estimate run(const char* options, const Scenario& scenario, const char* model = "llama-2-7b") {
  Choices choices;
  choices.runtime = hardware::parse_runtime_options(options);
  Estimator estimator(make_setup(test::decoder(model), test::device("tx8"), choices));
  return estimator.run(scenario);
}

}  // namespace

TEST_CASE("a prompt on tiles: joined vectors save their traffic, prefetched weights some more, never below the roof") {
  const Scenario prompt{1, 2048, 1};
  const Phase apart = run("all", prompt).phases[0];
  const Phase joined = run("all,joined_vectors", prompt).phases[0];
  const Phase early = run("all,joined_vectors,prefetch_weights", prompt).phases[0];
  CHECK(apart.work.matrix.value == joined.work.matrix.value);
  CHECK(joined.work.bytes().value < 0.7 * apart.work.bytes().value);
  CHECK(joined.time.value < 0.8 * apart.time.value);
  CHECK(joined.overlapped.value == 0);
  CHECK(early.overlapped.value > 0);
  CHECK(early.time.value == Approx(joined.time.value - early.overlapped.value));
  CHECK(early.ops_time.value == Approx(joined.ops_time.value));
  for (const Phase& p : {apart, joined, early}) {
    CHECK(p.time >= p.roof);
    Seconds sum;
    for (const OpEstimate& op : p.ops) {
      CHECK(op.time.total >= op.time.roof);
      sum += op.step_time();
    }
    CHECK(sum.value == Approx(p.time.value + p.overlapped.value));
  }
}

TEST_CASE("decoding on tiles takes as long as the weights and the cache take to come") {
  const Estimate e = run("all,joined_vectors", {1, 512, 9});
  const Phase& decode = e.phases[1];
  const double channel = decode.work.bytes().value / 100e9;
  CHECK(decode.time.value >= channel);
  CHECK(decode.time.value < 1.01 * channel);
  CHECK(e.tpot_last->value > e.tpot_first->value);
}

TEST_CASE("a generation on tiles takes as long as its steps, of which few contexts are mapped, and a token adds one") {
  Estimator estimator(make_setup(test::decoder("llama-2-7b"), test::device("tx8"), {}));
  const auto decode = [&](std::int64_t prompt, std::int64_t steps) {
    return estimator.run({1, prompt, steps + 1}).phases[1].time.value * static_cast<double>(steps);
  };
  double steps = 0;
  double before = 0;
  for (std::int64_t i = 0; i < 24; ++i) {  // across 512, where a sum is parted
    const double step = decode(500 + i, 1);
    steps += step;
    const double together = decode(500, i + 1);
    CHECK(together == Approx(steps).epsilon(2e-3));
    CHECK(together - before == Approx(step).epsilon(0.02));
    before = together;
  }
}

TEST_CASE("the published mapper's formulas time a prompt, too, below what its machine can do") {
  Choices choices;
  choices.tiles = mapper::TileModel::published;
  Estimator published(make_setup(test::decoder("llama-2-7b"), test::device("tx8"), choices));
  choices.tiles = mapper::TileModel::roofline;
  Estimator roofline(make_setup(test::decoder("llama-2-7b"), test::device("tx8"), choices));
  const Scenario prompt{1, 4096, 1};
  const auto time = [&](Estimator& estimator, std::string_view name) {
    const Estimate e = estimator.run(prompt);
    for (const OpEstimate& op : e.phases[0].ops) {
      if (op.op.name == name) return op.time.total.value;
    }
    return 0.0;
  };
  CHECK(time(published, "qkv_proj") == Approx(3.301525e-3).epsilon(1e-6));
  CHECK(time(published, "o_proj") == Approx(1.104042e-3).epsilon(1e-6));
  CHECK(time(published, "attention_add_norm") < time(roofline, "attention_add_norm"));
}

TEST_CASE("a video step on tiles: classes add up, joining saves") {
  const model::VideoDit m = model::load_video_dit("stdit3-xl2");
  const auto step = [&](const char* options) {
    VideoChoices choices;
    choices.scenario.shape = model::video_shape(m, model::parse_video_size("144p", ""), 17);
    choices.runtime = hardware::parse_runtime_options(options, hardware::Workload::video);
    return VideoEstimator(make_video_setup(m, test::device("tx8"), choices)).run();
  };
  const VideoEstimate apart = step("all");
  const VideoEstimate joined = step("all,joined_vectors");
  CHECK(joined.step.value < apart.step.value);
  CHECK(joined.products.value == Approx(apart.products.value));
  Seconds sum;
  for (const OpGroup& c : joined.classes) sum += c.time;
  CHECK(sum.value == Approx(joined.phases[1].ops_time.value));
}

TEST_CASE("ops are timed by mappings where no profile times them otherwise, which they bound all the same") {
  const auto is_mapped = [](const char* hw, const char* runtime) {
    const hardware::Device& device = test::device(hw);
    Choices choices;
    std::optional<hardware::RuntimeProfile> profile;
    if (runtime) {
      profile = hardware::load_runtime_profile(device, runtime, hardware::UnknownRuntime::use_default);
      choices.profile = &*profile;
      choices.run_as(hardware::resolve_execution(*profile, "all", ""));
    }
    return Estimator(make_setup(test::decoder("llama-3.2-1b"), device, choices)).machine().tiles() != nullptr;
  };
  CHECK(is_mapped("wormhole-n150", nullptr));
  CHECK(is_mapped("wormhole-n150", "tiles"));
  CHECK_FALSE(is_mapped("wormhole-n150", "vllm"));
  CHECK_FALSE(is_mapped("h100-sxm", nullptr));
}

TEST_CASE("the best mappings on a tile array bound what any software makes of it, whatever a model is made of") {
  for (const char* hw : {"tx8", "tx81", "wormhole-n150", "wormhole-n300", "blackhole-p150"}) {
    const hardware::Device& device = test::device(hw);
    // Mamba 2, experts and attention; latents; windows; Mamba; gated delta nets. Devices alike up to a rate: the first.
    const bool alike = hw == std::string("tx8") || hw == std::string("wormhole-n300");
    for (const char* model : {"granite-4.0-h-tiny", "deepseek-v2-lite", "gemma-3-1b", "jamba-v0.1", "qwen3.5-27b"}) {
      if ((alike || test::kSanitized) && model != std::string("granite-4.0-h-tiny")) continue;
      Choices none;
      none.runtime = hardware::parse_runtime_options("all,joined_vectors,prefetch_weights");
      const auto times = [&](const Choices& choices) {
        Estimator estimator(make_setup(test::decoder(model), device, choices));
        const Scenario scenario{8, 512, 2};
        Phase prefill, decode;
        estimator.prefill(scenario, prefill);
        estimator.decode_step(scenario, 512, decode);
        return std::pair(prefill.time.value, decode.time.value);
      };
      const auto bound = times(none);
      for (const char* runtime : {"vllm", "tiles", ""}) {
        const hardware::RuntimeProfile profile =
            hardware::load_runtime_profile(device, runtime, hardware::UnknownRuntime::use_default);
        Choices choices;
        choices.profile = &profile;
        choices.run_as(hardware::resolve_execution(profile, "all", ""));
        const auto predicted = times(choices);
        CAPTURE(hw, model, runtime);
        CHECK(bound.first <= predicted.first);
        CHECK(bound.second <= predicted.second);
      }
    }
  }
}

}  // namespace llmperf::estimate::tile_test
