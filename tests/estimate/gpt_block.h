// GPT blocks (four-fold MLP, one KV head per head) of any size, for tests.
#pragma once

#include <cstdint>
#include <string>

#include "model/decoder.h"

namespace llmperf {

// The built-in model `name`, whose layers are such blocks, with these dimensions.
inline model::Decoder gpt_of(const std::string& name, std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  model::Decoder m = model::load_decoder(name);
  model::Layer layer = m.kinds.front();
  layer.attention.heads = layer.attention.kv_heads = heads;
  layer.attention.head_dim = layer.attention.v_head_dim = hidden / heads;
  layer.feed_forward.intermediate = 4 * hidden;
  m.hidden = hidden;
  m.kinds.clear();
  m.layer_kinds.clear();
  m.kind_counts.clear();
  for (std::int64_t i = 0; i < layers; ++i) m.add_layer(layer);
  return m;
}

}  // namespace llmperf
