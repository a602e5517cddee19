// One small decoder for every kind of mixer, expert and residual stream that not every model has: three layers alike.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/decoder.h"

namespace llmperf::test {

inline constexpr std::int64_t kMixerHidden = 64;
inline constexpr std::int64_t kMixerVocab = 96;
inline constexpr std::int64_t kMixerLayers = 3;

inline model::Decoder decoder_of(const model::Layer& layer) {
  model::Decoder m;
  m.name = "mixer";
  m.hidden = kMixerHidden;
  m.vocab = kMixerVocab;
  for (std::int64_t i = 0; i < kMixerLayers; ++i) m.add_layer(layer);
  return m;
}

inline model::Layer layer_of(const model::Attention& attention) {
  model::Layer layer;
  layer.attention = attention;
  layer.feed_forward.intermediate = 80;
  return layer;
}
inline model::Layer layer_of(const model::Recurrent& recurrent) {
  model::Layer layer;
  layer.recurrent = recurrent;
  layer.feed_forward.intermediate = 80;
  return layer;
}

// Four query heads over two KV heads of 16.
inline model::Attention grouped_attention() {
  return {.heads = 4, .kv_heads = 2, .head_dim = 16, .v_head_dim = 16, .rotary_dim = 16};
}
inline model::Attention latent_attention() {
  model::Attention a{.heads = 4, .kv_heads = 4, .head_dim = 24, .v_head_dim = 16, .rotary_dim = 8};
  a.latent = {.q_lora_rank = 48, .kv_lora_rank = 32, .rope_dim = 8, .nope_dim = 16};
  return a;
}
// One key and value vector, a window of 8, and entries of `ratio` tokens.
inline model::Attention compressed_attention(std::int64_t ratio) {
  model::Attention a{.heads = 4, .kv_heads = 1, .head_dim = 16, .v_head_dim = 16, .rotary_dim = 8, .window = 8};
  a.one_vector = true;
  a.low_rank = {.query_rank = 24, .output_rank = 12, .output_groups = 2};
  a.compression = {.ratio = ratio, .overlaps = ratio == 4};
  if (ratio == 4) a.indexer = {.heads = 3, .head_dim = 8, .top_k = 6, .cached_bits = 4};
  return a;
}
inline model::Experts eight_experts() {
  model::Experts x;
  x.count = 8;
  x.per_token = 3;
  x.intermediate = 40;
  return x;
}

inline std::map<std::string, model::Decoder> mixer_decoders() {
  using model::RecurrentKind;
  std::map<std::string, model::Decoder> all;
  const auto recurrent = [&](const char* name, const model::Recurrent& r) { all[name] = decoder_of(layer_of(r)); };
  recurrent("gated delta net", {.kind = RecurrentKind::gated_delta_net,
                                .heads = 4,
                                .key_heads = 2,
                                .key_dim = 8,
                                .value_dim = 16,
                                .conv = 4,
                                .chunk = 5});
  recurrent("kimi delta", {.kind = RecurrentKind::kimi_delta,
                           .heads = 3,
                           .key_heads = 3,
                           .key_dim = 8,
                           .value_dim = 8,
                           .conv = 4,
                           .gate_rank = 8,
                           .chunk = 5});
  recurrent("kimi delta, full gate", {.kind = RecurrentKind::kimi_delta,
                                      .heads = 3,
                                      .key_heads = 3,
                                      .key_dim = 8,
                                      .value_dim = 8,
                                      .conv = 4,
                                      .chunk = 5});
  recurrent("mamba", {.kind = RecurrentKind::mamba,
                      .heads = 128,
                      .key_heads = 1,
                      .key_dim = 16,
                      .value_dim = 1,
                      .conv = 4,
                      .conv_bias = true,
                      .gate_rank = 4});
  recurrent("mamba2", {.kind = RecurrentKind::mamba2,
                       .heads = 8,
                       .key_heads = 2,
                       .key_dim = 16,
                       .value_dim = 8,
                       .conv = 4,
                       .conv_bias = true,
                       .chunk = 6});
  recurrent("lightning",
            {.kind = RecurrentKind::lightning, .heads = 4, .key_heads = 4, .key_dim = 16, .value_dim = 16, .chunk = 7});
  recurrent("short convolution", {.kind = RecurrentKind::short_conv,
                                  .heads = kMixerHidden,
                                  .key_heads = 1,
                                  .key_dim = 1,
                                  .value_dim = 1,
                                  .conv = 3});

  const auto attention = [&](const char* name, const model::Attention& base, auto&& change) {
    model::Attention a = base;
    change(a);
    all[name] = decoder_of(layer_of(a));
  };
  using model::Attention;
  attention("gate with queries", grouped_attention(), [](Attention& a) { a.gate = model::OutputGate::with_queries; });
  attention("gate per element", grouped_attention(), [](Attention& a) { a.gate = model::OutputGate::element; });
  attention("gate per head", grouped_attention(), [](Attention& a) { a.gate = model::OutputGate::head; });
  attention("norm over all heads", grouped_attention(), [](Attention& a) { a.qk_norm = model::QkNorm::whole; });
  attention("values are keys", grouped_attention(), [](Attention& a) { a.no_v_proj = true; });
  attention("shared cache", grouped_attention(), [](Attention& a) { a.shares_cache = true; });
  attention("chunked window", grouped_attention(), [](Attention& a) { a.window = 8, a.chunked = true; });
  attention("indexer", latent_attention(), [](Attention& a) { a.indexer = {.heads = 3, .head_dim = 8, .top_k = 7}; });
  attention("reused choice", latent_attention(),
            [](Attention& a) { a.indexer = {.heads = 3, .head_dim = 8, .top_k = 7, .reused = true}; });
  attention("pooled indexer", grouped_attention(), [](Attention& a) {
    a.indexer = {.heads = 2, .head_dim = 8, .top_k = 16, .pool = 4, .from_hidden = true, .weighted = false};
  });
  attention("compressed by 4", compressed_attention(4), [](Attention&) {});
  attention("compressed by 128", compressed_attention(128), [](Attention&) {});

  const auto experts = [&](const char* name, auto&& change) {
    model::Layer layer;
    layer.attention = grouped_attention();
    layer.feed_forward.experts = eight_experts();
    change(layer.feed_forward);
    all[name] = decoder_of(layer);
  };
  experts("latent experts", [](model::FeedForward& f) { f.experts->latent = 24; });
  experts("identity experts", [](model::FeedForward& f) { f.experts->identity = 4; });
  experts("experts beside an MLP", [](model::FeedForward& f) { f.intermediate = 72; });

  model::Layer both = layer_of(grouped_attention());
  both.recurrent = *all["mamba2"].kinds[0].recurrent;
  all["attention beside mamba2"] = decoder_of(both);
  all["hyper-connections"] = decoder_of(layer_of(grouped_attention()));
  all["hyper-connections"].streams = {.mix = model::StreamMix::hyper_connections, .count = 4};
  all["altup"] = decoder_of(layer_of(grouped_attention()));
  all["altup"].streams = {.mix = model::StreamMix::altup, .count = 4};
  all["layer embeddings"] = decoder_of(layer_of(grouped_attention()));
  all["layer embeddings"].layer_embedding_width = 16;
  all["layer embeddings"].layer_embedding_vocab = kMixerVocab;
  return all;
}

}  // namespace llmperf::test
