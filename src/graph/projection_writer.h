// The ops of a layer before attention: products that give queries, keys and values, rope, the cache. Internal to
// src/graph.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "graph/attention_writer.h"

namespace llmperf::graph {

class ProjectionWriter : public AttentionWriter {
 public:
  using AttentionWriter::AttentionWriter;

 protected:
  using Role = model::Role;

  void before_attention(const model::Layer& layer) {
    gather_tokens("attention_gather", tokens_);
    if (layer.attention.latent) {
      latent_projections(layer.attention, *layer.attention.latent);
    } else {
      projections(layer.attention);
    }
  }
  // Ulysses: from all heads of some tokens to some heads of all tokens, or back.
  void exchange_heads(std::string_view name, std::int64_t width) {
    if (!split_) return;
    exchange(name, CollectiveKind::all_to_all, Axis::ulysses, p_.ulysses, static_cast<double>(tokens_),
             static_cast<double>(width));
  }

 private:
  void projections(const model::Attention& a) {
    const std::int64_t q = a.heads * a.head_dim;
    const std::int64_t k = a.kv_heads * a.head_dim;
    const std::int64_t v = a.kv_heads * a.v_head_dim;
    // One product reads one format: what a quantiser stores differently is multiplied apart.
    const bool alike = same_format(Role::q, Role::k) && same_format(Role::q, Role::v);
    if ((o_.fused_qkv || a.fused_qkv) && alike) {
      linear("qkv_proj", Split::outputs, tokens_, q + k + v, m_.hidden, a.qkv_bias, format(Role::q), 1,
             Input::gathered);
      if (chained()) split_qkv(q + k + v);
    } else {
      linear("q_proj", Split::outputs, tokens_, q, m_.hidden, a.qkv_bias, format(Role::q), 1, Input::gathered);
      linear("k_proj", Split::outputs, tokens_, k, m_.hidden, a.qkv_bias, format(Role::k), 1, Input::shared);
      linear("v_proj", Split::outputs, tokens_, v, m_.hidden, a.qkv_bias, format(Role::v), 1, Input::shared);
    }
    if (a.qk_norm) {
      rms_norm("q_norm", tokens_ * a.heads, a.head_dim);
      keeps(static_cast<double>(tokens_ * q));
      rms_norm("k_norm", tokens_ * a.kv_heads, a.head_dim);
      keeps(static_cast<double>(tokens_ * k));
    }
    if (Gemm* product = product_of(tokens_, q + k + v)) {
      join_rope_and_cache(*product, a, k + v);
      if (product->joined.cached > 0) return;
    } else {
      rope(a.heads, a.kv_heads, a.rotary_dim);
    }
    exchange_heads("q_all_to_all", q);
    exchange_heads("k_all_to_all", k);
    exchange_heads("v_all_to_all", v);
    if (!e_.training) write_cache(a);
  }
  // New keys and values go to the cache at once where it has a row for each of them on this device.
  void join_rope_and_cache(Gemm& product, const model::Attention& a, std::int64_t keys_and_values) {
    if (a.rotary_dim > 0) {
      product.joined.output = VectorKind::rope;
      product.joined.share =
          static_cast<double>((a.heads + a.kv_heads) * a.rotary_dim) / static_cast<double>(product.n);
    }
    if (e_.kv.keys == e_.kv.values && p_.sequence() == 1) {
      product.joined.cached = keys_and_values;
      product.cached = e_.kv.keys;
    }
  }
  // The kernels that follow want q, k and v in one piece each.
  void split_qkv(std::int64_t width) {
    push("split_qkv", copy_of(static_cast<double>(tokens_ * width)));
    const std::int32_t kernels = chains_ == hardware::Chains::compiled ? 1 : 3;
    launches(kernels, 0, kernels);
  }
  // The new tokens' rows, where the cache is.
  void write_cache(const model::Attention& a) {
    if (chained() && !o_.static_kv) return;  // keys and values are the cache, or appended to it
    const model::ElementFormat element = model::element_format(e_.activations);
    if (streamed_) {
      send("kv_to_host", Transfer{.rows = tokens_, .width = model::kv_values_per_token(a), .element = element});
    }
    const Place here = std::exchange(place_, group_->on_host ? Place::host : Place::device);
    each_cache(a, {"kv_write", "k_write", "v_write"},
               [&](std::string_view name, std::int64_t width, const model::ElementFormat& to) {
                 const double owners = split_ ? 1 : static_cast<double>(p_.sequence());  // of the new tokens' rows
                 const double elements = static_cast<double>(tokens_ * width) / owners;
                 push(name, Copy{.read_elements = elements,
                                 .write_elements = elements,
                                 .from = element,
                                 .to = to,
                                 .to_cache = true,
                                 .rows = static_cast<double>(tokens_) / owners});
                 launches(cache_kernels(a));
               });
    place_ = here;
  }

  // formulas of arXiv 2405.04434 section 2.1: q through its own low rank (or one matrix), k and v through one latent.
  void latent_projections(const model::Attention& a, const model::LatentAttention& l) {
    const std::int64_t q = a.heads * a.head_dim;
    if (l.q_lora_rank) {
      linear("q_a_proj", Split::none, tokens_, *l.q_lora_rank, m_.hidden, a.qkv_bias, format(Role::q_a), 1,
             Input::gathered);
      rms_norm("q_a_norm", tokens_, *l.q_lora_rank);
      keeps(static_cast<double>(tokens_ * *l.q_lora_rank));
      linear("q_b_proj", Split::none, tokens_, q, *l.q_lora_rank, false, format(Role::q_b));
    } else {
      linear("q_proj", Split::outputs, tokens_, q, m_.hidden, a.qkv_bias, format(Role::q), 1, Input::gathered);
    }
    linear("kv_a_proj", Split::none, tokens_, l.kv_lora_rank + l.rope_dim, m_.hidden, a.qkv_bias, format(Role::kv_a), 1,
           Input::shared);
    rms_norm("kv_a_norm", tokens_, l.kv_lora_rank);
    keeps(static_cast<double>(tokens_ * l.kv_lora_rank));
    rope(a.heads, 1, l.rope_dim);
    if (!e_.training) write_cache(a);
  }

  void rope(std::int64_t heads, std::int64_t kv_heads, std::int64_t rotary_dim) {
    if (rotary_dim == 0) return;
    if (o_.fused_rope) {
      vector("rope", VectorKind::rope, tokens_ * (heads + kv_heads), rotary_dim, 1, 1);
    } else if (chained()) {
      // Every layer looks up cosines and sines by position.
      push("rope_tables", copy_of(static_cast<double>(2 * tokens_ * rotary_dim)));
      launches(2, concatenates_ ? 2 : 0, 12);
      chain("rope_q", VectorKind::rope, kRopeChain, tokens_ * heads, rotary_dim);
      chain("rope_k", VectorKind::rope, kRopeChain, tokens_ * kv_heads, rotary_dim);
    } else {
      vector("rope_q", VectorKind::rope, tokens_ * heads, rotary_dim, 1, 1);
      vector("rope_k", VectorKind::rope, tokens_ * kv_heads, rotary_dim, 1, 1);
    }
  }
};

}  // namespace llmperf::graph
