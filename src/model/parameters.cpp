// Parameter counts from the list of tensors. Every count is a sum over that list, so that parts and total cannot
// disagree.
//
// For a matrix [n, k] with bias a layer holds n k + n elements. Attention without latents: q [heads d, h], k [kv d, h],
// v [kv dv, h], o [h, heads dv]. Latent attention (arXiv 2405.04434, section 2.1): queries through a latent of
// q_lora_rank or directly; keys and values through a latent of kv_lora_rank, beside one rotary key shared by all heads.
#include "model/parameters.h"

namespace llmperf::model {
namespace {

// Collects the tensors of one part of a layer.
class TensorList {
 public:
  explicit TensorList(std::vector<Tensor>& tensors) : tensors_(tensors) {}

  void matrix(std::string_view name, std::int64_t n, std::int64_t k, Role role, Part part, std::int64_t count = 1) {
    tensors_.push_back({.name = name, .n = n, .k = k, .count = count, .role = role, .part = part});
  }
  void vector(std::string_view name, std::int64_t n, Part part, std::int64_t count = 1) {
    matrix(name, n, 1, Role::vector, part, count);
  }

 private:
  std::vector<Tensor>& tensors_;
};

void add_latent_projections(TensorList& list, const Attention& a, const LatentAttention& latent, std::int64_t hidden) {
  const auto part = Part::attention;
  if (latent.q_lora_rank) {
    list.matrix("self_attn.q_a_proj.weight", *latent.q_lora_rank, hidden, Role::q_a, part);
    list.vector("self_attn.q_a_layernorm.weight", *latent.q_lora_rank, Part::attention_norm);
    list.matrix("self_attn.q_b_proj.weight", a.heads * a.head_dim, *latent.q_lora_rank, Role::q_b, part);
  } else {
    list.matrix("self_attn.q_proj.weight", a.heads * a.head_dim, hidden, Role::q, part);
  }
  list.matrix("self_attn.kv_a_proj_with_mqa.weight", latent.kv_lora_rank + latent.rope_dim, hidden, Role::kv_a, part);
  list.vector("self_attn.kv_a_layernorm.weight", latent.kv_lora_rank, Part::attention_norm);
  list.matrix("self_attn.kv_b_proj.weight", a.heads * (latent.nope_dim + a.v_head_dim), latent.kv_lora_rank, Role::kv_b,
              part);
}

void add_attention(TensorList& list, const Attention& a, std::int64_t hidden) {
  const auto part = Part::attention;
  if (a.latent) {
    add_latent_projections(list, a, *a.latent, hidden);
  } else {
    const std::int64_t q = a.heads * a.head_dim;
    const std::int64_t k = a.kv_heads * a.head_dim;
    const std::int64_t v = a.kv_heads * a.v_head_dim;
    list.matrix("self_attn.q_proj.weight", q, hidden, Role::q, part);
    if (a.qkv_bias) list.vector("self_attn.q_proj.bias", q, part);
    list.matrix("self_attn.k_proj.weight", k, hidden, Role::k, part);
    if (a.qkv_bias) list.vector("self_attn.k_proj.bias", k, part);
    list.matrix("self_attn.v_proj.weight", v, hidden, Role::v, part);
    if (a.qkv_bias) list.vector("self_attn.v_proj.bias", v, part);
  }
  list.matrix("self_attn.o_proj.weight", hidden, a.heads * a.v_head_dim, Role::o, part);
  if (a.o_bias) list.vector("self_attn.o_proj.bias", hidden, part);
  if (a.qk_norm) {
    list.vector("self_attn.q_norm.weight", a.head_dim, Part::attention_norm);
    list.vector("self_attn.k_norm.weight", a.head_dim, Part::attention_norm);
  }
  if (a.sinks) list.vector("self_attn.sinks", a.heads, part);
}

struct MlpNames {
  std::string_view gate, gate_bias, up, up_bias, down, down_bias;
  Role gate_role, up_role, down_role;
};
constexpr MlpNames kDenseNames = {"mlp.gate_proj.weight",
                                  "mlp.gate_proj.bias",
                                  "mlp.up_proj.weight",
                                  "mlp.up_proj.bias",
                                  "mlp.down_proj.weight",
                                  "mlp.down_proj.bias",
                                  Role::gate,
                                  Role::up,
                                  Role::down};
constexpr MlpNames kExpertNames = {"mlp.experts.gate_proj.weight",
                                   "mlp.experts.gate_proj.bias",
                                   "mlp.experts.up_proj.weight",
                                   "mlp.experts.up_proj.bias",
                                   "mlp.experts.down_proj.weight",
                                   "mlp.experts.down_proj.bias",
                                   Role::expert_gate,
                                   Role::expert_up,
                                   Role::expert_down};
constexpr MlpNames kSharedNames = {"mlp.shared_experts.gate_proj.weight",
                                   "mlp.shared_experts.gate_proj.bias",
                                   "mlp.shared_experts.up_proj.weight",
                                   "mlp.shared_experts.up_proj.bias",
                                   "mlp.shared_experts.down_proj.weight",
                                   "mlp.shared_experts.down_proj.bias",
                                   Role::shared_gate,
                                   Role::shared_up,
                                   Role::shared_down};

// `count` MLPs of width `width`: gate and up [width, hidden], down [hidden, width].
void add_mlp(TensorList& list, const MlpNames& names, const FeedForward& ff, std::int64_t hidden, std::int64_t width,
             std::int64_t count = 1) {
  const auto part = Part::feed_forward;
  if (ff.gated) {
    list.matrix(names.gate, width, hidden, names.gate_role, part, count);
    if (ff.bias) list.vector(names.gate_bias, width, part, count);
  }
  list.matrix(names.up, width, hidden, names.up_role, part, count);
  if (ff.bias) list.vector(names.up_bias, width, part, count);
  list.matrix(names.down, hidden, width, names.down_role, part, count);
  if (ff.bias) list.vector(names.down_bias, hidden, part, count);
}

void add_feed_forward(TensorList& list, const FeedForward& ff, std::int64_t hidden) {
  if (!ff.experts) {
    add_mlp(list, kDenseNames, ff, hidden, ff.intermediate);
    return;
  }
  const Experts& e = *ff.experts;
  const auto part = Part::feed_forward;
  list.matrix("mlp.gate.weight", e.count, hidden, Role::router, part);
  if (e.router_bias) list.vector("mlp.gate.bias", e.count, part);
  if (e.score_correction) list.vector("mlp.gate.e_score_correction_bias", e.count, part);
  add_mlp(list, kExpertNames, ff, hidden, e.intermediate, e.held > 0 ? e.held : e.count);
  if (e.shared_intermediate > 0) {
    add_mlp(list, kSharedNames, ff, hidden, e.shared_intermediate);
    if (e.shared_gate) list.matrix("mlp.shared_expert_gate.weight", 1, hidden, Role::shared_router, part);
  }
}

void add_norm(TensorList& list, Norm norm, std::string_view weight, std::string_view bias, std::int64_t hidden) {
  list.vector(weight, hidden, Part::norm);
  if (norm == Norm::layer) list.vector(bias, hidden, Part::norm);
}

// Elements of one routed expert, biases included.
std::int64_t expert_elements(const FeedForward& ff, std::int64_t hidden) {
  const std::int64_t width = ff.experts->intermediate;
  const std::int64_t into = ff.gated ? 2 : 1;  // matrices [width, hidden]
  return (into + 1) * width * hidden + (ff.bias ? into * width + hidden : 0);
}

}  // namespace

std::vector<Tensor> layer_tensors(const Decoder& model, const Layer& layer) {
  std::vector<Tensor> tensors;
  tensors.reserve(24);
  TensorList list(tensors);
  add_norm(list, model.norm, "input_layernorm.weight", "input_layernorm.bias", model.hidden);
  add_attention(list, layer.attention, model.hidden);
  if (layer.norms >= 2) {
    add_norm(list, model.norm, "post_attention_layernorm.weight", "post_attention_layernorm.bias", model.hidden);
  }
  if (layer.norms == 4) {
    add_norm(list, model.norm, "pre_feedforward_layernorm.weight", "pre_feedforward_layernorm.bias", model.hidden);
    add_norm(list, model.norm, "post_feedforward_layernorm.weight", "post_feedforward_layernorm.bias", model.hidden);
  }
  add_feed_forward(list, layer.feed_forward, model.hidden);
  return tensors;
}

std::vector<Tensor> outer_tensors(const Decoder& model) {
  std::vector<Tensor> tensors;
  TensorList list(tensors);
  list.matrix("model.embed_tokens.weight", model.vocab, model.hidden, Role::token_embedding, Part::embedding);
  if (model.position_embeddings > 0) {
    list.matrix("model.embed_positions.weight", model.position_embeddings, model.hidden, Role::position_embedding,
                Part::embedding);
  }
  add_norm(list, model.norm, "model.norm.weight", "model.norm.bias", model.hidden);
  if (!model.tied_embeddings) {
    list.matrix("lm_head.weight", model.vocab, model.hidden, Role::lm_head, Part::lm_head);
  }
  if (model.lm_head_bias) list.vector("lm_head.bias", model.vocab, Part::lm_head);
  return tensors;
}

ParameterCounts count_parameters(const Decoder& model) {
  ParameterCounts counts;
  std::int64_t idle = 0;  // elements of the experts one token is not routed to
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    const Layer& layer = model.kinds[kind];
    const std::int64_t times = model.count_of_kind(kind);
    for (const Tensor& tensor : layer_tensors(model, layer)) {
      const std::int64_t elements = tensor.elements() * times;
      counts.layers += elements;
      switch (tensor.part) {
        case Part::attention: counts.layer_matrices += elements; [[fallthrough]];
        case Part::attention_norm: counts.attention += elements; break;
        case Part::norm: counts.norms += elements; break;
        default:
          counts.feed_forward += elements;
          counts.layer_matrices += elements;
          break;
      }
    }
    if (const auto& experts = layer.feed_forward.experts) {
      idle += times * (experts->count - experts->per_token) * expert_elements(layer.feed_forward, model.hidden);
    }
  }
  std::int64_t outer = 0;
  for (const Tensor& tensor : outer_tensors(model)) {
    outer += tensor.elements();
    if (tensor.part == Part::embedding) counts.embedding += tensor.elements();
    if (tensor.part == Part::norm) counts.final_norm += tensor.elements();
  }
  const std::int64_t output_matrix = model.vocab * model.hidden;
  counts.lm_head = output_matrix + (model.lm_head_bias ? model.vocab : 0);
  counts.total = outer + counts.layers;
  counts.activated = counts.total - idle;
  counts.checkpoint = counts.total + (model.checkpoint_repeats_lm_head ? output_matrix : 0);
  counts.layer_matrices_activated = counts.layer_matrices - idle;
  return counts;
}

CacheRow cache_row(const Attention& a) {
  if (a.latent) return {.keys = a.latent->kv_lora_rank + a.latent->rope_dim, .values = 0};
  return {.keys = a.kv_heads * a.head_dim, .values = a.kv_heads * a.v_head_dim};
}

std::int64_t kv_values_per_token(const Attention& attention) {
  const CacheRow row = cache_row(attention);
  return row.keys + row.values;
}

std::int64_t kv_values_per_token(const Decoder& model) {
  std::int64_t values = 0;
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    values += model.count_of_kind(kind) * kv_values_per_token(model.kinds[kind].attention);
  }
  return values;
}

}  // namespace llmperf::model
