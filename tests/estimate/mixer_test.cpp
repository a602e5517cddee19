// What recurrences, indexers and windows cost as a context grows, and what they keep in memory, against figures that
// follow from the models' published dimensions by hand.
#include <string>

#include "catch.h"
#include "cost/memory.h"
#include "estimate/builtin.h"
#include "estimate/estimate.h"
#include "graph/mixer_cases.h"

namespace llmperf::mixer_test {

using estimate::Choices;
using estimate::Estimate;
using estimate::Estimator;
using estimate::Phase;
using model::RecurrentKind;
using test::device;

namespace {

graph::Execution execution(const model::Decoder& m) {
  graph::Execution e;
  e.model = &m;
  e.weights = model::uniform_layout(m, model::parse_weight_scheme("bf16"));
  return e;
}

// A model of `layers` such recurrences, whose widths outside them do not matter.
model::Decoder recurrences(std::int64_t layers, const model::Recurrent& recurrent) {
  model::Decoder m;
  m.hidden = 64;
  m.vocab = 100;
  model::Layer layer;
  layer.recurrent = recurrent;
  layer.norms = 1;
  for (std::int64_t i = 0; i < layers; ++i) m.add_layer(layer);
  return m;
}

double state(const model::Decoder& m, bool gguf = false) {
  graph::Execution e = execution(m);
  e.weights.gguf = gguf;
  return cost::state_bytes(e).device.value;
}
double kv_per_token(std::int64_t layers, const model::Attention& attention) {
  model::Decoder m;
  m.hidden = 64;
  m.vocab = 100;
  for (std::int64_t i = 0; i < layers; ++i) m.add_layer(test::layer_of(attention));
  return cost::kv_cache_bytes(execution(m), 1).device.value;
}

// A decode step at a context, on a device that everything fits.
Phase decode_at(const model::Decoder& m, std::int64_t context) {
  Choices choices;
  choices.runtime.flash_attention = true;
  Estimator estimator(estimate::make_setup(m, device("h100-sxm"), choices));
  Phase phase;
  estimator.decode_step({4, 16, 2}, context, phase);
  return phase;
}
cost::Work work_of(const Phase& phase, std::string_view op) {
  cost::Work sum;
  for (const estimate::OpEstimate& each : phase.ops) {
    if (each.op.name == op) sum += each.work * static_cast<double>(each.op.count);
  }
  return sum;
}

}  // namespace

TEST_CASE("states of published models: matrices in fp32 and the inputs of convolutions in bf16") {
  const model::Decoder qwen3_next = recurrences(36, {.kind = RecurrentKind::gated_delta_net,
                                                     .heads = 32,
                                                     .key_heads = 16,
                                                     .key_dim = 128,
                                                     .value_dim = 128,
                                                     .conv = 4});
  // 36 x (32 x 128 x 128 x 4 + (2 x 16 x 128 + 32 x 128) x 3 x 2); llama.cpp keeps the inputs in fp32, too.
  CHECK(state(qwen3_next) == 77'266'944);
  CHECK(state(qwen3_next, true) == 79'036'416);
  CHECK(kv_per_token(12, {.heads = 16, .kv_heads = 2, .head_dim = 256, .v_head_dim = 256}) == 24'576);

  CHECK(state(recurrences(20, {.kind = RecurrentKind::kimi_delta,  // Kimi-Linear-48B-A3B
                               .heads = 32,
                               .key_heads = 32,
                               .key_dim = 128,
                               .value_dim = 128,
                               .conv = 4})) == 43'417'600);
  model::Attention latent{.heads = 32, .kv_heads = 32, .head_dim = 192, .v_head_dim = 128};
  latent.latent = {.q_lora_rank = std::nullopt, .kv_lora_rank = 512, .rope_dim = 64, .nope_dim = 128};
  CHECK(kv_per_token(7, latent) == 8'064);

  const auto mamba2 = [](std::int64_t heads, std::int64_t groups) {
    return model::Recurrent{.kind = RecurrentKind::mamba2,
                            .heads = heads,
                            .key_heads = groups,
                            .key_dim = 128,
                            .value_dim = 64,
                            .conv = 4,
                            .conv_bias = true};
  };
  CHECK(state(recurrences(36, mamba2(128, 1))) == 152'819'712);  // Granite-4.0-H-Small
  CHECK(state(recurrences(23, mamba2(64, 8))) == 49'082'368);    // Nemotron-3-Nano-30B-A3B
  CHECK(state(recurrences(28, {.kind = RecurrentKind::mamba,     // Jamba-v0.1
                               .heads = 8192,
                               .key_heads = 1,
                               .key_dim = 16,
                               .value_dim = 1,
                               .conv = 4,
                               .gate_rank = 256})) == 16'056'320);
  CHECK(state(recurrences(70, {.kind = RecurrentKind::lightning,  // MiniMax-Text-01
                               .heads = 64,
                               .key_heads = 64,
                               .key_dim = 128,
                               .value_dim = 128})) == 293'601'280);
}

TEST_CASE("a decode step of recurrences does not grow with the context") {
  for (const auto& [name, m] : test::mixer_decoders()) {
    if (!m.has_recurrent() || m.kinds[0].attends()) continue;
    INFO(name);
    const Phase near = decode_at(m, 100);
    const Phase far = decode_at(m, 100'000);
    CHECK(near.work.bytes().value == far.work.bytes().value);
    CHECK((near.work.matrix + near.work.vector).value == (far.work.matrix + far.work.vector).value);
    CHECK(near.time.value == far.time.value);
  }
}

TEST_CASE("beyond its top-k an indexer's decode step grows by the scores alone, before it by attention as well") {
  const model::Decoder m = test::mixer_decoders().at("indexer");  // top-k 7
  const Phase near = decode_at(m, 1000);
  const Phase far = decode_at(m, 3000);
  CHECK(work_of(near, "attention").bytes().value == work_of(far, "attention").bytes().value);
  const double grown = (far.work.bytes() - near.work.bytes()).value;
  // 4 sequences x 3 layers x 2000 keys: an index key of 8.25 bytes, a score in fp32 written and read.
  CHECK(grown == Approx(4 * 3 * 2000 * (8.25 + 4 + 4)).epsilon(1e-12));
  CHECK(work_of(decode_at(m, 6), "attention").kv_read.value > work_of(decode_at(m, 3), "attention").kv_read.value);
}

TEST_CASE("layers that reuse a choice of keys do not grow at all beyond it") {
  const model::Decoder m = test::mixer_decoders().at("reused choice");
  CHECK(decode_at(m, 1000).time.value == decode_at(m, 3000).time.value);
}

TEST_CASE("windows stop growing when they are full, and chunks start again") {
  model::Attention a = test::grouped_attention();
  a.window = 64;
  const model::Decoder slides = test::decoder_of(test::layer_of(a));
  CHECK(decode_at(slides, 30).work.bytes().value < decode_at(slides, 63).work.bytes().value);
  CHECK(decode_at(slides, 63).work.bytes().value == decode_at(slides, 5000).work.bytes().value);
  a.chunked = true;
  const model::Decoder chunks = test::decoder_of(test::layer_of(a));
  CHECK(decode_at(chunks, 63).work.bytes().value == decode_at(slides, 63).work.bytes().value);
  CHECK(decode_at(chunks, 64).work.bytes().value == decode_at(chunks, 0).work.bytes().value);
}

TEST_CASE("states are memory of every request: they take from the largest batch, whatever the context") {
  const model::Decoder m = test::mixer_decoders().at("gated delta net");
  Choices choices;
  Estimator estimator(estimate::make_setup(m, device("h100-sxm"), choices));
  const Estimate one = estimator.run({1, 100, 2});
  // 3 layers x (4 heads x 8 x 16 x 4 B + 96 channels x 3 inputs x 2 B), and no keys and values.
  CHECK(one.memory.state.value == 3 * (4 * 8 * 16 * 4 + 96 * 3 * 2));
  CHECK(one.memory.kv_cache.value == 0);
  CHECK(estimator.run({7, 5000, 2}).memory.state.value == 7 * one.memory.state.value);
}

TEST_CASE("the mean decode step of every mixer is the mean of its steps") {
  for (const auto& [name, m] : test::mixer_decoders()) {
    INFO(name);
    Estimator estimator(estimate::make_setup(m, device("h100-sxm"), Choices{}));
    const estimate::Scenario scenario{2, 3, 40};
    const Phase mean = estimator.run(scenario).phases.at(1);
    double bytes = 0;
    double flops = 0;
    for (std::int64_t step = 0; step < mean.steps; ++step) {
      Phase one;
      estimator.decode_step(scenario, scenario.prompt + step, one);
      bytes += one.work.bytes().value;
      flops += (one.work.matrix + one.work.vector).value;
    }
    CHECK(mean.work.bytes().value == Approx(bytes / static_cast<double>(mean.steps)).epsilon(1e-9));
    CHECK((mean.work.matrix + mean.work.vector).value == Approx(flops / static_cast<double>(mean.steps)).epsilon(1e-9));
  }
}

}  // namespace llmperf::mixer_test
