// Internal to src/model: a GGUF file on its way to becoming a Decoder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/decoder.h"
#include "model/gguf_family.h"
#include "model/gguf_index.h"
#include "model/gguf_keys.h"

namespace llmperf::model {

// What has been read of a file so far. Vectors have one element per layer.
struct GgufModel {
  const GgufFamily& family;
  GgufKeys& keys;
  const GgufIndex& tensors;
  Decoder decoder = {};
  std::int64_t layers = 1;
  std::vector<std::int64_t> heads = {};
  std::vector<std::int64_t> kv_heads = {};
  std::vector<std::int64_t> widths = {};  // of feed_forward_length
  std::vector<bool> routed = {};          // which layers have experts
  Attention attention = {};               // of every layer, but for heads and window
  std::optional<std::int64_t> window = {};
  std::vector<bool> sliding = {};  // which layers see the window
  FeedForward dense = {};          // without its width
  FeedForward expert = {};

  // Index of the first layer with or without experts; none if there is no such layer.
  std::optional<std::int64_t> first_layer(bool with_experts) const {
    const auto found = std::find(routed.begin(), routed.end(), with_experts);
    if (found == routed.end()) return std::nullopt;
    return found - routed.begin();
  }
};

// Heads, windows, latents and the traits of attention. Needs layers and decoder.hidden.
void read_gguf_attention(GgufModel& model);
// Which layers have experts, their widths and traits. Needs layers.
void read_gguf_feed_forward(GgufModel& model);

}  // namespace llmperf::model
