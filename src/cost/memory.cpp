#include "cost/memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/parameters.h"

namespace llmperf::cost {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

// A device's share of a layer: the layer itself where a plan divides none of it, which spares the copy in the search
// for the largest batch.
const model::Layer& local(const model::Layer& layer, const graph::Plan& plan, model::Layer& share) {
  if (plan.tensor == 1 && plan.expert == 1) return layer;
  share = graph::shard(layer, plan);
  return share;
}

double attention_elements(const graph::Execution& e, const model::Attention& a, const graph::SequenceGroup& g,
                          const StepShare& share) {
  const double keys = d(g.count) * d(g.context + g.new_tokens);
  double elements =
      share.tokens * d(a.heads * a.head_dim + a.kv_heads * (a.head_dim + a.v_head_dim) + a.heads * a.v_head_dim);
  if (a.latent && !graph::latent_absorbed(a, g)) {
    elements += keys * d(a.heads * (a.latent->nope_dim + a.v_head_dim));
  }
  if (!e.runtime.flash_attention) {
    elements += 2 * share.tokens * d(a.heads) * d(g.context + g.new_tokens) / share.score_ranks;
    if (a.heads != a.kv_heads) elements += keys * d(a.heads * (a.head_dim + a.v_head_dim)) / share.repeat_ranks;
  }
  return elements;
}

double feed_forward_elements(const model::Decoder& m, const model::FeedForward& f, const StepShare& share) {
  const double matrices = f.gated ? 3 : 2;  // gate, up and their product; or up and its activation
  if (!f.experts) return share.tokens * (d(m.hidden) + matrices * d(f.intermediate));
  const model::Experts& x = *f.experts;
  return share.tokens * d(m.hidden) +
         share.expert_copies * d(x.per_token) * (d(m.hidden) + matrices * d(x.intermediate)) +
         (x.shared_intermediate > 0 ? share.tokens * d(m.hidden) : 0);
}

}  // namespace

Bytes layer_kv_bytes(const model::CacheScheme& kv, const model::Attention& a, std::int64_t tokens) {
  const model::CacheRow row = model::cache_row(a);
  return Bytes{d(tokens) * (d(row.keys) * bytes_per_element(kv.keys) + d(row.values) * bytes_per_element(kv.values))};
}

model::PlacedBytes kv_cache_bytes(const graph::Execution& e, std::int64_t tokens) {
  model::PlacedBytes bytes;
  for (const model::LayerGroup& group : e.weights.groups) {
    const model::Attention& a = e.model->kinds[group.kind].attention;
    bytes.at(group.on_host) += layer_kv_bytes(e.kv, a, e.cached_tokens(a, tokens)) * d(group.count());
  }
  return bytes;
}

std::vector<model::Tensor> stage_outer_tensors(const graph::Execution& e, std::int64_t stage) {
  const bool first = stage == 0;
  const bool last = stage == e.plan.pipeline - 1;
  std::vector<model::Tensor> held;
  const auto add = [&](model::Tensor tensor) {
    // Two-dimensional plans divide the tables by columns as well: the same number of elements.
    if (tensor.role == model::Role::token_embedding || tensor.role == model::Role::lm_head) {
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
  return sum;
}

Bytes stage_kv_bytes(const graph::Execution& e, std::span<const std::int64_t> layers, std::int64_t tokens) {
  Bytes bytes;
  model::Layer share;
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    const model::Attention& a = local(e.model->kinds[kind], e.plan, share).attention;
    bytes += layer_kv_bytes(e.kv, a, e.cached_tokens(a, tokens)) * (d(layers[kind]) / d(e.plan.sequence()));
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
  share.expert_copies = share.tokens / d(std::min(plan.expert, plan.tensor));
  return share;
}

Bytes activation_peak(const graph::Execution& e, const graph::SequenceGroup& g) {
  const model::Decoder& m = *e.model;
  const StepShare share = step_share(e, g);
  const double element = bytes_per_element(e.activations);
  double largest = 0;
  model::Layer scratch;
  for (const model::Layer& kind : m.kinds) {
    const model::Layer& layer = local(kind, e.plan, scratch);
    largest = std::max({largest, attention_elements(e, layer.attention, g, share),
                        feed_forward_elements(m, layer.feed_forward, share)});
  }
  const double rows = e.runtime.last_token_logits ? d(g.count) : share.tokens;
  const double logits = rows * d(m.vocab) * (element + bytes_per_element(Dtype::fp32));
  return Bytes{share.residual_elements * element + std::max(largest * element, logits)};
}

namespace {

// Tokens of a micro-batch, and whether one is large enough for the device to compute what the host keeps.
std::int64_t batch_tokens(const graph::Execution& e, std::int64_t cells) { return std::min(e.micro_batch, cells); }
bool is_sent(const graph::Execution& e, std::int64_t cells) { return batch_tokens(e, cells) >= graph::kStreamedRows; }

}  // namespace

ComputeTerms compute_terms(const graph::Execution& e, std::int64_t cells, bool on_host, std::int64_t stage) {
  const bool sent = is_sent(e, cells);
  const auto runs_here = [&](bool kept_on_host) { return on_host == (kept_on_host && !sent); };
  const double hidden = d(e.model->hidden);
  ComputeTerms terms;
  if (stage == e.plan.pipeline - 1 && runs_here(e.weights.head_on_host)) terms.head = d(e.model->vocab) + hidden;
  for (const model::LayerGroup& group : e.weights.groups) {
    if (!runs_here(group.on_host) || e.stage_layers(group, stage) == 0) continue;
    const model::Layer& layer = e.model->kinds[group.kind];
    const double scores = e.runtime.flash_attention ? 0 : d(layer.attention.heads) * d(cells);
    terms.attention = std::max(terms.attention, scores + d(cells) + 4 * hidden);
    const model::FeedForward& f = layer.feed_forward;
    const double copies = f.experts ? d(f.experts->per_token) : 1;
    const double width = d(f.experts ? f.experts->intermediate : f.intermediate);
    terms.mlp = std::max(terms.mlp, copies * std::max(2 * width, width + hidden) + d(cells) + 2 * hidden);
  }
  return terms;
}

Bytes largest_sent(const graph::Execution& e, std::int64_t cells) {
  if (!is_sent(e, cells)) return {};
  Bytes matrix;
  Bytes cache;
  if (e.weights.head_on_host) matrix = e.weights.lm_head.bytes(e.model->vocab, e.model->hidden);
  for (const model::LayerGroup& group : e.weights.groups) {
    if (!group.on_host) continue;
    const model::Layer& layer = e.model->kinds[group.kind];
    for (const model::Tensor& tensor : model::layer_tensors(*e.model, layer)) {
      matrix = std::max(matrix, model::tensor_bytes(e.weights, group[tensor.role], tensor));
    }
    cache = std::max(cache, layer_kv_bytes(e.kv, layer.attention, e.cached_tokens(layer.attention, cells)));
  }
  return matrix + cache;
}

model::PlacedBytes compute_buffers(const graph::Execution& e, std::int64_t sequences, std::int64_t cells,
                                   std::int64_t stage) {
  const double bytes = 4 * d(batch_tokens(e, cells));
  model::PlacedBytes buffers;
  buffers.device = Bytes{bytes * compute_terms(e, cells, false, stage).largest()} + largest_sent(e, cells);
  if (e.weights.uses_host()) {
    buffers.host = Bytes{bytes * (d(e.model->hidden) + d(cells) + compute_terms(e, cells, true, stage).largest()) +
                         4 * d(sequences) * d(e.model->vocab)};
  }
  return buffers;
}

}  // namespace llmperf::cost
