#include "cost/memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/integer.h"
#include "cost/formulas.h"
#include "model/parameters.h"
#include "model/video/video_dit.h"

namespace llmperf::cost {
namespace {

// A device's share of a layer: the layer itself where a plan divides none of it, which spares the copy in the search
// for the largest batch.
const model::Layer& local(const model::Layer& layer, const graph::Plan& plan, model::Layer& share) {
  if (plan.tensor == 1 && plan.expert == 1) return layer;
  share = graph::shard(layer, plan);
  return share;
}

// Tensors of attention, in elements.
template <class N>
N attention_elements(const graph::Execution& e, const model::Attention& a, const graph::SequenceGroup& g,
                     const StepShare& share, const N& tokens) {
  const Let<N> let;
  const N heads = let("heads", a.heads, "query heads");
  const N qk_dim = let("qk_dim", a.head_dim, "width of a query and a key head");
  const N v_dim = let("v_dim", a.v_head_dim, "width of a value head");
  const N keys = let("keys", g.context + g.new_tokens, "tokens a sequence attends to");
  const N sequences = let("sequences", g.count, "sequences of the step");
  N elements =
      tokens * (heads * qk_dim + let("kv_heads", a.kv_heads, "key and value heads") * (qk_dim + v_dim) + heads * v_dim);
  if (a.latent && !graph::latent_absorbed(a, g, e.runtime.absorbed_prompts)) {
    const N nope_dim = let("nope_dim", a.latent->nope_dim, "part of a key head without position");
    elements = let.noted(elements + sequences * keys * heads * (nope_dim + v_dim),
                         "keys and values are expanded from the latents");
  }
  const bool flash = e.runtime.flash_attention;
  if (flash && !e.runtime.repeated_kv) return elements;
  if (!flash)
    elements = let.noted(elements + 2 * tokens * heads * keys /
                                        let.factor("score_ranks", share.score_ranks, "devices that share the scores"),
                         "without flash attention the scores and their softmax exist in memory");
  if (a.heads == a.kv_heads || (flash && a.latent)) return elements;
  return elements +
         sequences * keys * heads * (qk_dim + v_dim) /
             let.factor("repeat_ranks", share.repeat_ranks, "devices that share the repeated keys and values");
}

// What goes into a recurrence, its convolved share and its result.
template <class N>
N recurrent_elements(const model::Recurrent& r, const N& tokens) {
  const Let<N> let;
  const model::RecurrentProducts products = model::recurrent_products(r);
  return tokens * (let("inputs", products.in + products.gates, "columns of the products before the recurrence") +
                   let("conv_channels", r.conv > 0 ? r.conv_channels() : 0, "channels of the convolution") +
                   let("values", r.values(), "elements of all value heads"));
}

// `apart`: routed experts are on devices of their own, with what is between their products.
template <class N>
N feed_forward_elements(const model::FeedForward& f, bool apart, const StepShare& share, const N& tokens,
                        const N& hidden) {
  const Let<N> let;
  const auto width_of = [&](const model::Experts& x) { return apart ? x.shared_intermediate : x.intermediate; };
  const std::int64_t width = f.experts ? width_of(*f.experts) : f.intermediate;
  const N inner = let("matrices", f.gated ? 3 : 2, f.gated ? "gate, up and their product" : "up and its activation") *
                  let("intermediate", width, "width of the MLP");
  if (!f.experts) return tokens * (hidden + inner);
  const N per_token = let("experts_per_token", f.experts->per_token, "experts a token is sent to");
  const N shared = f.experts->shared_intermediate > 0 ? hidden : N(0);
  if (apart) {
    const N copies = let("copies", share.expert_copies, "tokens that a device routes") * per_token * hidden;
    return tokens * hidden + largest_of({copies, tokens * (hidden + inner)});
  }
  if (share.expert_copies == share.tokens) return tokens * (hidden + per_token * (hidden + inner) + shared);
  const N routed =
      let("routed", share.expert_copies, "tokens that the experts of a device serve, per expert of a token");
  return tokens * (hidden + shared) + routed * per_token * (hidden + inner);
}

// What may be alive at once in a step, in bytes: the residual stream, and attention, the MLP or the head.
template <class N, class Visit>
void visit_alive(const graph::Execution& e, const graph::SequenceGroup& g, std::string_view step, Visit&& visit) {
  const Let<N> let;
  const StepShare share = step_share(e, g);
  const N tokens = let("tokens", share.tokens, "tokens of the {}", step);
  const N hidden = let("hidden", e.model->hidden, "width of the residual stream");
  const N element =
      let("element_bytes", bytes_per_element(e.activations), "bytes of an activation ({})", e.activations);
  const N residual = e.plan.devices() > 1 ? let("residual", share.residual_elements,
                                                "elements of the residual stream: tokens * hidden, or a device's share")
                                          : tokens * hidden;
  const N stream = residual * let.factor("streams", e.model->streams.count, "residual streams") * element;
  model::Layer scratch;
  for (const model::Layer& kind : e.model->kinds) {
    const model::Layer& layer = local(kind, e.plan, scratch);
    if (layer.attends()) {
      visit("attention", stream + grouped(attention_elements(e, layer.attention, g, share, tokens)) * element);
    }
    if (layer.recurrent) {
      visit("recurrence", stream + grouped(recurrent_elements(*layer.recurrent, tokens)) * element);
    }
    if (!layer.has_feed_forward()) continue;
    visit("MLP",
          stream + grouped(feed_forward_elements(layer.feed_forward, e.plan.afd, share, tokens, hidden)) * element);
  }
  if (e.model->encoder) return;
  const bool last = e.runtime.last_token_logits && !g.verifies;
  const N rows = let("rows", last ? d(g.count) : share.tokens,
                     last ? "logits of the last token of each sequence" : "logits of every token");
  visit("head", let.noted(stream + rows * let("vocab", e.model->vocab, "entries of the vocabulary") *
                                       (element + bytes_per_element(Dtype::fp32)),
                          "logits and their fp32 softmax"));
}

// On a device of experts: its share of the copies of the tokens of all devices of attention.
template <class N>
N expert_activation(const graph::Execution& e, const graph::SequenceGroup& g) {
  const Let<N> let;
  const model::FeedForward f = graph::shard(*e.model->first_routed(), e.plan).feed_forward;
  const model::Experts& x = *f.experts;
  const std::int64_t routed = graph::routed_tokens(e.plan, g.count * g.new_tokens);
  return let("tokens", d(g.count * g.new_tokens * e.plan.data), "tokens of all devices of attention") *
         let("experts_per_token", x.per_token, "experts a token is sent to") /
         let("expert_devices", e.plan.expert, "devices of experts") *
         let.factor("imbalance", graph::load_of_device(e, x, routed).imbalance, "of the busiest, over the mean") *
         grouped(2 * let("width", x.latent > 0 ? x.latent : e.model->hidden, "width of a token, and of its result") +
                 let("matrices", f.gated ? 3 : 2, f.gated ? "gate, up and their product" : "up and its activation") *
                     let("intermediate", x.intermediate, "width of an expert")) *
         let("element_bytes", bytes_per_element(e.activations), "bytes of an activation ({})", e.activations);
}

template <class N>
N vision_alive(const graph::Execution& e, const graph::SeenImages& images) {
  const Let<N> let;
  const model::VisionTower& t = *e.model->vision;
  const std::int64_t seen = graph::images_of_device(e, images.count);
  const N patches = let("patches", seen * images.each.tiles * (images.each.patches + (t.class_token ? 1 : 0)),
                        "patches of the images that a device sees at once");
  const N hidden = let("tower_hidden", t.hidden, "width of the tower");
  const N attention = let("tower_attention", 2 * (t.heads + t.kv_heads) * t.head_dim, "queries, keys, values, result");
  const N mlp = hidden + let("tower_matrices", t.gated ? 3 : 2,
                             t.gated ? "gate, up and their product" : "up and its activation") *
                             let("tower_intermediate", t.intermediate, "width of the tower's MLP");
  const N rows = let("image_tokens", images.count * images.each.tokens, "rows that the tower makes of all images") *
                 let("hidden", t.output(), "width of the residual stream") *
                 let.factor("levels", 1 + t.deepstack, "results of a token: the last and those of inner layers");
  return grouped(patches * grouped(hidden + largest_of({attention, mlp})) + rows) *
         let("element_bytes", bytes_per_element(e.activations), "bytes of an activation ({})", e.activations);
}

// Keys and values of a layer that keeps `kept` of `tokens` tokens, entries that stand for several of them, index keys.
template <class N>
N layer_kv(const model::CacheScheme& kv, const model::Attention& a, const model::IndexRow& index, const N& kept,
           const N& tokens, std::string_view suffix) {
  const Let<N> let;
  const Let<N> of_kind(suffix);
  const model::CacheRow row = model::cache_row(a);
  N rows = kept;
  if (a.compression) {
    rows = grouped(kept + tokens / of_kind("ratio", a.compression->ratio, "tokens that a compressed entry stands for"));
  }
  N bytes = 0;
  if (a.latent || a.one_vector || kv.keys == kv.values) {
    bytes = rows *
            of_kind("values_per_token", row.keys + row.values,
                    a.latent       ? "latent and rotary key of a token"
                    : a.one_vector ? "the vector that is key and value of a token"
                                   : "keys and values of a token, all KV heads") *
            let("kv_element_bytes", bytes_per_element(kv.keys), "bytes of a cached value ({})", kv.keys.name);
  } else {
    bytes =
        rows * (of_kind("keys", row.keys, "key elements of a token, all KV heads") *
                    let("key_bytes", bytes_per_element(kv.keys), "bytes of a cached key ({})", kv.keys.name) +
                of_kind("values", row.values, "value elements of a token, all KV heads") *
                    let("value_bytes", bytes_per_element(kv.values), "bytes of a cached value ({})", kv.values.name));
  }
  if (index.elements == 0) return bytes;
  return grouped(bytes + tokens * of_kind("index_bytes", index.bytes(), "bytes of index keys that a token adds"));
}

// States in fp32, and the inputs that a convolution or a compressor waits with.
template <class N>
N layer_state(const graph::Execution& e, const model::Layer& layer, std::string_view suffix) {
  const Let<N> of_kind(suffix);
  const Let<N> let;
  constexpr double kWide = 4;
  N bytes = 0;
  if (layer.recurrent) {
    const model::Recurrent& r = *layer.recurrent;
    const double narrow = e.weights.gguf ? kWide : bytes_per_element(e.activations);
    if (r.state_elements() > 0) {
      bytes = of_kind("heads", r.heads, "heads, each with a state") * of_kind("key_dim", r.key_dim, "rows of a state") *
              of_kind("value_dim", r.value_dim, "columns of a state") *
              let("state_element_bytes", kWide, "bytes of an element of a state");
    }
    if (r.conv > 0) {
      bytes = bytes + of_kind("conv_channels", r.conv_channels(), "channels of the convolution") *
                          of_kind("conv_inputs", r.conv - 1, "inputs that it still needs") *
                          let("conv_element_bytes", narrow, "bytes of one");
    }
  }
  if (const auto& c = layer.attention.compression) {
    const std::int64_t width = (c->overlaps ? 2 : 1) * layer.attention.head_dim;
    bytes = bytes + 2 * of_kind("ratio", c->ratio, "tokens of an entry that is not complete") *
                        of_kind("entry_width", width, "elements of a key, and of a gate, of one") * kWide;
  }
  return bytes;
}

// Tokens of a micro-batch, and whether one is large enough for the device to compute what the host keeps.
std::int64_t batch_tokens(const graph::Execution& e, std::int64_t cells) { return std::min(e.micro_batch, cells); }
bool is_sent(const graph::Execution& e, std::int64_t cells) { return e.streams(batch_tokens(e, cells)); }

// The candidates among which the largest counts, in elements per token, of what runs on the host or on the device; 0
// for what does not run there.
struct ComputeTerms {
  double head = 0;
  double attention = 0;
  double mlp = 0;
};
ComputeTerms compute_terms(const graph::Execution& e, std::int64_t cells, bool on_host, std::int64_t stage) {
  const bool sent = is_sent(e, cells);
  const auto runs_here = [&](bool kept_on_host) { return on_host == (kept_on_host && !sent); };
  const double hidden = d(e.model->hidden);
  ComputeTerms terms;
  if (stage == e.plan.pipeline - 1 && runs_here(e.weights.head_on_host)) terms.head = d(e.model->vocab) + hidden;
  for (const model::LayerGroup& group : e.weights.groups) {
    if (e.stage_layers(group, stage) == 0) continue;
    const model::Layer& layer = e.model->kinds[group.kind];
    if (runs_here(group.on_host)) {
      const double scores = e.runtime.flash_attention ? 0 : d(layer.attention.heads) * d(cells);
      terms.attention = std::max(terms.attention, scores + d(cells) + 4 * hidden);
    }
    const model::FeedForward& f = layer.feed_forward;
    if (!runs_here(group.on_host || group.keeps_experts())) continue;
    const double copies = f.experts ? d(f.experts->per_token) : 1;
    const double width = d(f.experts ? f.experts->intermediate : f.intermediate);
    terms.mlp = std::max(terms.mlp, copies * std::max(2 * width, width + hidden) + d(cells) + 2 * hidden);
  }
  return terms;
}

// What a device holds of a layer on the host while it computes it: the largest matrix and the cache. 0 without such a
// layer, or when micro-batches are so small that the host computes it.
Bytes largest_sent(const graph::Execution& e, std::int64_t cells) {
  if (!is_sent(e, cells)) return {};
  Bytes matrix;
  Bytes cache;
  if (e.weights.head_on_host) matrix = e.weights.lm_head.bytes(e.model->vocab, e.model->hidden);
  for (const model::LayerGroup& group : e.weights.groups) {
    if (!group.on_host && !group.keeps_experts()) continue;
    const model::Layer& layer = e.model->kinds[group.kind];
    for (const model::Tensor& tensor : model::layer_tensors(*e.model, layer)) {
      if (!group.holds_on_host(tensor.role)) continue;
      matrix = std::max(matrix, model::tensor_bytes(e.weights, group[tensor.role], tensor));
    }
    if (!group.on_host) continue;
    const model::Attention& a = layer.attention;
    cache = std::max(cache, layer_kv_bytes(e, a, cells));
  }
  return matrix + cache;
}

// A compute buffer of llama.cpp in bytes: elements of 4 bytes per token of a micro-batch that attends to all cells.
template <class N>
N compute_buffer(const graph::Execution& e, std::int64_t sequences, std::int64_t cells, bool on_host,
                 std::int64_t stage) {
  if (on_host && !e.weights.uses_host()) return 0;
  const Let<N> let;
  const ComputeTerms terms = compute_terms(e, cells, on_host, stage);
  const N tokens = let("tokens", batch_tokens(e, cells), "tokens of a micro-batch");
  const N all_cells = let("cells", cells, "tokens the cache holds, all sequences together");
  const N hidden = let("hidden", e.model->hidden, "width of the residual stream");
  const N vocab = let("vocab", e.model->vocab, "entries of the vocabulary");
  const N attention =
      let("attention", terms.attention,
          e.runtime.flash_attention
              ? "cells + 4 * hidden: mask, queries and residual stream of a layer"
              : "heads * cells + cells + 4 * hidden: scores, mask, queries and residual stream of a layer");
  const N mlp = let("mlp", terms.mlp, "gate and up of a layer, mask and residual stream");
  const N largest = largest_of(
      {terms.head > 0 ? vocab + hidden : N(0), terms.attention > 0 ? attention : N(0), terms.mlp > 0 ? mlp : N(0)});
  if (on_host) {
    return 4 * tokens * (hidden + all_cells + largest) +
           4 * let("sequences", sequences, "sequences whose logits are kept") * vocab;
  }
  const Bytes sent = largest_sent(e, cells);
  const N room = sent.value > 0
                     ? let("sent", sent.value, "B of the largest matrix and cache the host sends for a layer it keeps")
                     : N(0);
  return 4 * tokens * largest + room;
}

}  // namespace

Bytes layer_kv_bytes(const model::CacheScheme& kv, const model::Attention& a, std::int64_t kept, std::int64_t tokens) {
  return Bytes{layer_kv(kv, a, model::index_row(a), d(kept), d(tokens), "")};
}
Bytes layer_kv_bytes(const graph::Execution& e, const model::Attention& a, std::int64_t tokens) {
  return Bytes{layer_kv(e.kv, a, e.index_row(a), d(e.cached_tokens(a, tokens)), d(tokens), "")};
}
Term explained_layer_kv(const graph::Execution& e, const model::Attention& a, const Term& kept, const Term& tokens,
                        std::string_view suffix) {
  return layer_kv(e.kv, a, e.index_row(a), kept, tokens, suffix);
}

Bytes layer_state_bytes(const graph::Execution& e, const model::Layer& layer) {
  return Bytes{layer_state<double>(e, layer, "")};
}
Term explained_layer_state(const graph::Execution& e, const model::Layer& layer, std::string_view suffix) {
  return layer_state<Term>(e, layer, suffix);
}

model::PlacedBytes state_bytes(const graph::Execution& e) {
  model::PlacedBytes bytes;
  for (const model::LayerGroup& group : e.weights.groups) {
    bytes.at(group.on_host) += layer_state_bytes(e, e.model->kinds[group.kind]) * d(group.count());
  }
  return bytes;
}

Bytes stage_state_bytes(const graph::Execution& e, std::span<const std::int64_t> layers) {
  Bytes bytes;
  model::Layer share;
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    bytes += layer_state_bytes(e, local(e.model->kinds[kind], e.plan, share)) * d(layers[kind]);
  }
  return bytes;
}

model::PlacedBytes kv_cache_bytes(const graph::Execution& e, std::int64_t tokens) {
  model::PlacedBytes bytes;
  for (const model::LayerGroup& group : e.weights.groups) {
    if (e.model->encoder) break;
    const model::Attention& a = e.model->kinds[group.kind].attention;
    bytes.at(group.on_host) += layer_kv_bytes(e, a, tokens) * d(group.count());
  }
  return bytes;
}

std::vector<model::Tensor> stage_outer_tensors(const graph::Execution& e, std::int64_t stage) {
  const bool first = stage == 0;
  const bool last = stage == e.plan.pipeline - 1;
  std::vector<model::Tensor> held;
  const auto add = [&](model::Tensor tensor) {
    // Two-dimensional plans divide the tables by columns as well: the same number of elements.
    const bool head = tensor.role == model::Role::lm_head && !e.model->encoder;
    if (tensor.role == model::Role::token_embedding || head) {
      tensor.n = graph::shard_vocab(*e.model, e.plan);
    }
    held.push_back(tensor);
  };
  for (const model::Tensor& tensor : model::outer_tensors(*e.model)) {
    const bool embedding = tensor.part == model::Part::embedding;
    if (embedding ? first && !e.weights.embedding_on_host : last) add(tensor);
  }
  if (e.model->tied_embeddings && last && !first) {
    add({.name = "lm_head.weight",
         .n = e.model->vocab,
         .k = e.model->hidden,
         .role = model::Role::lm_head,
         .part = model::Part::lm_head});
  }
  return held;
}

Bytes stage_allocation_bytes(const graph::Execution& e, std::int64_t stage) {
  const double padding = d(e.allocation.padding);
  const double granule = d(e.allocation.granule);
  if (e.allocation.padding == 0 && e.allocation.granule == 1) return {};
  const auto added = [&](Bytes tensor) {
    return Bytes{std::ceil((tensor.value + padding) / granule) * granule - tensor.value};
  };
  Bytes sum;
  for (const model::Tensor& tensor : stage_outer_tensors(e, stage)) {
    sum += added(model::tensor_bytes(e.weights, e.weights.outer(tensor.role), tensor));
  }
  for (const model::LayerGroup& group : e.weights.groups) {
    const model::Layer local = graph::shard(e.model->kinds[group.kind], e.plan);
    const bool qkv = e.runtime.fused_qkv || local.attention.fused_qkv;
    const bool gate_up = e.runtime.fused_gate_up || local.feed_forward.fused_gate_up;
    Bytes layer;
    Bytes fused_qkv;
    Bytes fused_gate_up;
    for (model::Tensor tensor : model::layer_tensors(*e.model, local)) {
      const model::Role role = tensor.role;
      if (e.plan.afd && model::is_expert(role)) continue;
      const double count = d(std::exchange(tensor.count, 1));
      const Bytes one = model::tensor_bytes(e.weights, group[role], tensor);
      if (qkv && (role == model::Role::q || role == model::Role::k || role == model::Role::v)) {
        fused_qkv += one;
      } else if (gate_up && (role == model::Role::gate || role == model::Role::up)) {
        fused_gate_up += one;
      } else {
        layer += added(one) * count;
      }
    }
    if (fused_qkv.value > 0) layer += added(fused_qkv);
    if (fused_gate_up.value > 0) layer += added(fused_gate_up);
    sum += layer * d(e.stage_layers(group, stage));
  }
  return sum;
}

Bytes stage_weight_bytes(const graph::Execution& e, std::int64_t stage) {
  if (e.plan.devices() == 1) return model::placed_weight_bytes(*e.model, e.weights).device;
  Bytes sum = stage_allocation_bytes(e, stage);
  if (stage == 0) sum += e.weights.extra;
  for (const model::Tensor& tensor : stage_outer_tensors(e, stage)) {
    sum += model::tensor_bytes(e.weights, e.weights.outer(tensor.role), tensor);
  }
  for (const model::LayerGroup& group : e.weights.groups) {
    const model::Layer local = graph::shard(e.model->kinds[group.kind], e.plan);
    sum += model::layer_bytes(*e.model, e.weights, group, local) * d(e.stage_layers(group, stage));
  }
  return e.plan.afd ? sum - expert_weight_bytes(e, stage) : sum;
}

Bytes expert_weight_bytes(const graph::Execution& e, std::int64_t stage) {
  Bytes sum;
  for (const model::LayerGroup& group : e.weights.groups) {
    const model::Layer local = graph::shard(e.model->kinds[group.kind], e.plan);
    for (const model::Tensor& tensor : model::layer_tensors(*e.model, local)) {
      if (!model::is_expert(tensor.role)) continue;
      sum += model::tensor_bytes(e.weights, group[tensor.role], tensor) * d(e.stage_layers(group, stage));
    }
  }
  return sum;
}

Bytes stage_kv_bytes(const graph::Execution& e, std::span<const std::int64_t> layers, std::int64_t tokens) {
  Bytes bytes;
  model::Layer share;
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    if (e.model->encoder) break;
    const model::Attention& a = local(e.model->kinds[kind], e.plan, share).attention;
    bytes += layer_kv_bytes(e, a, tokens) * (d(layers[kind]) / d(e.plan.sequence()));
  }
  return bytes;
}

StepShare step_share(const graph::Execution& e, const graph::SequenceGroup& g) {
  const graph::Plan& plan = e.plan;
  const bool split = graph::splits_sequence(plan, {&g, 1});
  StepShare share;
  share.tokens = d(g.count) * d(g.new_tokens) / (split ? d(plan.sequence()) : 1);
  const bool divided = plan.tensor_rows > 0 || graph::splits_residual(plan, {&g, 1});
  share.residual_elements = share.tokens * d(e.model->hidden) / (divided ? d(plan.tensor) : 1);
  share.score_ranks = split ? 1 : d(plan.sequence());
  share.repeat_ranks = d(split ? plan.ulysses : plan.sequence());  // part of the queries sees every key
  share.expert_copies = share.tokens / d(plan.afd ? plan.tensor : std::min(plan.expert, plan.tensor));
  return share;
}

Bytes activation_peak(const graph::Execution& e, const graph::SequenceGroup& g) {
  double largest = 0;
  visit_alive<double>(e, g, "", [&](std::string_view, double bytes) { largest = std::max(largest, bytes); });
  return Bytes{largest};
}

Bytes expert_activation_peak(const graph::Execution& e, const graph::SequenceGroup& g) {
  return Bytes{expert_activation<double>(e, g)};
}
Term explained_expert_activation(const graph::Execution& e, const graph::SequenceGroup& g) {
  return expert_activation<Term>(e, g);
}

Bytes vision_weight_bytes(const graph::Execution& e) {
  if (!e.model->vision) return {};
  return Bytes{d(model::count_parameters(*e.model->vision).total()) * e.vision_weights.bits / 8};
}
Bytes adapter_weight_bytes(const graph::Execution& e, std::int64_t stage) {
  using enum model::Role;
  const graph::Adapters& a = e.adapters;
  if (!a.any()) return {};
  double elements = 0;
  for (const model::LayerGroup& group : e.weights.groups) {
    for (const model::Tensor& t : model::layer_tensors(*e.model, graph::shard(e.model->kinds[group.kind], e.plan))) {
      const bool adapted =
          (t.role >= q && t.role <= kv_b) || (a.mlp && t.role >= gate && t.role <= shared_down && t.role != router);
      if (adapted) elements += d(a.rank * t.count) * d(t.n + t.k) * d(e.stage_layers(group, stage));
    }
  }
  return Bytes{d(a.served) * elements * e.vision_weights.bits / 8};
}
Bytes vision_activation_peak(const graph::Execution& e, const graph::SeenImages& images) {
  return Bytes{vision_alive<double>(e, images)};
}
Alive explained_vision_activation(const graph::Execution& e, const graph::SeenImages& images) {
  return {"layers of the vision tower", vision_alive<Term>(e, images)};
}

std::vector<Alive> explained_activation(const graph::Execution& e, const graph::SequenceGroup& g,
                                        std::string_view step) {
  std::vector<Alive> all;
  visit_alive<Term>(e, g, step, [&](std::string_view what, const Term& bytes) {
    all.push_back({std::string(what) + " of the " + std::string(step), bytes});
  });
  return all;
}

model::PlacedBytes compute_buffers(const graph::Execution& e, std::int64_t sequences, std::int64_t cells,
                                   std::int64_t stage) {
  return {.device = Bytes{compute_buffer<double>(e, sequences, cells, false, stage)},
          .host = Bytes{compute_buffer<double>(e, sequences, cells, true, stage)}};
}
Term explained_compute_buffer(const graph::Execution& e, std::int64_t sequences, std::int64_t cells, bool on_host,
                              std::int64_t stage) {
  return compute_buffer<Term>(e, sequences, cells, on_host, stage)
      .noted("elements of 4 bytes per token of a micro-batch, as llama.cpp sizes its compute buffers");
}

// ---- Video
//
// Largest sets of tensors alive at once, with M = tokens x hidden of one device in the activation type:
//
//   step     the residual stream and, whichever is largest,
//            fused:  the normalised input, q k v and attention's result (5 M); the MLP's input, its inner layer and the
//                    result (2 M and the inner width); without flash attention two score matrices beside
//            eager:  the query/key norm holds q k v, a normalised tensor and two fp32 tensors beside the input; the
//                    activation of the MLP reads and writes its inner layer
//   text     hidden states, scores twice, q k v
//   kept     displaced patches (estimate/video.h): k and v of spatial attention for the whole latent, in every block
//   decode   the largest maps of a micro-batch: the last enlargement's input and result at the full resolution, in
//            fp32 too where it is made so; of a chunk, the norm's, the padded and the filtered map; and all frames

namespace {

Bytes step_activation(const graph::VideoExecution& e) {
  const model::VideoDit& m = *e.model;
  const model::VideoShape& s = e.shape;
  const hardware::RuntimeOptions& o = e.runtime;
  const double element = bytes_per_element(e.activations);
  const double fp32 = bytes_per_element(Dtype::fp32) / element;
  const std::int64_t rows = divide_up(s.patch_rows, e.plan.ulysses * e.patches) * s.patch_columns;
  const double tokens = d(e.batch() * s.patch_frames * rows);
  const double share = 1 / d(e.plan.tensor);
  const bool whole = e.plan.tensor_rows == 0 && !e.plan.sequence_parallel;
  const double residual = tokens * d(m.hidden) * (whole ? 1 : share);
  const double heads = tokens * d(m.hidden) * share;
  const double text = d(e.batch() * m.text_tokens) * d(m.hidden);
  // Input of the product, q k v, the result; of the norm of one of them in steps, two fp32 tensors and one.
  double attention =
      tokens * d(m.hidden) + 3 * heads + (m.qk_norm && !o.fused_qk_norm ? (2 * fp32 + 1) * heads : heads);
  const double products = d(m.heads) * share / d(e.plan.ulysses);
  const auto scores = [&](std::int64_t sequences, std::int64_t queries, std::int64_t keys) {
    const bool flash = o.flash_attention && (o.flash_any_length || keys > sequences);
    return flash ? 0.0 : 2 * fp32 * d(sequences) * d(queries) * d(keys) * products;
  };
  const std::int64_t all_rows = rows * e.plan.ulysses;
  attention += std::max(scores(e.batch() * s.patch_frames, all_rows, all_rows * e.patches),
                        scores(e.batch() * rows, s.patch_frames, s.patch_frames) * d(e.plan.ulysses));
  const double mlp = tokens * d(m.hidden) + 2 * tokens * d(m.intermediate) * share;
  const bool masked = m.architecture == model::VideoArchitecture::stdit3 && !o.skip_frame_mask;
  const double norms = (masked ? 4 : 2) * residual;
  return Bytes{(residual + text + std::max({attention, mlp, norms})) * element};
}

// Of spatial attention in every unit; the rest of a block sees one piece only.
Bytes kept_keys(const graph::VideoExecution& e, double units) {
  const model::VideoShape& s = e.shape;
  const std::int64_t rows = divide_up(s.patch_rows, e.plan.ulysses * e.patches) * e.patches;  // of a device's heads
  const double keys = d(e.batch() * s.patch_frames * rows * s.patch_columns);
  return Bytes{2 * keys * d(e.model->hidden) / d(e.plan.tensor) * units * bytes_per_element(e.activations)};
}

Bytes text_activation(const graph::VideoExecution& e) {
  const model::TextEncoder& t = e.model->text_encoder;
  const double rows = d(e.replica_videos() * e.model->text_tokens);
  const double attention = 4 * rows * d(t.heads * t.head_dim) + 2 * rows * d(e.model->text_tokens) * d(t.heads);
  const double mlp = 3 * rows * d(t.intermediate);
  return Bytes{(2 * rows * d(t.hidden) + std::max(attention, mlp)) * bytes_per_element(e.text_activations)};
}

Bytes decode_activation(const graph::VideoExecution& e) {
  const model::VideoDit& m = *e.model;
  const model::VideoShape& s = e.shape;
  const bool eager = e.runtime.chains != hardware::Chains::one_kernel;
  const double element = bytes_per_element(e.activations);
  const double fp32 = bytes_per_element(Dtype::fp32) / element;
  const model::ImageAutoencoder& a = m.image_decoder;
  const double scale = d(a.scale());
  const double pixels = d(s.latent_height) * d(s.latent_width) * scale * scale;
  const double frames = d(e.replica_videos() * s.frames);
  constexpr double kColours = 3;
  // The widest map at the full resolution is the enlarged one of the level before.
  const double wide = d(a.channels[std::min<std::size_t>(1, a.channels.size() - 1)]);
  const double batch = std::min(d(a.micro_batch), frames) * pixels * wide;
  double largest = batch * (eager ? fp32 + 1 : 1.25);
  const model::TemporalAutoencoder& t = m.temporal_decoder;
  if (t.chunk > 0) {
    const double latents = d((t.chunk + t.scale() - 1) / t.scale());
    const double positions = std::min(d(s.latent_frames), latents) * d(s.latent_height) * d(s.latent_width);
    // A map before time is doubled has twice the width behind it.
    const double map = positions * d(t.scale()) * d(t.channels[std::min<std::size_t>(1, t.channels.size() - 1)]);
    largest = std::max(largest, (eager ? 4 : 3) * map);
  }
  return Bytes{(largest + frames * pixels * kColours) * element};
}

// Of the blocks, a device holds its share under the tensor axis (all but tables and head norms are matrices and their
// biases, which divide) and of the pipeline; the rest is whole.
Bytes transformer(const graph::VideoExecution& e, const model::VideoParameters& p, double units) {
  const double bits =
      e.weights.bytes(e.model->hidden, e.model->hidden).value * 8 / d(e.model->hidden * e.model->hidden);
  const double blocks = d(p.blocks) / d(e.plan.tensor) * units / d(e.model->depth);
  return Bytes{(blocks + d(p.total - p.blocks)) * bits / 8};
}

}  // namespace

Bytes VideoMemory::activation() const { return std::max({text_activation, step_activation, decode_activation}); }

VideoMemory video_memory(const graph::VideoExecution& e) {
  return video_memory(e, d(e.model->depth) / d(e.plan.pipeline));
}

VideoMemory video_memory(const graph::VideoExecution& e, double units) {
  const model::VideoParameters p = model::count_parameters(*e.model);
  VideoMemory memory;
  memory.transformer = transformer(e, p, units);
  memory.text_encoder = Bytes{d(p.text_encoder_total) * e.text_weights.bits / 8};
  memory.autoencoder = Bytes{d(p.autoencoder_total) * e.decoder_weights.bits / 8};
  memory.text_activation = text_activation(e);
  memory.step_activation = step_activation(e);
  memory.decode_activation = decode_activation(e);
  if (e.patches > 1) memory.kept = kept_keys(e, units);
  return memory;
}

}  // namespace llmperf::cost
