// The ops of attention proper: what grows with the context. Internal to src/graph.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

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
      if (concatenates(g)) concatenate(a, g);
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
        if (chained() && needs_mask()) convert_mask(g);
        push("attention", core, 1, true);
        keep_flash(a, g);
      } else {
        naive(a, g);
        if (chained() && part == Part::all) merge_heads(a, g);
      }
      if (split_) {
        pass_keys(a, g);
      } else if (part == Part::all) {
        merge_shares(a, g);
      }
    }
  }

  // ---- The mask of a step, [sequences, queries, keys]. A fused kernel over a cache without room to spare does
  // without.
  bool needs_mask() const { return !o_.flash_attention || o_.static_kv; }
  // Before the layers.
  void prepare_masks() {
    if (!chained() || !needs_mask()) return;
    const Place here = std::exchange(place_, Place::device);
    for (const SequenceGroup& g : step_) {
      mask("mask_prepare", g, kMaskKernels * in_bytes(), kMaskKernels * in_bytes());
      launches(kMaskKernels);
    }
    place_ = here;
  }

  // Heads and KV heads of one device inside attention.
  std::int64_t core_heads(const model::Attention& a) const { return a.heads / p_.ulysses; }
  std::int64_t core_kv_heads(const model::Attention& a) const {
    return a.latent ? core_heads(a) : a.kv_heads / p_.ulysses;
  }
  // Kernels that treat keys and values of a token, each apart.
  std::int32_t cache_kernels(const model::Attention& a) const {
    return chained() && !a.latent && e_.kv.keys == e_.kv.values ? 2 : 1;
  }
  std::int64_t query_ranks() const { return split_ ? p_.ring : 1; }
  std::int64_t key_ranks() const { return split_ ? 1 : p_.ring; }

 private:
  // Keys of a sequence that its new tokens' attention walks over.
  std::int64_t walked_keys(const SequenceGroup& g) const {
    const std::int64_t present = g.context + g.new_tokens;
    return g.context > 0 && o_.static_kv ? std::max(present, o_.allocated_kv) : present;
  }
  std::int64_t walked_columns(std::int64_t keys) const { return (keys + key_ranks() - 1) / key_ranks(); }

  // A mask of one byte per element, in tensors of the activation type.
  double in_bytes() const { return 8 / bits(e_.activations); }
  void mask(std::string_view name, const SequenceGroup& g, double reads, double writes) {
    push(name,
         Vector{.kind = VectorKind::mask,
                .rows = g.count * g.new_tokens / query_ranks(),
                .width = walked_columns(walked_keys(g)),
                .reads = reads,
                .writes = writes,
                .activation = e_.activations},
         1, true);
  }
  // Fused kernels take the mask in bytes.
  void convert_mask(const SequenceGroup& g) {
    mask("mask", g, 1, in_bytes());
    launches(1, 0, 4);
  }
  // From [heads, tokens] to [tokens, heads].
  void merge_heads(const model::Attention& a, const SequenceGroup& g) {
    const std::int64_t rows = g.count * g.new_tokens / query_ranks();
    push("merge_heads", copy_of(static_cast<double>(rows * core_heads(a) * a.v_head_dim)));
    launches(1, 0, 2);
  }
  // Attention over keys and values with all their heads, in one kernel.
  Attention kernel(const model::Attention& a, const SequenceGroup& g) const {
    return {.sequences = g.count,
            .q_tokens = g.new_tokens,
            .context = walked_keys(g) - g.new_tokens,
            .heads = core_heads(a),
            .kv_heads = core_kv_heads(a),
            .qk_dim = a.head_dim,
            .v_dim = a.v_head_dim,
            .window = e_.window(a),
            .query_tile = query_tile(g),
            .softcap = a.softcap,
            .query_ranks = query_ranks(),
            .key_ranks = key_ranks(),
            .activation = e_.activations,
            .cached = a.latent || e_.training ? activations_as_cache() : e_.kv};
  }
  // Queries, keys and values, and the logarithm of the sum of each row of scores.
  void keep_flash(const model::Attention& a, const SequenceGroup& g) {
    const double rows = static_cast<double>(g.count * g.new_tokens) / static_cast<double>(query_ranks());
    keeps(rows * static_cast<double>(core_heads(a) * a.head_dim + core_kv_heads(a) * (a.head_dim + a.v_head_dim)),
          4 * rows * static_cast<double>(core_heads(a)));
  }
  // Ring attention: the keys and values of one rank visit all others while those before them are multiplied.
  void pass_keys(const model::Attention& a, const SequenceGroup& g) {
    exchange("kv_ring", CollectiveKind::ring_pass, Axis::ring, p_.ring,
             static_cast<double>(g.count * (g.context + g.new_tokens)) / static_cast<double>(p_.ring),
             static_cast<double>(core_kv_heads(a) * (a.head_dim + a.v_head_dim)), true, true);
  }
  // A step that every device of the sequence axes runs whole, each with its share of the cache: the heads of all are
  // put together, and so are the sums over parts of the keys, with the maximum and the sum of each row.
  void merge_shares(const model::Attention& a, const SequenceGroup& g) {
    const auto rows = static_cast<double>(g.count * g.new_tokens);
    const std::int64_t width = core_heads(a) * a.v_head_dim;
    exchange("merge_reduce", CollectiveKind::all_reduce, Axis::ring, p_.ring, rows,
             static_cast<double>(width + 2 * core_heads(a)));
    exchange("heads_gather", CollectiveKind::all_gather, Axis::ulysses, p_.ulysses, rows,
             static_cast<double>(width * p_.ulysses));
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
    // A framework's kernel writes the new tokens, too.
    const std::int64_t present = chained() ? g.context + g.new_tokens : g.context;
    const double tokens = static_cast<double>(g.count * std::min(present, e_.window(a).value_or(present))) /
                          static_cast<double>(p_.sequence());
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
                 launches(cache_kernels(a), cache_kernels(a));
               });
  }
  model::CacheScheme activations_as_cache() const {
    return {model::element_format(e_.activations), model::element_format(e_.activations)};
  }
  // Latent attention, expanded: keys and values of all tokens in the cache are computed again from their latents.
  void expand(const model::Attention& a, const model::LatentAttention& l, const SequenceGroup& g) {
    push("kv_b_proj",
         Gemm{.m = g.count * walked_keys(g),
              .n = a.heads * (l.nope_dim + a.v_head_dim),
              .k = l.kv_lora_rank,
              .activation = e_.activations,
              .weights = &format(model::Role::kv_b)},
         1, true);
    keeps(static_cast<double>(g.count * walked_keys(g) * l.kv_lora_rank));
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
    const std::int64_t total = walked_keys(g);
    // A cache that keeps only a window holds what the new tokens may see: the window before the first of them, and
    // themselves.
    const std::optional<std::int64_t> window = e_.window(a);
    const std::int64_t keys = window ? std::min(total, *window - 1 + g.new_tokens) : total;
    const std::int64_t products = g.count * core_heads(a);
    const std::int64_t rows = g.new_tokens / query_ranks();
    const std::int64_t columns = walked_columns(keys);
    const bool repeat = a.heads != a.kv_heads;
    const bool plain = a.latent || e_.training;
    // Kernels over a cache that grows have a new shape in every step.
    const auto kernels = [&](std::int32_t number, std::int32_t views = 0) {
      launches(number, concatenates(g) ? number : 0, chained() ? views : 0);
    };
    const model::CacheScheme operand = plain || repeat ? activations_as_cache() : e_.kv;
    if (repeat) {
      const double per_width = static_cast<double>(g.count * columns) / static_cast<double>(p_.ulysses);
      const double heads = static_cast<double>(a.heads) / static_cast<double>(a.kv_heads);
      each_cache(a, {"repeat_kv", "repeat_k", "repeat_v"},
                 [&](std::string_view name, std::int64_t width, const model::ElementFormat& from) {
                   const double elements = per_width * static_cast<double>(width);
                   push(name,
                        Copy{.read_elements = elements,
                             .write_elements = elements * heads,
                             .from = e_.training ? operand.keys : from,
                             .to = model::element_format(e_.activations),
                             .from_cache = !e_.training},
                        1, true);
                   kernels(cache_kernels(a), 3 * cache_kernels(a));
                 });
    }
    const bool cached = !plain;
    push("scores",
         Gemm{.m = rows,
              .n = columns,
              .k = a.head_dim,
              .batch = products,
              .activation = e_.activations,
              .cached_operand = cached,
              .cached = operand.keys},
         1, true);
    kernels(1, 7);  // q, k and v are taken apart into heads, and the keys transposed
    // Queries and keys; the values are the weighted sum's.
    const auto local = static_cast<double>(g.count * rows);
    keeps(local * static_cast<double>((core_heads(a) + core_kv_heads(a)) * a.head_dim));
    const double scores = static_cast<double>(products * rows) * static_cast<double>(columns);
    const auto on_scores = [&](std::string_view name, VectorKind kind, const Chained& chain, double operands = 0) {
      Vector v{.kind = kind, .rows = products * rows, .width = columns, .activation = e_.activations};
      const Chain one = chained() ? chain.of(chains_) : Chain{1, 0, 1, 0, 1};
      v.reads = one.reads(e_.activations) + operands;
      v.writes = one.writes(e_.activations);
      push(name, v, 1, true);
      kernels(one.launches);
    };
    if (a.softcap) on_scores("softcap", VectorKind::softcap, kSoftcapChain);
    on_scores("mask", VectorKind::mask, kMaskChain, chained() ? 1 / static_cast<double>(core_heads(a)) : 0);
    on_scores("softmax", VectorKind::softmax, kSoftmaxChain);
    keeps(scores);
    const bool drops = e_.training && m_.dropout;
    if (drops) {
      dropout("scores_dropout", products * rows, columns);
      keeps(scores, scores);  // its result for the weighted sum, and the mask
    }
    push("weighted_sum",
         Gemm{.m = rows,
              .n = a.v_head_dim,
              .k = columns,
              .batch = products,
              .activation = e_.activations,
              .cached_operand = cached,
              .cached = operand.values},
         1, true);
    kernels(1);
    keeps(local * static_cast<double>(core_kv_heads(a) * a.v_head_dim));
  }
};

}  // namespace llmperf::graph
