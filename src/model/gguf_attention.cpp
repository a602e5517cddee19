#include <fmt/format.h>

#include <algorithm>

#include "model/gguf_model.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

void read_heads(GgufModel& model) {
  GgufKeys& keys = model.keys;
  model.heads = keys.per_layer("attention.head_count", model.layers, kHeadRange);
  if (model.heads.empty()) {
    keys.missing("attention.head_count");
    model.heads.assign(static_cast<std::size_t>(model.layers), 1);
  }
  // Latent attention is stored as one key-value head since 2025, and as many as there are query heads before.
  if (!model.family.latent) model.kv_heads = keys.per_layer("attention.head_count_kv", model.layers, kHeadRange);
  if (model.kv_heads.empty()) model.kv_heads = model.heads;
  for (std::size_t i = 0; i < model.heads.size(); ++i) {
    if (model.heads[i] % model.kv_heads[i] == 0) continue;
    keys.contradiction(
        "attention.head_count_kv",
        fmt::format("layer {}: attention.head_count ({}) is not divisible by attention.head_count_kv ({})", i,
                    model.heads[i], model.kv_heads[i]));
    break;
  }
}

void read_head_dim(GgufModel& model) {
  GgufKeys& keys = model.keys;
  Attention& attention = model.attention;
  const std::int64_t heads = model.heads.front();
  const std::int64_t by_default = std::max<std::int64_t>(1, model.decoder.hidden / heads);
  attention.head_dim = keys.int_or("attention.key_length", by_default, kHeadDimRange);
  attention.v_head_dim = keys.int_or("attention.value_length", by_default, kHeadDimRange);
  const bool derived = !keys.has("attention.key_length") || !keys.has("attention.value_length");
  if (derived && model.decoder.hidden % heads != 0) {
    keys.contradiction(
        "embedding_length",
        fmt::format("embedding_length ({}) is not divisible by attention.head_count ({})", model.decoder.hidden, heads),
        "attention.key_length and attention.value_length are needed then");
  }
  attention.rotary_dim = keys.int_or("rope.dimension_count", attention.head_dim, {0, kHeadDimRange.max});
  if (attention.rotary_dim > attention.head_dim) {
    keys.contradiction("rope.dimension_count",
                       fmt::format("rope.dimension_count ({}) is more than the width of a head ({})",
                                   attention.rotary_dim, attention.head_dim));
  }
}

// Files since April 2025 give the widths of the compressed heads as key_length and value_length, and those of the heads
// proper under names of their own.
void read_latent(GgufModel& model) {
  GgufKeys& keys = model.keys;
  Attention& attention = model.attention;
  LatentAttention latent;
  latent.q_lora_rank = keys.optional_nonzero("attention.q_lora_rank", kWidthRange);
  latent.kv_lora_rank = keys.require_int("attention.kv_lora_rank", kWidthRange);
  latent.rope_dim = keys.require_int("rope.dimension_count", kHeadDimRange);
  const bool since_2025 = keys.has("attention.key_length_mla");
  const std::string_view key_length = since_2025 ? "attention.key_length_mla" : "attention.key_length";
  attention.head_dim = keys.require_int(key_length, kHeadDimRange);
  attention.v_head_dim =
      keys.require_int(since_2025 ? "attention.value_length_mla" : "attention.value_length", kHeadDimRange);
  attention.rotary_dim = latent.rope_dim;
  latent.nope_dim = attention.head_dim - latent.rope_dim;
  if (latent.nope_dim < 1) {
    keys.contradiction(key_length, fmt::format("{} ({}) must be more than rope.dimension_count ({})", key_length,
                                               attention.head_dim, latent.rope_dim));
  }
  attention.latent = latent;
}

void read_window(GgufModel& model) {
  GgufKeys& keys = model.keys;
  const std::string_view key = "attention.sliding_window";
  model.window = keys.optional_nonzero(key, kPositionRange);
  if (!keys.has(key) && model.family.default_window > 0) model.window = model.family.default_window;
  if (!model.window) return;
  if (model.family.window_layers == GgufWindowLayers::none) {
    keys.problem(key, fmt::format("a sliding window is not supported for the architecture {}", model.family.name));
    return;
  }
  // An array says which layers slide, a number n that every n-th does not.
  const std::string_view pattern = "attention.sliding_window_pattern";
  const GgufEntry* entry = keys.find(pattern);
  std::vector<std::int64_t> values;
  if (entry != nullptr) values = keys.per_layer(pattern, model.layers, {0, kLayerRange.max});
  const bool is_period = entry != nullptr && !std::holds_alternative<GgufArray>(entry->value);
  for (std::int64_t i = 0; i < model.layers; ++i) {
    if (values.empty()) {
      model.sliding.push_back(model.family.window_layers == GgufWindowLayers::all || i % 2 == 0);
    } else {
      const std::int64_t value = values[static_cast<std::size_t>(i)];
      model.sliding.push_back(is_period ? value == 0 || i % value < value - 1 : value != 0);
    }
  }
}

// What the tensors of the first layer say; match_tensors finds the layers that differ.
void read_attention_traits(GgufModel& model) {
  const GgufFamily& always = model.family;
  const GgufIndex& tensors = model.tensors;
  const auto has = [&](std::string_view stem) { return tensors.find(0, stem) != nullptr; };
  Attention& attention = model.attention;
  attention.qkv_bias = always.qkv_bias || has("attn_qkv.bias") || has("attn_q.bias");
  attention.o_bias = always.o_bias || has("attn_output.bias");
  attention.qk_norm = always.qk_norm || has("attn_q_norm.weight");
  attention.sinks = always.sinks || has("attn_sinks.weight");
  attention.fused_qkv = has("attn_qkv.weight");
  attention.softcap = always.softcap && model.keys.optional_number("attn_logit_softcapping").value_or(1) != 0;
}

}  // namespace

void read_gguf_attention(GgufModel& model) {
  read_heads(model);
  model.family.latent ? read_latent(model) : read_head_dim(model);
  read_window(model);
  read_attention_traits(model);
}

}  // namespace llmperf::model
