// The ops of attention proper: what grows with the context. Internal to src/graph.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "graph/step_writer.h"

namespace llmperf::graph {

class AttentionWriter : public StepWriter {
 public:
  using StepWriter::StepWriter;

 protected:
  // Everything whose size grows with the context, per sequence group. It runs where the products around it do; a cache
  // that is elsewhere is sent there, once for each pass over it.
  void attention(const model::Attention& a, Part part) {
    const bool sent = group_->on_host && place_for(true, batches_[0].tokens) == Place::device;
    for (const SequenceGroup& g : step_) {
      place_ = group_->on_host ? Place::host : Place::device;
      if (!o_.static_kv && g.context > 0) concatenate(a, g);
      if (sent) place_ = Place::device;
      const Attention core = kernel(a, g);
      if (sent) send_cache(a, g, core);
      if (sent && a.latent && part == Part::all) send_kv_b(a);
      if (a.latent && latent_absorbed(a, g)) {
        absorbed(a, *a.latent, g, core);
        continue;
      }
      if (a.latent) expand(a, *a.latent, g);
      if (o_.flash_attention) {
        push("attention", core, 1, true);
      } else {
        naive(a, g);
      }
    }
  }

 private:
  // Attention over keys and values with all their heads, in one kernel.
  Attention kernel(const model::Attention& a, const SequenceGroup& g) const {
    return {.sequences = g.count,
            .q_tokens = g.new_tokens,
            .context = g.context,
            .heads = a.heads,
            .kv_heads = a.kv_heads,
            .qk_dim = a.head_dim,
            .v_dim = a.v_head_dim,
            .window = e_.window(a),
            .query_tile = query_tile(g),
            .softcap = a.softcap,
            .activation = e_.activations,
            .cached = a.latent ? activations_as_cache() : e_.kv};
  }
  void send_cache(const model::Attention& a, const SequenceGroup& g, const Attention& core) {
    const auto rows = g.count * static_cast<std::int64_t>(keys_read(core));
    each_cache(a, {"kv_to_device", "k_to_device", "v_to_device"},
               [&](std::string_view name, std::int64_t width, const model::ElementFormat& element) {
                 send(name, Transfer{.rows = rows, .width = width, .element = element}, true);
               });
  }
  // The matrix that takes latents apart, for each micro-batch.
  void send_kv_b(const model::Attention& a) {
    const Transfer matrix{.rows = a.heads * (a.latent->nope_dim + a.v_head_dim),
                          .width = a.latent->kv_lora_rank,
                          .weights = &format(model::Role::kv_b)};
    each_batch([&] { send("send_weights", matrix); });
    place_ = Place::device;
  }

  std::int64_t query_tile(const SequenceGroup& g) const {
    const std::int64_t tile = o_.attention_query_tile;
    if (!e_.weights.gguf || g.new_tokens <= e_.micro_batch) return tile;
    return tile > 0 ? std::min(tile, e_.micro_batch) : e_.micro_batch;
  }
  void concatenate(const model::Attention& a, const SequenceGroup& g) {
    const double tokens = static_cast<double>(g.count * std::min(g.context, e_.window(a).value_or(g.context)));
    each_cache(a, {"kv_concat", "k_concat", "v_concat"},
               [&](std::string_view name, std::int64_t width, const model::ElementFormat& format) {
                 const double elements = tokens * static_cast<double>(width);
                 push(name,
                      Copy{.read_elements = elements,
                           .write_elements = elements,
                           .from = format,
                           .to = format,
                           .from_cache = true,
                           .to_cache = true},
                      1, true);
               });
  }
  model::CacheScheme activations_as_cache() const {
    return {model::element_format(e_.activations), model::element_format(e_.activations)};
  }
  // Latent attention, expanded: keys and values of all tokens in the cache are computed again from their latents.
  void expand(const model::Attention& a, const model::LatentAttention& l, const SequenceGroup& g) {
    push("kv_b_proj",
         Gemm{.m = g.count * (g.context + g.new_tokens),
              .n = a.heads * (l.nope_dim + a.v_head_dim),
              .k = l.kv_lora_rank,
              .activation = e_.activations,
              .weights = &format(model::Role::kv_b)},
         1, true);
  }
  // Latent attention, absorbed: queries are taken into the latent space, one shared key/value head is read, and the
  // weighted latents are brought back. The two products use the two halves of kv_b_proj.
  void absorbed(const model::Attention& a, const model::LatentAttention& l, const SequenceGroup& g, Attention core) {
    const auto per_head = [&](std::string_view name, std::int64_t n, std::int64_t k) {
      push(name,
           Gemm{.m = g.count * g.new_tokens,
                .n = n,
                .k = k,
                .batch = a.heads,
                .activation = e_.activations,
                .weights = &format(model::Role::kv_b),
                .weight_matrices = static_cast<double>(a.heads)},
           1, true);
    };
    per_head("q_absorb", l.kv_lora_rank, l.nope_dim);
    core.kv_heads = 1;
    core.qk_dim = l.kv_lora_rank + l.rope_dim;
    core.v_dim = l.kv_lora_rank;
    core.shared_kv = true;
    core.cached = e_.kv;
    push("attention", core, 1, true);
    per_head("v_absorb", a.v_head_dim, l.kv_lora_rank);
  }

  void naive(const model::Attention& a, const SequenceGroup& g) {
    const std::int64_t total = g.context + g.new_tokens;
    // A cache that keeps only a window holds what the new tokens may see: the window before the first of them, and
    // themselves.
    const std::optional<std::int64_t> window = e_.window(a);
    const std::int64_t keys = window ? std::min(total, *window - 1 + g.new_tokens) : total;
    const std::int64_t products = g.count * a.heads;
    const bool repeat = a.heads != a.kv_heads;
    const model::CacheScheme operand = a.latent || repeat ? activations_as_cache() : e_.kv;
    if (repeat) {
      const double per_width = static_cast<double>(g.count * keys);
      const double heads = static_cast<double>(a.heads) / static_cast<double>(a.kv_heads);
      each_cache(a, {"repeat_kv", "repeat_k", "repeat_v"},
                 [&](std::string_view name, std::int64_t width, const model::ElementFormat& from) {
                   const double elements = per_width * static_cast<double>(width);
                   push(name,
                        Copy{.read_elements = elements,
                             .write_elements = elements * heads,
                             .from = from,
                             .to = model::element_format(e_.activations),
                             .from_cache = true},
                        1, true);
                 });
    }
    const bool cached = !a.latent;
    push("scores",
         Gemm{.m = g.new_tokens,
              .n = keys,
              .k = a.head_dim,
              .batch = products,
              .activation = e_.activations,
              .cached_operand = cached,
              .cached = operand.keys},
         1, true);
    const auto on_scores = [&](std::string_view name, VectorKind kind) {
      push(name, Vector{.kind = kind, .rows = products * g.new_tokens, .width = keys, .activation = e_.activations}, 1,
           true);
    };
    if (a.softcap) on_scores("softcap", VectorKind::softcap);
    on_scores("mask", VectorKind::mask);
    on_scores("softmax", VectorKind::softmax);
    push("weighted_sum",
         Gemm{.m = g.new_tokens,
              .n = a.v_head_dim,
              .k = keys,
              .batch = products,
              .activation = e_.activations,
              .cached_operand = cached,
              .cached = operand.values},
         1, true);
  }
};

}  // namespace llmperf::graph
