// Parameter counts from the list of tensors. Every count is a sum over that list, so that parts and total cannot
// disagree.
//
// For a matrix [n, k] with bias a layer holds n k + n elements. Attention without latents: q [heads d, h], k [kv d, h],
// v [kv dv, h], o [h, heads dv]. Latent attention (arXiv 2405.04434, section 2.1): queries through a latent of
// q_lora_rank or directly; keys and values through a latent of kv_lora_rank, beside one rotary key shared by all heads.
//
// Names are those of Hugging Face checkpoints and of GGUF files (gguf-py's name map, and the rewriting that
// convert_hf_to_gguf.py does per architecture).
#include "model/parameters.h"

#include <array>
#include <iterator>

namespace llmperf::model {
namespace {

// What a tensor is called, with its bias where it may have one.
struct TensorName {
  std::string_view hf;
  std::string_view gguf;
};
struct MatrixNames {
  Role role;
  TensorName weight;
  TensorName bias = {};
};
// clang-format off
constexpr MatrixNames kMatrices[] = {
    {Role::q, {"self_attn.q_proj.weight", "attn_q.weight"}, {"self_attn.q_proj.bias", "attn_q.bias"}},
    {Role::k, {"self_attn.k_proj.weight", "attn_k.weight"}, {"self_attn.k_proj.bias", "attn_k.bias"}},
    {Role::v, {"self_attn.v_proj.weight", "attn_v.weight"}, {"self_attn.v_proj.bias", "attn_v.bias"}},
    {Role::o, {"self_attn.o_proj.weight", "attn_output.weight"}, {"self_attn.o_proj.bias", "attn_output.bias"}},
    {Role::q_a, {"self_attn.q_a_proj.weight", "attn_q_a.weight"}},
    {Role::q_b, {"self_attn.q_b_proj.weight", "attn_q_b.weight"}},
    {Role::kv_a, {"self_attn.kv_a_proj_with_mqa.weight", "attn_kv_a_mqa.weight"}},
    {Role::kv_b, {"self_attn.kv_b_proj.weight", "attn_kv_b.weight"}},
    {Role::gate, {"mlp.gate_proj.weight", "ffn_gate.weight"}, {"mlp.gate_proj.bias", "ffn_gate.bias"}},
    {Role::up, {"mlp.up_proj.weight", "ffn_up.weight"}, {"mlp.up_proj.bias", "ffn_up.bias"}},
    {Role::down, {"mlp.down_proj.weight", "ffn_down.weight"}, {"mlp.down_proj.bias", "ffn_down.bias"}},
    {Role::router, {"mlp.gate.weight", "ffn_gate_inp.weight"}, {"mlp.gate.bias", "ffn_gate_inp.bias"}},
    {Role::expert_gate, {"mlp.experts.gate_proj.weight", "ffn_gate_exps.weight"},
                        {"mlp.experts.gate_proj.bias", "ffn_gate_exps.bias"}},
    {Role::expert_up, {"mlp.experts.up_proj.weight", "ffn_up_exps.weight"},
                      {"mlp.experts.up_proj.bias", "ffn_up_exps.bias"}},
    {Role::expert_down, {"mlp.experts.down_proj.weight", "ffn_down_exps.weight"},
                        {"mlp.experts.down_proj.bias", "ffn_down_exps.bias"}},
    {Role::shared_gate, {"mlp.shared_experts.gate_proj.weight", "ffn_gate_shexp.weight"},
                        {"mlp.shared_experts.gate_proj.bias", "ffn_gate_shexp.bias"}},
    {Role::shared_up, {"mlp.shared_experts.up_proj.weight", "ffn_up_shexp.weight"},
                      {"mlp.shared_experts.up_proj.bias", "ffn_up_shexp.bias"}},
    {Role::shared_down, {"mlp.shared_experts.down_proj.weight", "ffn_down_shexp.weight"},
                        {"mlp.shared_experts.down_proj.bias", "ffn_down_shexp.bias"}},
    {Role::shared_router, {"mlp.shared_expert_gate.weight", "ffn_gate_inp_shexp.weight"}},
    {Role::token_embedding, {"model.embed_tokens.weight", "token_embd.weight"}},
    {Role::position_embedding, {"model.embed_positions.weight", "position_embd.weight"}},
    {Role::lm_head, {"lm_head.weight", "output.weight"}, {"lm_head.bias", "output.bias"}},
};
// clang-format on

// Row of each role in kMatrices; roles of fused matrices have none.
constexpr std::array<std::size_t, kRoles> kRowOf = [] {
  std::array<std::size_t, kRoles> rows{};
  for (std::size_t i = 0; i < std::size(kMatrices); ++i) rows[static_cast<std::size_t>(kMatrices[i].role)] = i;
  return rows;
}();

// Collects the tensors of one part of a layer.
class TensorList {
 public:
  TensorList(std::vector<Tensor>& tensors, Part part) : tensors_(tensors), part_(part) {}

  void matrix(Role role, std::int64_t n, std::int64_t k, std::int64_t count = 1) {
    add(names(role).weight, n, k, role, count);
  }
  // A matrix with its bias, if `biased`.
  void linear(Role role, std::int64_t n, std::int64_t k, bool biased, std::int64_t count = 1) {
    matrix(role, n, k, count);
    if (biased) bias(role, n, count);
  }
  void bias(Role role, std::int64_t n, std::int64_t count = 1) { vector(names(role).bias, n, count); }
  void vector(const TensorName& name, std::int64_t n, std::int64_t count = 1) { add(name, n, 1, Role::vector, count); }
  void norm(Norm norm, const TensorName& weight, const TensorName& bias, std::int64_t n) {
    vector(weight, n);
    if (norm == Norm::layer) vector(bias, n);
  }

 private:
  static const MatrixNames& names(Role role) { return kMatrices[kRowOf[static_cast<std::size_t>(role)]]; }
  void add(const TensorName& name, std::int64_t n, std::int64_t k, Role role, std::int64_t count) {
    tensors_.push_back(
        {.name = name.hf, .gguf = name.gguf, .n = n, .k = k, .count = count, .role = role, .part = part_});
  }

  std::vector<Tensor>& tensors_;
  Part part_;
};

void add_latent_projections(std::vector<Tensor>& tensors, const Attention& a, const LatentAttention& latent,
                            std::int64_t hidden) {
  TensorList list(tensors, Part::attention);
  TensorList norms(tensors, Part::attention_norm);
  if (latent.q_lora_rank) {
    list.matrix(Role::q_a, *latent.q_lora_rank, hidden);
    norms.vector({"self_attn.q_a_layernorm.weight", "attn_q_a_norm.weight"}, *latent.q_lora_rank);
    list.matrix(Role::q_b, a.heads * a.head_dim, *latent.q_lora_rank);
  } else {
    list.matrix(Role::q, a.heads * a.head_dim, hidden);
  }
  list.matrix(Role::kv_a, latent.kv_lora_rank + latent.rope_dim, hidden);
  norms.vector({"self_attn.kv_a_layernorm.weight", "attn_kv_a_norm.weight"}, latent.kv_lora_rank);
  list.matrix(Role::kv_b, a.heads * (latent.nope_dim + a.v_head_dim), latent.kv_lora_rank);
}

void add_attention(std::vector<Tensor>& tensors, const Attention& a, std::int64_t hidden) {
  TensorList list(tensors, Part::attention);
  if (a.latent) {
    add_latent_projections(tensors, a, *a.latent, hidden);
  } else {
    list.linear(Role::q, a.heads * a.head_dim, hidden, a.qkv_bias);
    list.linear(Role::k, a.kv_heads * a.head_dim, hidden, a.qkv_bias);
    list.linear(Role::v, a.kv_heads * a.v_head_dim, hidden, a.qkv_bias);
  }
  list.matrix(Role::o, hidden, a.heads * a.v_head_dim);
  if (a.o_bias) list.bias(Role::o, hidden);
  if (a.qk_norm) {
    TensorList norms(tensors, Part::attention_norm);
    norms.vector({"self_attn.q_norm.weight", "attn_q_norm.weight"}, a.head_dim);
    norms.vector({"self_attn.k_norm.weight", "attn_k_norm.weight"}, a.head_dim);
  }
  if (a.sinks) list.vector({"self_attn.sinks", "attn_sinks.weight"}, a.heads);
}

// `count` MLPs of width `width`: gate and up [width, hidden], down [hidden, width].
void add_mlp(TensorList& list, Role gate, Role up, Role down, const FeedForward& ff, std::int64_t hidden,
             std::int64_t width, std::int64_t count = 1) {
  if (ff.gated) list.linear(gate, width, hidden, ff.bias, count);
  list.linear(up, width, hidden, ff.bias, count);
  list.linear(down, hidden, width, ff.bias, count);
}

void add_feed_forward(std::vector<Tensor>& tensors, const FeedForward& ff, std::int64_t hidden) {
  TensorList list(tensors, Part::feed_forward);
  if (!ff.experts) return add_mlp(list, Role::gate, Role::up, Role::down, ff, hidden, ff.intermediate);
  const Experts& e = *ff.experts;
  list.linear(Role::router, e.count, hidden, e.router_bias);
  if (e.score_correction) list.vector({"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"}, e.count);
  add_mlp(list, Role::expert_gate, Role::expert_up, Role::expert_down, ff, hidden, e.intermediate,
          e.held > 0 ? e.held : e.count);
  if (e.shared_intermediate == 0) return;
  add_mlp(list, Role::shared_gate, Role::shared_up, Role::shared_down, ff, hidden, e.shared_intermediate);
  if (e.shared_gate) list.matrix(Role::shared_router, 1, hidden);
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
  TensorList list(tensors, Part::norm);
  list.norm(model.norm, {"input_layernorm.weight", "attn_norm.weight"}, {"input_layernorm.bias", "attn_norm.bias"},
            model.hidden);
  add_attention(tensors, layer.attention, model.hidden);
  // Usually the norm before the feed-forward part, but one of attention's output where there are four (Gemma 2,
  // GLM-4-0414), and by that name also in gpt-oss.
  const bool of_attention = layer.norms == 4 || model.architecture == "gpt_oss";
  if (layer.norms >= 2) {
    list.norm(model.norm,
              {"post_attention_layernorm.weight", of_attention ? "post_attention_norm.weight" : "ffn_norm.weight"},
              {"post_attention_layernorm.bias", of_attention ? "post_attention_norm.bias" : "ffn_norm.bias"},
              model.hidden);
  }
  if (layer.norms == 4) {
    list.norm(model.norm, {"pre_feedforward_layernorm.weight", "ffn_norm.weight"},
              {"pre_feedforward_layernorm.bias", "ffn_norm.bias"}, model.hidden);
    list.norm(model.norm, {"post_feedforward_layernorm.weight", "post_ffw_norm.weight"},
              {"post_feedforward_layernorm.bias", "post_ffw_norm.bias"}, model.hidden);
  }
  add_feed_forward(tensors, layer.feed_forward, model.hidden);
  return tensors;
}

std::vector<Tensor> outer_tensors(const Decoder& model) {
  std::vector<Tensor> tensors;
  TensorList embeddings(tensors, Part::embedding);
  TensorList head(tensors, Part::lm_head);
  embeddings.matrix(Role::token_embedding, model.vocab, model.hidden);
  if (model.position_embeddings > 0) {
    embeddings.matrix(Role::position_embedding, model.position_embeddings, model.hidden);
  }
  TensorList(tensors, Part::norm)
      .norm(model.norm, {"model.norm.weight", "output_norm.weight"}, {"model.norm.bias", "output_norm.bias"},
            model.hidden);
  if (!model.tied_embeddings) head.matrix(Role::lm_head, model.vocab, model.hidden);
  if (model.lm_head_bias) head.bias(Role::lm_head, model.vocab);
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
  if (model.next_token_layers > 0) {
    // The two inputs, the hidden state and the next token's embedding, have a norm each and are projected together; a
    // third norm stands before the head (DeepSeek-V3's README_WEIGHTS.md: 11.5 G parameters beside the copies).
    const std::int64_t hidden = model.hidden;
    std::int64_t elements = 2 * hidden * hidden + 3 * hidden + 2 * output_matrix;
    for (const Tensor& tensor : layer_tensors(model, model.kinds[model.layer_kinds.back()]))
      elements += tensor.elements();
    counts.checkpoint += model.next_token_layers * elements;
  }
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
