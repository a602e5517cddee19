#include "cost/memory.h"

#include <algorithm>

#include "model/parameters.h"

namespace llmperf::cost {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

double attention_elements(const graph::Execution& e, const model::Attention& a, const graph::SequenceGroup& g) {
  const double tokens = d(g.count) * d(g.new_tokens);
  const double keys = d(g.count) * d(g.context + g.new_tokens);
  double elements =
      tokens * d(a.heads * a.head_dim + a.kv_heads * (a.head_dim + a.v_head_dim) + a.heads * a.v_head_dim);
  if (a.latent && !graph::latent_absorbed(a, g)) {
    elements += keys * d(a.heads * (a.latent->nope_dim + a.v_head_dim));
  }
  if (!e.runtime.flash_attention) {
    elements += 2 * tokens * d(a.heads) * d(g.context + g.new_tokens);
    if (a.heads != a.kv_heads) elements += keys * d(a.heads * (a.head_dim + a.v_head_dim));
  }
  return elements;
}

double feed_forward_elements(const model::Decoder& m, const model::FeedForward& f, double tokens) {
  const double matrices = f.gated ? 3 : 2;  // gate, up and their product; or up and its activation
  if (!f.experts) return tokens * (d(m.hidden) + matrices * d(f.intermediate));
  const model::Experts& x = *f.experts;
  return tokens * (d(m.hidden) + d(x.per_token) * (d(m.hidden) + matrices * d(x.intermediate)) +
                   (x.shared_intermediate > 0 ? d(m.hidden) : 0));
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

Bytes activation_peak(const graph::Execution& e, const graph::SequenceGroup& g) {
  const model::Decoder& m = *e.model;
  const double tokens = d(g.count) * d(g.new_tokens);
  const double element = bytes_per_element(e.activations);
  double largest = 0;
  for (const model::Layer& layer : m.kinds) {
    largest = std::max(
        {largest, attention_elements(e, layer.attention, g), feed_forward_elements(m, layer.feed_forward, tokens)});
  }
  const double rows = e.runtime.last_token_logits ? d(g.count) : tokens;
  const double logits = rows * d(m.vocab) * (element + bytes_per_element(Dtype::fp32));
  return Bytes{tokens * d(m.hidden) * element + std::max(largest * element, logits)};
}

namespace {

// Tokens of a micro-batch, and whether one is large enough for the device to compute what the host keeps.
std::int64_t batch_tokens(const graph::Execution& e, std::int64_t cells) { return std::min(e.micro_batch, cells); }
bool is_sent(const graph::Execution& e, std::int64_t cells) { return batch_tokens(e, cells) >= graph::kStreamedRows; }

}  // namespace

ComputeTerms compute_terms(const graph::Execution& e, std::int64_t cells, bool on_host) {
  const bool sent = is_sent(e, cells);
  const auto runs_here = [&](bool kept_on_host) { return on_host == (kept_on_host && !sent); };
  const double hidden = d(e.model->hidden);
  ComputeTerms terms;
  if (runs_here(e.weights.head_on_host)) terms.head = d(e.model->vocab) + hidden;
  for (const model::LayerGroup& group : e.weights.groups) {
    if (!runs_here(group.on_host)) continue;
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

model::PlacedBytes compute_buffers(const graph::Execution& e, std::int64_t sequences, std::int64_t cells) {
  const double bytes = 4 * d(batch_tokens(e, cells));
  model::PlacedBytes buffers;
  buffers.device = Bytes{bytes * compute_terms(e, cells, false).largest()} + largest_sent(e, cells);
  if (e.weights.uses_host()) {
    buffers.host = Bytes{bytes * (d(e.model->hidden) + d(cells) + compute_terms(e, cells, true).largest()) +
                         4 * d(sequences) * d(e.model->vocab)};
  }
  return buffers;
}

}  // namespace llmperf::cost
