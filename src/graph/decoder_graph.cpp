// The ops of one decoder step, in execution order:
//
//   embed, input_norm,
//   per layer kind: qkv, [q/k norm], rope, kv_write, attention, o_proj, [add,] norm, gate_up, act, down, [add, norm]
//   [final_norm,] lm_head, sampling
//
// Layers of one kind are described once and counted. A residual add and the norm after it are one op when the runtime
// fuses them; the norm after a layer's last add is the next layer's first or the final one, so with L layers there are
// always 2L adds and 2L + 1 norms (GPT-style pre-norm), fused or not.
#include "graph/decoder_graph.h"

#include <algorithm>
#include <cmath>

namespace llmperf::graph {
namespace {

using model::Decoder;
using model::Layer;

class Builder {
 public:
  Builder(const Execution& execution, std::span<const SequenceGroup> step, Part part, Graph& graph)
      : e_(execution), m_(*execution.model), o_(execution.runtime), step_(step), part_(part), graph_(graph) {
    for (const SequenceGroup& g : step) {
      tokens_ += g.count * g.new_tokens;
      sequences_ += g.count;
    }
  }

  void build() {
    graph_.clear();
    const bool all = part_ == Part::all;
    if (all) embed();
    for (std::size_t kind = 0; kind < m_.kinds.size(); ++kind) {
      kind_ = static_cast<int>(kind);
      count_ = m_.count_of_kind(kind);
      const Layer& layer = m_.kinds[kind];
      if (all) before_attention(layer);
      attention_core(layer.attention);
      if (all) after_attention(layer);
    }
    kind_ = -1;
    count_ = 1;
    if (all) head();
  }

 private:
  void push(std::string_view name, const OpBody& body, std::int64_t times = 1, bool grows = false) {
    graph_.push_back(Op{name, count_ * times, kind_, grows, body});
  }
  void linear(std::string_view name, std::int64_t rows, std::int64_t n, std::int64_t k, bool bias,
              const model::StoredFormat& format, double matrices = 1) {
    push(name, Gemm{.m = rows,
                    .n = n,
                    .k = k,
                    .activation = e_.activations,
                    .weights = &format,
                    .weight_matrices = matrices,
                    .bias = bias});
  }
  void vector(std::string_view name, VectorKind kind, std::int64_t rows, std::int64_t width, double reads,
              double writes, std::int64_t parameters = 0, std::int64_t times = 1) {
    push(name,
         Vector{.kind = kind,
                .rows = rows,
                .width = width,
                .reads = reads,
                .writes = writes,
                .parameters = Bytes{static_cast<double>(parameters) * e_.weights.vector_bits / 8},
                .activation = e_.activations},
         times);
  }
  void norm(std::string_view name, std::int64_t times = 1) {
    const bool rms = m_.norm == model::Norm::rms;
    vector(name, rms ? VectorKind::rms_norm : VectorKind::layer_norm, tokens_, m_.hidden, 1, 1,
           (rms ? 1 : 2) * m_.hidden, times);
  }
  // The residual add after a block and the norm that reads its result. `inputs` tensors are added (2, or 3 in parallel
  // blocks).
  void add_and_norm(std::string_view add_name, std::string_view norm_name, std::string_view fused_name, double inputs) {
    if (o_.fused_add_norm) {
      const bool rms = m_.norm == model::Norm::rms;
      vector(fused_name, rms ? VectorKind::add_rms_norm : VectorKind::add_layer_norm, tokens_, m_.hidden, inputs, 2,
             (rms ? 1 : 2) * m_.hidden);
    } else {
      vector(add_name, VectorKind::add, tokens_, m_.hidden, inputs, 1);
      norm(norm_name);
    }
  }

  void embed() {
    push("embed",
         Gather{.rows = tokens_, .width = m_.hidden, .table = &e_.weights.embedding, .activation = e_.activations});
    if (m_.position_embeddings > 0) vector("add_positions", VectorKind::add, tokens_, m_.hidden, 2, 1);
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
    const auto& format = e_.weights.linear;
    if (o_.fused_qkv || a.fused_qkv) {
      linear("qkv_proj", tokens_, q + k + v, m_.hidden, a.qkv_bias, format);
    } else {
      linear("q_proj", tokens_, q, m_.hidden, a.qkv_bias, format);
      linear("k_proj", tokens_, k, m_.hidden, a.qkv_bias, format);
      linear("v_proj", tokens_, v, m_.hidden, a.qkv_bias, format);
    }
    if (a.qk_norm) {
      vector("q_norm", VectorKind::rms_norm, tokens_ * a.heads, a.head_dim, 1, 1, a.head_dim);
      vector("k_norm", VectorKind::rms_norm, tokens_ * a.kv_heads, a.head_dim, 1, 1, a.head_dim);
    }
    rope(a.heads, a.kv_heads, a.rotary_dim);
    push("kv_write", Copy{.read_elements = static_cast<double>(tokens_ * (k + v)),
                          .write_elements = static_cast<double>(tokens_ * (k + v)),
                          .from = e_.activations,
                          .to = e_.kv,
                          .to_cache = true});
  }

  // formulas of arXiv 2405.04434 section 2.1: q through its own low rank (or one matrix), k and v through one latent.
  void latent_projections(const model::Attention& a, const model::LatentAttention& l) {
    const auto& format = e_.weights.linear;
    const std::int64_t q = a.heads * a.head_dim;
    if (l.q_lora_rank) {
      linear("q_a_proj", tokens_, *l.q_lora_rank, m_.hidden, a.qkv_bias, format);
      vector("q_a_norm", VectorKind::rms_norm, tokens_, *l.q_lora_rank, 1, 1, *l.q_lora_rank);
      linear("q_b_proj", tokens_, q, *l.q_lora_rank, false, format);
    } else {
      linear("q_proj", tokens_, q, m_.hidden, a.qkv_bias, format);
    }
    linear("kv_a_proj", tokens_, l.kv_lora_rank + l.rope_dim, m_.hidden, a.qkv_bias, format);
    vector("kv_a_norm", VectorKind::rms_norm, tokens_, l.kv_lora_rank, 1, 1, l.kv_lora_rank);
    rope(a.heads, 1, l.rope_dim);
    const double latent = static_cast<double>(tokens_ * (l.kv_lora_rank + l.rope_dim));
    push(
        "kv_write",
        Copy{.read_elements = latent, .write_elements = latent, .from = e_.activations, .to = e_.kv, .to_cache = true});
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

  // Everything whose size grows with the context, per sequence group.
  void attention_core(const model::Attention& a) {
    for (const SequenceGroup& g : step_) {
      if (!o_.static_kv && g.context > 0) concatenate(a, g);
      if (a.latent && latent_absorbed(a, g)) {
        absorbed(a, *a.latent, g);
        continue;
      }
      if (a.latent) expand(a, *a.latent, g);
      if (o_.flash_attention) {
        push("attention",
             Attention{.sequences = g.count,
                       .q_tokens = g.new_tokens,
                       .context = g.context,
                       .heads = a.heads,
                       .kv_heads = a.kv_heads,
                       .qk_dim = a.head_dim,
                       .v_dim = a.v_head_dim,
                       .window = a.window,
                       .query_tile = o_.attention_query_tile,
                       .softcap = a.softcap,
                       .activation = e_.activations,
                       .cached = a.latent ? e_.activations : e_.kv},
             1, true);
      } else {
        naive(a, g);
      }
    }
  }

  void concatenate(const model::Attention& a, const SequenceGroup& g) {
    const double values = static_cast<double>(g.count * per_token(a));
    const double old_tokens = static_cast<double>(std::min(g.context, a.window.value_or(g.context)));
    push("kv_concat",
         Copy{.read_elements = values * old_tokens,
              .write_elements = values * old_tokens,
              .from = e_.kv,
              .to = e_.kv,
              .from_cache = true,
              .to_cache = true},
         1, true);
  }
  static std::int64_t per_token(const model::Attention& a) {
    return a.latent ? a.latent->kv_lora_rank + a.latent->rope_dim : a.kv_heads * (a.head_dim + a.v_head_dim);
  }

  // Latent attention, expanded: keys and values of all tokens in the cache are computed again from their latents.
  void expand(const model::Attention& a, const model::LatentAttention& l, const SequenceGroup& g) {
    push("kv_b_proj",
         Gemm{.m = g.count * (g.context + g.new_tokens),
              .n = a.heads * (l.nope_dim + a.v_head_dim),
              .k = l.kv_lora_rank,
              .activation = e_.activations,
              .weights = &e_.weights.linear},
         1, true);
  }
  // Latent attention, absorbed: queries are taken into the latent space, one shared key/value head is read, and the
  // weighted latents are brought back. The two products use the two halves of kv_b_proj.
  void absorbed(const model::Attention& a, const model::LatentAttention& l, const SequenceGroup& g) {
    const auto per_head = [&](std::string_view name, std::int64_t n, std::int64_t k) {
      push(name,
           Gemm{.m = g.count * g.new_tokens,
                .n = n,
                .k = k,
                .batch = a.heads,
                .activation = e_.activations,
                .weights = &e_.weights.linear,
                .weight_matrices = static_cast<double>(a.heads)},
           1, true);
    };
    per_head("q_absorb", l.kv_lora_rank, l.nope_dim);
    push("attention",
         Attention{.sequences = g.count,
                   .q_tokens = g.new_tokens,
                   .context = g.context,
                   .heads = a.heads,
                   .kv_heads = 1,
                   .qk_dim = l.kv_lora_rank + l.rope_dim,
                   .v_dim = l.kv_lora_rank,
                   .window = a.window,
                   .query_tile = o_.attention_query_tile,
                   .softcap = a.softcap,
                   .shared_kv = true,
                   .activation = e_.activations,
                   .cached = e_.kv},
         1, true);
    per_head("v_absorb", a.v_head_dim, l.kv_lora_rank);
  }

  void naive(const model::Attention& a, const SequenceGroup& g) {
    const std::int64_t total = g.context + g.new_tokens;
    // A cache that keeps only a window holds what the new tokens may see: the window before the first of them, and
    // themselves.
    const std::int64_t keys = a.window ? std::min(total, *a.window - 1 + g.new_tokens) : total;
    const std::int64_t products = g.count * a.heads;
    const double repeated = static_cast<double>(g.count * keys * a.heads);
    const bool repeat = a.heads != a.kv_heads;
    const Dtype operand = a.latent || repeat ? e_.activations : e_.kv;
    if (repeat) {
      const double stored = static_cast<double>(g.count * keys * a.kv_heads);
      const double width = static_cast<double>(a.head_dim + a.v_head_dim);
      push("repeat_kv",
           Copy{.read_elements = stored * width,
                .write_elements = repeated * width,
                .from = e_.kv,
                .to = e_.activations,
                .from_cache = true},
           1, true);
    }
    const bool cached = !a.latent;
    push("scores",
         Gemm{.m = g.new_tokens,
              .n = keys,
              .k = a.head_dim,
              .batch = products,
              .activation = e_.activations,
              .cached_operand = cached,
              .cached = operand},
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
              .cached = operand},
         1, true);
  }

  void after_attention(const Layer& layer) {
    const model::Attention& a = layer.attention;
    linear("o_proj", tokens_, m_.hidden, a.heads * a.v_head_dim, a.o_bias, e_.weights.linear);
    if (layer.norms == 4) norm("post_attention_norm");
    if (!layer.parallel_blocks) add_and_norm("attention_add", "mlp_norm", "attention_add_norm", 2);
    if (layer.feed_forward.experts) {
      experts(layer.feed_forward, *layer.feed_forward.experts);
    } else {
      mlp(layer.feed_forward, layer.feed_forward.intermediate, tokens_);
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

  void mlp(const model::FeedForward& f, std::int64_t width, std::int64_t rows) {
    const auto& format = e_.weights.linear;
    if (!f.gated) {
      linear("up_proj", rows, width, m_.hidden, f.bias, format);
    } else if (o_.fused_gate_up || f.fused_gate_up) {
      linear("gate_up_proj", rows, 2 * width, m_.hidden, f.bias, format);
    } else {
      linear("gate_proj", rows, width, m_.hidden, f.bias, format);
      linear("up_proj", rows, width, m_.hidden, f.bias, format);
    }
    activate("activation", rows, width, f.gated);
    linear("down_proj", rows, m_.hidden, width, f.bias, format);
  }

  // Routed experts: every token is copied to its experts, the experts run as grouped GEMMs over all copies (weights of
  // the experts reached are read once), and the weighted results are summed.
  void experts(const model::FeedForward& f, const model::Experts& x) {
    const std::int64_t rows = tokens_ * x.per_token;
    const double reached = experts_reached(x.count, x.per_token, tokens_);
    const double copies = static_cast<double>(rows * m_.hidden);
    linear("router", tokens_, x.count, m_.hidden, x.router_bias, e_.weights.other);
    vector("routing", VectorKind::router, tokens_, x.count, 1, 1);
    push("dispatch",
         Copy{.read_elements = copies, .write_elements = copies, .from = e_.activations, .to = e_.activations});
    const auto& format = e_.weights.expert;
    if (f.gated && (o_.fused_gate_up || f.fused_gate_up)) {
      linear("experts_gate_up", rows, 2 * x.intermediate, m_.hidden, f.bias, format, reached);
    } else {
      if (f.gated) linear("experts_gate", rows, x.intermediate, m_.hidden, f.bias, format, reached);
      linear("experts_up", rows, x.intermediate, m_.hidden, f.bias, format, reached);
    }
    activate("experts_activation", rows, x.intermediate, f.gated);
    linear("experts_down", rows, m_.hidden, x.intermediate, f.bias, format, reached);
    vector("combine", VectorKind::combine, rows, m_.hidden, 1, 1.0 / static_cast<double>(x.per_token));
    if (x.shared_intermediate > 0) {
      mlp(f, x.shared_intermediate, tokens_);
      if (x.shared_gate) {
        linear("shared_gate", tokens_, 1, m_.hidden, false, e_.weights.other);
        vector("apply_shared_gate", VectorKind::sigmoid_gate, tokens_, m_.hidden, 1, 1);
      }
      vector("add_shared", VectorKind::add, tokens_, m_.hidden, 2, 1);
    }
  }

  void head() {
    const std::int64_t rows = o_.last_token_logits ? sequences_ : tokens_;
    linear("lm_head", rows, m_.vocab, m_.hidden, m_.lm_head_bias, e_.weights.embedding);
    vector("sampling", VectorKind::sampling, sequences_, m_.vocab, 1, 0);
  }

  const Execution& e_;
  const Decoder& m_;
  const hardware::RuntimeOptions& o_;
  std::span<const SequenceGroup> step_;
  Part part_;
  Graph& graph_;
  std::int64_t tokens_ = 0;
  std::int64_t sequences_ = 0;
  std::int64_t count_ = 1;
  int kind_ = -1;
};

}  // namespace

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
