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

Bytes kv_cache_bytes(const graph::Execution& e, std::int64_t tokens) {
  double values = 0;
  for (std::size_t kind = 0; kind < e.model->kinds.size(); ++kind) {
    const model::Attention& a = e.model->kinds[kind].attention;
    const std::int64_t kept = a.window ? std::min(tokens, *a.window) : tokens;
    values += d(e.model->count_of_kind(kind)) * d(model::kv_values_per_token(a)) * d(kept);
  }
  return Bytes{values * bytes_per_element(e.kv)};
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

}  // namespace llmperf::cost
