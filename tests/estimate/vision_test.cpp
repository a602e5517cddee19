// Images before a prompt, and encoders.
#include <algorithm>

#include "catch.h"
#include "estimate/builtin.h"
#include "estimate/estimate.h"
#include "model/parameters.h"

namespace llmperf::estimate_vision_test {

using estimate::Estimate;
using estimate::Estimator;
using estimate::Phase;
using estimate::Scenario;
using test::decoder;
using test::device;

namespace {

Estimator estimator(const std::string& model, const estimate::Choices& choices = {}) {
  return Estimator(estimate::make_setup(decoder(model), device("h100-sxm"), choices));
}
Scenario with_images(std::int64_t images, model::ImageSize size) {
  Scenario s{.batch = 2, .prompt = 512, .generate = 16, .images = images};
  s.image = model::see(*decoder("qwen3-vl-8b").vision, size);
  s.prompt += s.image_tokens();
  return s;
}

}  // namespace

TEST_CASE("time to first token is the pass over the images and the prefill of text and images", "[vision]") {
  Estimator e = estimator("qwen3-vl-8b");
  const Scenario s = with_images(3, {1024, 1024});
  CHECK(s.prompt == 512 + 3 * 1026);
  const Estimate with = e.run(s);
  REQUIRE(with.phases.size() == 3);
  CHECK(with.phases[0].name == "vision");
  CHECK(with.phases[1].name == "prefill");
  CHECK(with.ttft->value == with.phases[0].time.value + with.phases[1].time.value);
  CHECK(with.total.value == Approx(with.ttft->value + 15 * with.tpot->value));
  // The prefill and the decode steps are those of a prompt of text of that length.
  Scenario text = s;
  text.images = 0;
  const Estimate without = e.run(text);
  CHECK(without.phases[0].time == with.phases[1].time);
  CHECK(*without.tpot == *with.tpot);
  // 6 images of 4096 patches: 3.37 TFLOP of products and 2.09 of attention each, and vector work.
  const double each = 2.0 * 4096 * (27 * (4.0 * 1152 * 1152 + 2.0 * 1152 * 4304) + 1536.0 * 1152) +
                      2.0 * 1024 * 4 * (4608.0 * 4608 + 4608.0 * 4096) + 27 * 4.0 * 1152 * 4096 * 4096;
  CHECK(with.phases[0].work.matrix.value == Approx(6 * each));
}

TEST_CASE("a model that reads images holds its tower with images or without", "[vision]") {
  const double tower = 2.0 * 576'388'336;
  Estimator own = estimator("qwen3-vl-8b");
  Estimator text = estimator("qwen3-8b");
  const Scenario s{.batch = 2, .prompt = 512, .generate = 16};
  CHECK(own.memory(s).weights.value == text.memory(s).weights.value + tower);
  // Whatever the language model is stored in.
  estimate::Choices four_bits;
  four_bits.weights = "w4a16";
  Estimator narrow = estimator("qwen3-vl-8b", four_bits);
  Estimator narrow_text = estimator("qwen3-8b", four_bits);
  CHECK(narrow.memory(s).weights.value == narrow_text.memory(s).weights.value + tower);
  // Every device of the tensor axis holds all of it, of a pipeline the first stage.
  estimate::Choices two;
  two.plan.tensor = 2;
  CHECK(estimator("qwen3-vl-8b", two).memory(s).weights.value ==
        estimator("qwen3-8b", two).memory(s).weights.value + tower);
}

TEST_CASE("more, larger images never take less time or memory", "[vision]") {
  Estimator e = estimator("qwen3-vl-8b");
  double time = 0;
  double memory = 0;
  for (const std::int64_t images : {1, 2, 4, 16}) {
    const Scenario s = with_images(images, {512, 512});
    const Estimate result = e.run(s);
    CHECK(result.phases[0].time.value > time);
    CHECK(result.memory.total().value > memory);
    time = result.phases[0].time.value;
    memory = result.memory.total().value;
  }
  CHECK(e.run(with_images(1, {2048, 2048})).ttft->value > e.run(with_images(1, {1024, 1024})).ttft->value);
}

TEST_CASE("a decode step alone sees no images", "[vision]") {
  estimate::Choices choices;
  choices.serving.phases = estimate::Served::decode;
  Estimator e = estimator("qwen3-vl-8b", choices);
  const Estimate result = e.run(with_images(2, {512, 512}));
  REQUIRE(result.phases.size() == 1);
  CHECK(result.phases[0].name == "decode");
}

TEST_CASE("an encoder is one pass: no cache, no decode, sequences per second", "[encoder]") {
  Estimator e = estimator("bge-m3");
  const Estimate result = e.run({.batch = 32, .prompt = 512});
  REQUIRE(result.phases.size() == 1);
  const Phase& pass = result.phases[0];
  CHECK(pass.name == "encode");
  CHECK(result.memory.kv_cache.value == 0);
  CHECK_FALSE(result.tpot);
  CHECK(result.tokens_per_second == 0);
  CHECK(*result.ttft == pass.time);
  CHECK(result.sequences_per_second == 32 / pass.time.value);
  CHECK(result.prefill_tokens_per_second == Approx(512 * result.sequences_per_second));
  // 24 layers of 2 tokens (4 h^2 + 2 h i), attention of every token to all 512 of its sequence, and the pooler's row.
  const double tokens = 32 * 512;
  const double h = 1024;
  const double expected = 24 * (2 * tokens * (4 * h * h + 2 * h * 4096) + 4 * tokens * 512 * h) + 2 * 32 * h * h;
  CHECK(pass.work.matrix.value == Approx(expected).epsilon(1e-12));
  CHECK(pass.work.kv_read.value == 0);
  CHECK(pass.work.kv_written.value == 0);
}

TEST_CASE("a reranker is its decoder's prefill without the language model's head", "[encoder]") {
  Estimator reranker = estimator("qwen3-reranker-0.6b");
  Estimator decoder = estimator("qwen3-0.6b");
  const Scenario texts{.batch = 8, .prompt = 512};
  const Estimate result = reranker.run(texts);
  REQUIRE(result.phases.size() == 1);
  CHECK(result.memory.kv_cache.value == 0);
  CHECK(result.sequences_per_second == 8 / result.ttft->value);
  // Attention is causal as there; the head is one row in place of 151,936, for the last token of 8 texts.
  const double head = 2.0 * 8 * 1024;
  CHECK(result.phases[0].work.matrix.value - head ==
        Approx(decoder.run(texts).phase("prefill")->work.matrix.value - head * 151936).epsilon(1e-12));
}

TEST_CASE("an encoder's time grows with what it reads, and its batch is bounded by its activations", "[encoder]") {
  Estimator e = estimator("bge-m3");
  const Estimate small = e.run({.batch = 8, .prompt = 512});
  const Estimate large = e.run({.batch = 64, .prompt = 512});
  CHECK(large.ttft->value > small.ttft->value);
  CHECK(large.sequences_per_second >= small.sequences_per_second);
  CHECK(small.largest_batch > 64);
  Scenario most{.batch = small.largest_batch, .prompt = 512};
  CHECK(e.fits(most));
  ++most.batch;
  CHECK_FALSE(e.fits(most));
}

}  // namespace llmperf::estimate_vision_test
