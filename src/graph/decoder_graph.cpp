// The ops of one decoder step, in execution order:
//
//   embed, input_norm,
//   per layer kind: qkv, [q/k norm], rope, kv_write, attention, o_proj, [add,] norm, gate_up, act, down, [add, norm]
//   [final_norm,] lm_head, sampling
//
// Layers of one kind are described once and counted. A residual add and the norm after it are one op when the runtime
// fuses them; the norm after a layer's last add is the next layer's first or the final one, so with L layers there are
// always 2L adds and 2L + 1 norms (GPT-style pre-norm), fused or not.
//
// Layers left on the host run there, but for a step of many tokens, which the device computes with the layer's weights
// and cache sent over the link for the occasion; new keys and values go back to it. The residual stream moves when the
// place changes. A GGUF model takes a long step in micro-batches.
#include "graph/decoder_graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/attention_writer.h"

namespace llmperf::graph {
namespace {

using model::Layer;
using model::Role;

class Builder : private AttentionWriter {
 public:
  Builder(const Execution& execution, std::span<const SequenceGroup> step, Part part, Graph& graph)
      : AttentionWriter(execution, step, graph), part_(part) {}

  void build() {
    graph_.clear();
    const bool all = part_ == Part::all;
    if (all) each_batch([&] { embed(); });
    for (const model::LayerGroup& group : e_.weights.groups) {
      const Layer& layer = m_.kinds[group.kind];
      if (all) each_batch([&] { move_to(place_for(group.on_host, tokens_), tokens_); });
      group_ = &group;
      kind_ = static_cast<int>(group.kind);
      count_ = group.count();
      if (all) each_batch([&] { before_attention(layer); });
      attention(layer.attention, part_);
      if (all) each_batch([&] { after_attention(layer); });
      group_ = nullptr;
      kind_ = -1;
      count_ = 1;
    }
    if (!all) return;
    if (o_.last_token_logits) {
      load(batches_[batch_count_ - 1]);
      times_ = 1;
      head();
    } else {
      each_batch([&] { head(); });
    }
    sample();
  }

 private:
  void embed() {
    place_ = residual_ = e_.weights.embedding_on_host ? Place::host : Place::device;
    push("embed",
         Gather{
             .rows = tokens_, .width = m_.hidden, .table = &e_.weights.token_embedding, .activation = e_.activations});
    if (m_.position_embeddings > 0) vector("add_positions", VectorKind::add, tokens_, m_.hidden, 2, 1);
    move_to(place_for(e_.weights.groups.front().on_host, tokens_), tokens_);
    norm("input_norm");  // of the first layer; the others' follow the previous layer's add
  }

  void before_attention(const Layer& layer) {
    if (layer.attention.latent) {
      latent_projections(layer.attention, *layer.attention.latent);
    } else {
      projections(layer.attention);
    }
  }

  void projections(const model::Attention& a) {
    const std::int64_t q = a.heads * a.head_dim;
    const std::int64_t k = a.kv_heads * a.head_dim;
    const std::int64_t v = a.kv_heads * a.v_head_dim;
    // One product reads one format: what a quantiser stores differently is multiplied apart.
    const bool alike = same_format(Role::q, Role::k) && same_format(Role::q, Role::v);
    if ((o_.fused_qkv || a.fused_qkv) && alike) {
      linear("qkv_proj", tokens_, q + k + v, m_.hidden, a.qkv_bias, format(Role::q));
    } else {
      linear("q_proj", tokens_, q, m_.hidden, a.qkv_bias, format(Role::q));
      linear("k_proj", tokens_, k, m_.hidden, a.qkv_bias, format(Role::k));
      linear("v_proj", tokens_, v, m_.hidden, a.qkv_bias, format(Role::v));
    }
    if (a.qk_norm) {
      vector("q_norm", VectorKind::rms_norm, tokens_ * a.heads, a.head_dim, 1, 1, a.head_dim);
      vector("k_norm", VectorKind::rms_norm, tokens_ * a.kv_heads, a.head_dim, 1, 1, a.head_dim);
    }
    rope(a.heads, a.kv_heads, a.rotary_dim);
    write_cache(a);
  }
  // The new tokens' rows, where the cache is.
  void write_cache(const model::Attention& a) {
    const model::ElementFormat element = model::element_format(e_.activations);
    if (streamed_) {
      send("kv_to_host", Transfer{.rows = tokens_, .width = model::kv_values_per_token(a), .element = element});
    }
    const Place here = std::exchange(place_, group_->on_host ? Place::host : Place::device);
    each_cache(
        a, {"kv_write", "k_write", "v_write"},
        [&](std::string_view name, std::int64_t width, const model::ElementFormat& to) {
          const double elements = static_cast<double>(tokens_ * width);
          push(
              name,
              Copy{.read_elements = elements, .write_elements = elements, .from = element, .to = to, .to_cache = true});
        });
    place_ = here;
  }

  // formulas of arXiv 2405.04434 section 2.1: q through its own low rank (or one matrix), k and v through one latent.
  void latent_projections(const model::Attention& a, const model::LatentAttention& l) {
    const std::int64_t q = a.heads * a.head_dim;
    if (l.q_lora_rank) {
      linear("q_a_proj", tokens_, *l.q_lora_rank, m_.hidden, a.qkv_bias, format(Role::q_a));
      vector("q_a_norm", VectorKind::rms_norm, tokens_, *l.q_lora_rank, 1, 1, *l.q_lora_rank);
      linear("q_b_proj", tokens_, q, *l.q_lora_rank, false, format(Role::q_b));
    } else {
      linear("q_proj", tokens_, q, m_.hidden, a.qkv_bias, format(Role::q));
    }
    linear("kv_a_proj", tokens_, l.kv_lora_rank + l.rope_dim, m_.hidden, a.qkv_bias, format(Role::kv_a));
    vector("kv_a_norm", VectorKind::rms_norm, tokens_, l.kv_lora_rank, 1, 1, l.kv_lora_rank);
    rope(a.heads, 1, l.rope_dim);
    write_cache(a);
  }

  void rope(std::int64_t heads, std::int64_t kv_heads, std::int64_t rotary_dim) {
    if (rotary_dim == 0) return;
    if (o_.fused_rope) {
      vector("rope", VectorKind::rope, tokens_ * (heads + kv_heads), rotary_dim, 1, 1);
    } else {
      vector("rope_q", VectorKind::rope, tokens_ * heads, rotary_dim, 1, 1);
      vector("rope_k", VectorKind::rope, tokens_ * kv_heads, rotary_dim, 1, 1);
    }
  }

  void after_attention(const Layer& layer) {
    const model::Attention& a = layer.attention;
    linear("o_proj", tokens_, m_.hidden, a.heads * a.v_head_dim, a.o_bias, format(Role::o));
    if (layer.norms == 4) norm("post_attention_norm");
    if (!layer.parallel_blocks) add_and_norm("attention_add", "mlp_norm", "attention_add_norm", 2);
    if (layer.feed_forward.experts) {
      experts(layer.feed_forward, *layer.feed_forward.experts);
    } else {
      mlp(layer.feed_forward, layer.feed_forward.intermediate, {Role::gate, Role::up, Role::down});
    }
    if (layer.norms == 4) norm("post_mlp_norm");
    // The norm that follows is the next layer's input norm, or the final norm.
    add_and_norm("mlp_add", "next_norm", "mlp_add_norm", layer.parallel_blocks ? 3 : 2);
  }

  void activate(std::string_view name, std::int64_t rows, std::int64_t width, bool gated) {
    if (!gated || o_.fused_activation) {
      vector(name, gated ? VectorKind::gated_activation : VectorKind::activation, rows, width, gated ? 2 : 1, 1);
    } else {
      vector(name, VectorKind::activation, rows, width, 1, 1);
      vector("multiply_gate", VectorKind::multiply, rows, width, 2, 1);
    }
  }

  struct MlpRoles {
    Role gate, up, down;
  };
  void mlp(const model::FeedForward& f, std::int64_t width, const MlpRoles& roles) {
    if (!f.gated) {
      linear("up_proj", tokens_, width, m_.hidden, f.bias, format(roles.up));
    } else if ((o_.fused_gate_up || f.fused_gate_up) && same_format(roles.gate, roles.up)) {
      linear("gate_up_proj", tokens_, 2 * width, m_.hidden, f.bias, format(roles.up));
    } else {
      linear("gate_proj", tokens_, width, m_.hidden, f.bias, format(roles.gate));
      linear("up_proj", tokens_, width, m_.hidden, f.bias, format(roles.up));
    }
    activate("activation", tokens_, width, f.gated);
    linear("down_proj", tokens_, m_.hidden, width, f.bias, format(roles.down));
  }

  // Routed experts: every token is copied to its experts, the experts run as grouped GEMMs over all copies (weights of
  // the experts reached are read once), and the weighted results are summed.
  void experts(const model::FeedForward& f, const model::Experts& x) {
    const std::int64_t rows = tokens_ * x.per_token;
    const double reached = experts_reached(x.count, x.per_token, tokens_);
    const double copies = static_cast<double>(rows * m_.hidden);
    linear("router", tokens_, x.count, m_.hidden, x.router_bias, format(Role::router));
    vector("routing", VectorKind::router, tokens_, x.count, 1, 1);
    const model::ElementFormat element = model::element_format(e_.activations);
    push("dispatch", Copy{.read_elements = copies, .write_elements = copies, .from = element, .to = element});
    if (f.gated && (o_.fused_gate_up || f.fused_gate_up) && same_format(Role::expert_gate, Role::expert_up)) {
      linear("experts_gate_up", rows, 2 * x.intermediate, m_.hidden, f.bias, format(Role::expert_up), reached);
    } else {
      if (f.gated) {
        linear("experts_gate", rows, x.intermediate, m_.hidden, f.bias, format(Role::expert_gate), reached);
      }
      linear("experts_up", rows, x.intermediate, m_.hidden, f.bias, format(Role::expert_up), reached);
    }
    activate("experts_activation", rows, x.intermediate, f.gated);
    linear("experts_down", rows, m_.hidden, x.intermediate, f.bias, format(Role::expert_down), reached);
    vector("combine", VectorKind::combine, rows, m_.hidden, 1, 1.0 / static_cast<double>(x.per_token));
    if (x.shared_intermediate > 0) {
      mlp(f, x.shared_intermediate, {Role::shared_gate, Role::shared_up, Role::shared_down});
      if (x.shared_gate) {
        linear("shared_gate", tokens_, 1, m_.hidden, false, format(Role::shared_router));
        vector("apply_shared_gate", VectorKind::sigmoid_gate, tokens_, m_.hidden, 1, 1);
      }
      vector("add_shared", VectorKind::add, tokens_, m_.hidden, 2, 1);
    }
  }

  void head() {
    const std::int64_t rows = o_.last_token_logits ? sequences_ : tokens_;
    move_to(place_for(e_.weights.head_on_host, rows), rows);
    streamed_ = e_.weights.head_on_host && residual_ == Place::device;
    linear("lm_head", rows, m_.vocab, m_.hidden, m_.lm_head_bias, e_.weights.lm_head);
  }

  void sample() {
    if (e_.weights.embedding_on_host) {  // llama.cpp samples on the host
      if (place_ == Place::device) {
        send("logits_to_host",
             Transfer{.rows = sequences_, .width = m_.vocab, .element = model::element_format(Dtype::fp32)});
      }
      place_ = Place::host;
    }
    vector("sampling", VectorKind::sampling, sequences_, m_.vocab, 1, 0);
  }

  Part part_;
};

}  // namespace

double keys_read(const Attention& a) {
  const std::int64_t tile = a.query_tile > 0 ? std::min(a.query_tile, a.q_tokens) : a.q_tokens;
  // A tile of rows first..last sees from the oldest key of its first row to the newest of its last row.
  auto keys = [&](std::int64_t first, std::int64_t last) {
    const std::int64_t newest = a.context + last;
    const std::int64_t oldest = a.window ? std::max<std::int64_t>(0, a.context + first - *a.window) : 0;
    return static_cast<double>(newest - oldest);
  };
  if (tile == a.q_tokens) return keys(1, a.q_tokens);
  double sum = 0;
  for (std::int64_t first = 1; first <= a.q_tokens; first += tile) {
    sum += keys(first, std::min(first + tile - 1, a.q_tokens));
  }
  return sum;
}

std::int64_t Execution::cached_tokens(const model::Attention& a, std::int64_t tokens) const {
  const std::optional<std::int64_t> full = window(a);
  if (!full) return tokens;
  // llama.cpp keeps a micro-batch more than the window, in whole 256s.
  const std::int64_t cells = weights.gguf ? (*full + micro_batch + 255) / 256 * 256 : *full;
  return std::min(tokens, cells);
}

std::string_view name(Place place) {
  constexpr std::string_view names[] = {"device", "host", "link"};
  return names[static_cast<std::size_t>(place)];
}

void build_step(const Execution& execution, std::span<const SequenceGroup> step, Part part, Graph& graph) {
  Builder(execution, step, part, graph).build();
}

double experts_reached(std::int64_t experts, std::int64_t per_token, std::int64_t tokens) {
  const double e = static_cast<double>(experts);
  return e * (1 - std::pow(1 - static_cast<double>(per_token) / e, static_cast<double>(tokens)));
}

bool latent_absorbed(const model::Attention& a, const SequenceGroup& group) {
  // Per head and cached token, expanding costs kv_lora (nope + v) multiply-adds once; per new token on top, scores and
  // values cost 2 kv_lora + rope absorbed against nope + rope + v expanded.
  const std::int64_t r = a.latent->kv_lora_rank;
  const std::int64_t dearer = 2 * r - a.latent->nope_dim - a.v_head_dim;
  if (dearer <= 0) return true;  // wide heads: absorbed is never dearer
  return group.context > 0 && group.new_tokens * dearer <= r * (a.latent->nope_dim + a.v_head_dim);
}

}  // namespace llmperf::graph
