// What tests of plans are made of.
#pragma once

#include <functional>
#include <string>

#include "base/integer.h"
#include "catch.h"
#include "estimate/builtin.h"
#include "estimate/estimate.h"

namespace llmperf::test {

inline estimate::Estimator estimator(const std::string& model, const std::string& hardware, const graph::Plan& plan,
                                     const std::function<void(estimate::Choices&)>& more = {}) {
  estimate::Choices choices;
  choices.plan = plan;
  REQUIRE(graph::legal(decoder(model), plan));
  if (more) more(choices);
  return estimate::Estimator(estimate::make_setup(decoder(model), device(hardware), choices));
}

inline graph::Execution execution(const model::Decoder& m, const graph::Plan& plan) {
  graph::Execution e;
  e.model = &m;
  e.weights = model::uniform_layout(m, model::parse_weight_scheme("bf16"));
  e.kv.keys = e.kv.values = model::parse_kv_scheme("bf16");
  e.plan = plan;
  return e;
}

// Layers of the GPT block, with other dimensions; g: query heads of a KV head.
inline model::Decoder gpt_block(std::int64_t hidden, std::int64_t heads, std::int64_t g = 1, std::int64_t layers = 1) {
  const model::Decoder& block = decoder("gpt-block");
  model::Layer layer = block.kinds.front();
  layer.attention.heads = heads;
  layer.attention.kv_heads = heads / g;
  layer.attention.head_dim = layer.attention.v_head_dim = hidden / heads;
  layer.feed_forward.intermediate = 4 * hidden;
  model::Decoder m;
  m.name = "gpt";
  m.norm = block.norm;
  m.hidden = hidden;
  m.vocab = block.vocab;
  for (std::int64_t i = 0; i < layers; ++i) m.add_layer(layer);
  return m;
}

}  // namespace llmperf::test
