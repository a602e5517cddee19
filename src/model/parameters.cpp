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

#include "model/decoder.h"

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
    {Role::o_a, {"self_attn.o_a_proj.weight", "attn_o_a.weight"}},
    {Role::o_b, {"self_attn.o_b_proj.weight", "attn_o_b.weight"}},
    {Role::attention_gate, {"self_attn.g_proj.weight", "attn_gate.weight"}},
    {Role::index_q, {"self_attn.indexer.wq_b.weight", "indexer.attn_q_b.weight"}},
    {Role::index_k, {"self_attn.indexer.wk.weight", "indexer.attn_k.weight"}},
    {Role::index_weights, {"self_attn.indexer.weights_proj.weight", "indexer.proj.weight"}},
    {Role::compress, {"self_attn.compressor.kv_gate_proj.weight", "attn_compress.weight"}},
    {Role::index_compress, {"self_attn.indexer.compressor.kv_gate_proj.weight", "indexer.compress.weight"}},
    {Role::recurrent_in, {"linear_attn.in_proj_qkvz.weight", "ssm_in.weight"},
                         {"linear_attn.in_proj_qkvz.bias", "ssm_in.bias"}},
    {Role::recurrent_gates, {"linear_attn.in_proj_ba.weight", "ssm_ba.weight"}},
    {Role::decay_a, {"linear_attn.f_a_proj.weight", "ssm_f_a.weight"}},
    {Role::decay_b, {"linear_attn.f_b_proj.weight", "ssm_f_b.weight"}},
    {Role::gate_a, {"linear_attn.g_a_proj.weight", "ssm_g_a.weight"}},
    {Role::gate_b, {"linear_attn.g_b_proj.weight", "ssm_g_b.weight"}},
    {Role::recurrent_x, {"linear_attn.x_proj.weight", "ssm_x.weight"}},
    {Role::recurrent_dt, {"linear_attn.dt_proj.weight", "ssm_dt.weight"}, {"linear_attn.dt_proj.bias", "ssm_dt.bias"}},
    {Role::recurrent_out, {"linear_attn.out_proj.weight", "ssm_out.weight"}},
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
    {Role::latent_down, {"mlp.fc1_latent_proj.weight", "ffn_latent_down.weight"}},
    {Role::latent_up, {"mlp.fc2_latent_proj.weight", "ffn_latent_up.weight"}},
    {Role::stream_mix, {"stream_mix.weight", "stream_mix.weight"}},
    {Role::branch_down, {"laurel.linear_left.weight", "laurel_l.weight"}},
    {Role::branch_up, {"laurel.linear_right.weight", "laurel_r.weight"}},
    {Role::layer_gate, {"per_layer_input_gate.weight", "inp_gate.weight"}},
    {Role::layer_projection, {"per_layer_projection.weight", "proj.weight"}},
    {Role::join_inputs, {"eh_proj.weight", "nextn.eh_proj.weight"}},
    {Role::token_embedding, {"model.embed_tokens.weight", "token_embd.weight"}},
    {Role::position_embedding, {"model.embed_positions.weight", "position_embd.weight"}},
    {Role::type_embedding, {"model.token_type_embeddings.weight", "token_types.weight"}},
    {Role::layer_embedding, {"model.embed_tokens_per_layer.weight", "per_layer_token_embd.weight"}},
    {Role::model_projection, {"model.per_layer_model_projection.weight", "per_layer_model_proj.weight"}},
    {Role::pooler, {"pooler.dense.weight", "cls.weight"}, {"pooler.dense.bias", "cls.bias"}},
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

void add_latent_projections(TensorList& list, TensorList& norms, const Attention& a, const LatentAttention& latent,
                            std::int64_t hidden) {
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

void add_indexer(TensorList& list, TensorList& norms, const Attention& a, const Indexer& x, std::int64_t hidden) {
  if (x.reused) return;
  const bool latent = a.latent && a.latent->q_lora_rank;
  const std::int64_t query_rank = latent ? *a.latent->q_lora_rank : a.low_rank ? a.low_rank->query_rank : hidden;
  list.matrix(Role::index_q, x.heads * x.head_dim, x.from_hidden ? hidden : query_rank);
  if (x.weighted) list.matrix(Role::index_weights, x.heads, hidden);
  if (a.compression) {
    // Keys and gates of overlapping entries, the places of tokens in an entry, a norm.
    list.matrix(Role::index_compress, 4 * x.head_dim, hidden);
    norms.vector({"self_attn.indexer.compressor.ape", "indexer.compress_ape"}, 2 * x.head_dim * a.compression->ratio);
    norms.vector({"self_attn.indexer.compressor.norm.weight", "indexer.compress_norm.weight"}, x.head_dim);
    return;
  }
  list.matrix(Role::index_k, x.head_dim, hidden);
  norms.vector({"self_attn.indexer.k_norm.weight", "indexer.k_norm.weight"}, x.head_dim);
  norms.vector(x.from_hidden ? TensorName{"self_attn.indexer.q_norm.weight", "indexer.q_norm.weight"}
                             : TensorName{"self_attn.indexer.k_norm.bias", "indexer.k_norm.bias"},
               x.head_dim);
}

// Entries of `ratio` tokens: keys and gates of as many, the places of tokens in an entry, a norm.
void add_compressor(TensorList& list, TensorList& norms, const Attention& a, const Compression& c,
                    std::int64_t hidden) {
  const std::int64_t width = (c.overlaps ? 2 : 1) * a.head_dim;
  list.matrix(Role::compress, 2 * width, hidden);
  norms.vector({"self_attn.compressor.ape", "attn_compress_ape"}, c.ratio * width);
  norms.vector({"self_attn.compressor.norm.weight", "attn_compress_norm.weight"}, a.head_dim);
}

// `hidden`: what q, k and v read.
void add_heads(TensorList& list, TensorList& norms, const Attention& a, std::int64_t hidden) {
  const std::int64_t queries = a.heads * a.head_dim * (a.gate == OutputGate::with_queries ? 2 : 1);
  if (a.low_rank) {
    list.matrix(Role::q_a, a.low_rank->query_rank, hidden);
    norms.vector({"self_attn.q_a_layernorm.weight", "attn_q_a_norm.weight"}, a.low_rank->query_rank);
    list.matrix(Role::q_b, queries, a.low_rank->query_rank);
  } else {
    list.linear(Role::q, queries, hidden, a.qkv_bias);
  }
  if (!a.shares_cache || a.unused_kv) {
    list.linear(Role::k, a.kv_heads * a.head_dim, hidden, a.qkv_bias);
    if (!a.no_v_proj && !a.one_vector) list.linear(Role::v, a.kv_heads * a.v_head_dim, hidden, a.qkv_bias);
  }
}

void add_head_norms(TensorList& norms, const Attention& a) {
  const std::int64_t keys = a.kv_heads * a.head_dim;
  if (a.qk_norm == QkNorm::none) {
    if (a.one_vector) norms.vector({"self_attn.kv_norm.weight", "attn_kv_a_norm.weight"}, keys);
    return;
  }
  const bool whole = a.qk_norm == QkNorm::whole;
  norms.vector({"self_attn.q_norm.weight", "attn_q_norm.weight"}, whole ? a.heads * a.head_dim : a.head_dim);
  if (a.shares_cache && !a.unused_kv) return;
  norms.vector({"self_attn.k_norm.weight", "attn_k_norm.weight"}, whole ? keys : a.head_dim);
}

void add_attention(std::vector<Tensor>& tensors, const Attention& a, std::int64_t hidden, std::int64_t inputs) {
  TensorList list(tensors, Part::attention);
  TensorList norms(tensors, Part::attention_norm);
  if (a.latent) {
    add_latent_projections(list, norms, a, *a.latent, hidden);
  } else {
    add_heads(list, norms, a, inputs);
  }
  if (a.compression) add_compressor(list, norms, a, *a.compression, hidden);
  if (a.indexer) add_indexer(list, norms, a, *a.indexer, hidden);
  if (a.gate == OutputGate::element) list.matrix(Role::attention_gate, a.heads * a.v_head_dim, hidden);
  if (a.gate == OutputGate::head) list.matrix(Role::attention_gate, a.heads, hidden);
  if (a.low_rank) {
    // Each group of heads has a matrix of its own.
    list.matrix(Role::o_a, a.low_rank->output_rank, a.heads * a.v_head_dim / a.low_rank->output_groups,
                a.low_rank->output_groups);
    list.matrix(Role::o_b, hidden, a.low_rank->output_groups * a.low_rank->output_rank);
  } else {
    list.linear(Role::o, hidden, a.heads * a.v_head_dim, a.o_bias);
  }
  if (!a.latent) add_head_norms(norms, a);
  if (a.sinks) list.vector({"self_attn.sinks", "attn_sinks.weight"}, a.heads);
}

void add_recurrent(std::vector<Tensor>& tensors, const Recurrent& r, std::int64_t hidden) {
  TensorList list(tensors, Part::recurrent);
  TensorList norms(tensors, Part::recurrent_norm);
  const RecurrentProducts products = recurrent_products(r);
  list.matrix(Role::recurrent_in, products.in, hidden);
  if (products.gates > 0) list.matrix(Role::recurrent_gates, products.gates, hidden);
  if (r.conv > 0) {
    list.vector({"linear_attn.conv1d.weight", "ssm_conv1d.weight"}, r.conv_channels() * r.conv);
    if (r.conv_bias) list.vector({"linear_attn.conv1d.bias", "ssm_conv1d.bias"}, r.conv_channels());
  }
  const TensorName a = {"linear_attn.A_log", "ssm_a"};
  const TensorName d = {"linear_attn.D", "ssm_d"};
  const TensorName dt = {"linear_attn.dt_bias", "ssm_dt.bias"};
  const TensorName norm = {"linear_attn.norm.weight", "ssm_norm.weight"};
  switch (r.kind) {
    case RecurrentKind::gated_delta_net:
      list.vector(a, r.heads);
      list.vector(dt, r.heads);
      if (r.norms) norms.vector(norm, r.value_dim);
      break;
    case RecurrentKind::kimi_delta: {
      const std::int64_t rank = r.gate_rank > 0 ? r.gate_rank : r.value_dim;
      list.matrix(Role::decay_a, rank, hidden);
      list.matrix(Role::decay_b, r.keys(), rank);
      if (r.gate_rank > 0) {
        list.matrix(Role::gate_a, rank, hidden);
        list.matrix(Role::gate_b, r.values(), rank);
      } else {
        list.matrix(Role::gate_a, r.values(), hidden);
      }
      list.vector(a, r.heads);
      list.vector(dt, r.keys());
      if (r.norms) norms.vector(norm, r.value_dim);
      break;
    }
    case RecurrentKind::mamba2:
      list.vector(a, r.heads);
      list.vector(d, r.heads);
      list.vector(dt, r.heads);
      if (r.norms) norms.vector(norm, r.values());
      break;
    case RecurrentKind::mamba:
      list.matrix(Role::recurrent_x, r.gate_rank + 2 * r.key_dim, r.values());
      list.linear(Role::recurrent_dt, r.values(), r.gate_rank, true);
      list.vector(a, r.values() * r.key_dim);
      list.vector(d, r.values());
      if (r.norms) norms.vector(norm, r.gate_rank + 2 * r.key_dim);
      break;
    case RecurrentKind::lightning:
      if (r.norms) norms.vector(norm, r.values());
      if (r.head_norms) norms.vector({"linear_attn.qk_norm.weight", "ssm_qk_norm.weight"}, 2 * r.key_dim);
      break;
    case RecurrentKind::short_conv: break;
  }
  list.matrix(Role::recurrent_out, hidden, r.values());
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
  if (ff.intermediate > 0) add_mlp(list, Role::gate, Role::up, Role::down, ff, hidden, ff.intermediate);
  if (!ff.experts) return;
  const Experts& e = *ff.experts;
  const std::int64_t routed = e.count + e.identity;
  list.linear(Role::router, routed, hidden, e.router_bias);
  if (e.score_correction) list.vector({"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"}, routed);
  if (e.router_scales) {
    list.vector({"router.scale", "ffn_gate_inp.scale"}, hidden);
    list.vector({"router.per_expert_scale", "ffn_down_exps.scale"}, e.count);
  }
  if (e.latent > 0) {
    list.matrix(Role::latent_down, e.latent, hidden);
    if (e.latent_norm) list.vector({"mlp.latent_norm.weight", "ffn_latent_norm.weight"}, e.latent);
    list.matrix(Role::latent_up, hidden, e.latent);
  }
  add_mlp(list, Role::expert_gate, Role::expert_up, Role::expert_down, ff, e.latent > 0 ? e.latent : hidden,
          e.intermediate, e.held > 0 ? e.held : e.count);
  if (e.shared_intermediate == 0) return;
  add_mlp(list, Role::shared_gate, Role::shared_up, Role::shared_down, ff, hidden, e.shared_intermediate);
  if (e.shared_gate) list.matrix(Role::shared_router, 1, hidden);
}

// Elements of one routed expert, biases included.
std::int64_t expert_elements(const FeedForward& ff, std::int64_t hidden) {
  const std::int64_t width = ff.experts->intermediate;
  const std::int64_t inner = ff.experts->latent > 0 ? ff.experts->latent : hidden;
  const std::int64_t into = ff.gated ? 2 : 1;  // matrices [width, inner]
  return (into + 1) * width * inner + (ff.bias ? into * width + inner : 0);
}

// What stands between the parts of a layer and is no norm.
void add_between(std::vector<Tensor>& tensors, const Decoder& m, const Layer& layer) {
  TensorList list(tensors, Part::norm);
  if (m.streams.mix == StreamMix::hyper_connections) {
    const HyperConnection mix = hyper_connection(m);
    list.matrix(Role::stream_mix, mix.outputs, mix.inputs, 2);
    list.vector({"hc_base", "hc_base"}, mix.outputs + 3, 2);
  } else if (m.streams.mix == StreamMix::altup) {
    const std::int64_t n = m.streams.count;
    list.matrix(Role::stream_mix, n, m.hidden);  // the router, whose n outputs make the coefficients of both steps
    list.vector({"altup.router_norm.weight", "altup_router_norm.weight"}, m.hidden);
    list.vector({"altup.correct_output_scale", "altup_correct_scale.weight"}, m.hidden);
    list.vector({"altup.correction_coefs.weight", "altup_correct_coef.weight"}, n * n);
    list.vector({"altup.prediction_coefs.weight", "altup_predict_coef.weight"}, n * n * n);
  }
  if (layer.low_rank_branch > 0) {
    list.matrix(Role::branch_down, layer.low_rank_branch, m.hidden);
    list.matrix(Role::branch_up, m.hidden, layer.low_rank_branch);
    list.vector({"laurel.post_laurel_norm.weight", "laurel_post_norm.weight"}, m.hidden);
  }
  if (m.layer_embedding_width > 0) {
    list.matrix(Role::layer_gate, m.layer_embedding_width, m.hidden);
    list.matrix(Role::layer_projection, m.hidden, m.layer_embedding_width);
    list.vector({"post_per_layer_input_norm.weight", "post_norm.weight"}, m.hidden);
  }
  if (m.attention_residuals) list.vector({"attn_res.weight", "attn_res.weight"}, 4 * m.hidden);
  if (layer.scaled) list.vector({"layer_scalar", "layer_output_scale.weight"}, 1);
}

// Norms over the hidden vector that follow the mixer, named by where they stand.
void add_norms(std::vector<Tensor>& tensors, const Decoder& model, const Layer& layer) {
  TensorList list(tensors, Part::norm);
  const auto norm = [&](const TensorName& weight, const TensorName& bias) {
    list.norm(model.norm, weight, bias, model.hidden);
  };
  // Usually the norm before the feed-forward part, but one of attention's output where there are four (Gemma 2,
  // GLM-4-0414) or it follows its part.
  const bool of_attention = layer.norms == 4 || layer.norms_after;
  if (layer.norms >= 2 || (layer.norms_after && layer.mixes())) {
    norm({"post_attention_layernorm.weight", of_attention ? "post_attention_norm.weight" : "ffn_norm.weight"},
         {"post_attention_layernorm.bias", of_attention ? "post_attention_norm.bias" : "ffn_norm.bias"});
  }
  if (layer.norms == 4) {
    norm({"pre_feedforward_layernorm.weight", "ffn_norm.weight"}, {"pre_feedforward_layernorm.bias", "ffn_norm.bias"});
  }
  if (layer.norms == 4 || (layer.norms_after && layer.has_feed_forward())) {
    norm({"post_feedforward_layernorm.weight", "post_ffw_norm.weight"},
         {"post_feedforward_layernorm.bias", "post_ffw_norm.bias"});
  }
  if (has_norms_beside_experts(layer)) {
    norm({"pre_feedforward_layernorm_2.weight", "pre_ffw_norm_2.weight"}, {});
    norm({"post_feedforward_layernorm_1.weight", "post_ffw_norm_1.weight"}, {});
    norm({"post_feedforward_layernorm_2.weight", "post_ffw_norm_2.weight"}, {});
  }
}

}  // namespace

bool has_norms_beside_experts(const Layer& layer) {
  return layer.norms == 4 && layer.feed_forward.intermediate > 0 && layer.feed_forward.experts.has_value();
}

HyperConnection hyper_connection(const Decoder& model) {
  const std::int64_t n = model.streams.count;
  return {.outputs = 2 * n + n * n, .inputs = n * model.hidden};
}

RecurrentProducts recurrent_products(const Recurrent& r) {
  switch (r.kind) {
    case RecurrentKind::gated_delta_net: return {.in = 2 * r.keys() + 2 * r.values(), .gates = 2 * r.heads};
    case RecurrentKind::kimi_delta: return {.in = 2 * r.keys() + r.values(), .gates = r.heads};
    case RecurrentKind::mamba2: return {.in = 2 * r.values() + 2 * r.keys() + r.heads, .gates = 0};
    case RecurrentKind::mamba: return {.in = 2 * r.values(), .gates = 0};
    case RecurrentKind::lightning: return {.in = 2 * r.keys() + r.values(), .gates = r.values()};
    case RecurrentKind::short_conv: return {.in = 3 * r.values(), .gates = 0};
  }
  return {};
}

std::vector<Tensor> layer_tensors(const Decoder& model, const Layer& layer) {
  std::vector<Tensor> tensors;
  tensors.reserve(24);
  if (layer.joined_inputs > 0) {
    TensorList list(tensors, Part::norm);
    list.matrix(Role::join_inputs, model.hidden, layer.joined_inputs * model.hidden);
    list.vector({"hnorm.weight", "nextn.hnorm.weight"}, model.hidden, layer.reads_token ? 1 : layer.joined_inputs);
  }
  if (layer.norms >= 1 && !layer.norms_after) {
    TensorList(tensors, Part::norm)
        .norm(model.norm, {"input_layernorm.weight", "attn_norm.weight"}, {"input_layernorm.bias", "attn_norm.bias"},
              model.hidden);
  }
  if (layer.attends()) add_attention(tensors, layer.attention, model.hidden, layer.mixer_input(model.hidden));
  if (layer.recurrent) add_recurrent(tensors, *layer.recurrent, model.hidden);
  add_norms(tensors, model, layer);
  add_feed_forward(tensors, layer.feed_forward, model.hidden);
  add_between(tensors, model, layer);
  return tensors;
}

std::vector<Tensor> outer_tensors(const Decoder& model) {
  std::vector<Tensor> tensors;
  TensorList embeddings(tensors, Part::embedding);
  TensorList head(tensors, Part::lm_head);
  TensorList norms(tensors, Part::norm);
  if (!model.borrows_embedding) embeddings.matrix(Role::token_embedding, model.vocab, model.hidden);
  if (model.position_embeddings > 0) {
    embeddings.matrix(Role::position_embedding, model.position_embeddings, model.hidden);
  }
  if (model.type_embeddings > 0) embeddings.matrix(Role::type_embedding, model.type_embeddings, model.hidden);
  if (model.layer_embedding_width > 0) {
    const std::int64_t all = model.num_layers() * model.layer_embedding_width;
    embeddings.matrix(Role::layer_embedding, model.layer_embedding_vocab, all);
    embeddings.matrix(Role::model_projection, all, model.hidden);
    norms.vector({"model.per_layer_projection_norm.weight", "per_layer_proj_norm.weight"}, model.layer_embedding_width);
  }
  if (model.embedding_norm) {
    norms.norm(model.norm, {"model.embed_norm.weight", "token_embd_norm.weight"},
               {"model.embed_norm.bias", "token_embd_norm.bias"}, model.hidden);
  }
  if (model.streams.mix == StreamMix::hyper_connections) {
    const std::int64_t n = model.streams.count;
    norms.matrix(Role::stream_mix, n, hyper_connection(model).inputs);
    norms.vector({"hc_head_base", "hc_head_base"}, n + 1);
  } else if (model.streams.mix == StreamMix::altup) {
    // Into the further streams and back.
    norms.matrix(Role::stream_mix, model.hidden, model.hidden, 2 * (model.streams.count - 1));
  }
  if (model.attention_residuals) norms.vector({"model.attn_res.weight", "attn_res.weight"}, 2 * model.hidden);
  if (model.final_norm) {
    norms.norm(model.norm, {"model.norm.weight", "output_norm.weight"}, {"model.norm.bias", "output_norm.bias"},
               model.hidden);
  }
  if (model.pooler) head.linear(Role::pooler, model.hidden, model.hidden, true);
  const std::int64_t rows = head_rows(model);
  if (rows == 0) return tensors;
  if (!model.tied_embeddings) head.matrix(Role::lm_head, rows, model.hidden);
  if (model.lm_head_bias) head.bias(Role::lm_head, rows);
  return tensors;
}

std::int64_t head_rows(const Decoder& model) { return model.encoder ? model.labels : model.vocab; }

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
        case Part::recurrent: counts.layer_matrices += elements; [[fallthrough]];
        case Part::recurrent_norm: counts.recurrent += elements; break;
        case Part::norm: counts.norms += elements; break;
        default:
          counts.feed_forward += elements;
          counts.layer_matrices += elements;
          break;
      }
    }
    if (const auto& experts = layer.feed_forward.experts) {
      // Some of a token's experts may be such that return their input.
      const std::int64_t used = experts->per_token * experts->count / (experts->count + experts->identity);
      idle += times * (experts->count - used) * expert_elements(layer.feed_forward, model.hidden);
    }
  }
  std::int64_t outer = 0;
  for (const Tensor& tensor : outer_tensors(model)) {
    outer += tensor.elements();
    if (tensor.part == Part::embedding) counts.embedding += tensor.elements();
    if (tensor.part == Part::norm) counts.final_norm += tensor.elements();
    if (tensor.role == Role::layer_embedding) idle += tensor.elements();
  }
  const std::int64_t output_matrix = head_rows(model) * model.hidden;
  const std::int64_t pooler = model.pooler ? model.hidden * (model.hidden + 1) : 0;
  counts.lm_head = output_matrix + pooler + (model.lm_head_bias ? head_rows(model) : 0);
  counts.total = outer + counts.layers;
  counts.activated = counts.total - idle;
  if (model.vision) counts.vision = count_parameters(*model.vision).total();
  counts.checkpoint = counts.total + (model.checkpoint_repeats_lm_head ? output_matrix : 0) + counts.vision;
  if (model.next_token_layers > 0) {
    // With copies of the embedding and the lm_head (DeepSeek-V3's README_WEIGHTS.md: 11.5 G parameters beside them).
    counts.checkpoint += model.next_token_layers * (count_parameters(next_token_draft(model)).total +
                                                    (model.next_token_copies ? 2 * output_matrix : 0));
  }
  counts.layer_matrices_activated = counts.layer_matrices - idle;
  return counts;
}

CacheRow cache_row(const Attention& a) {
  if (a.shares_cache) return {};
  if (a.latent) return {.keys = a.latent->kv_lora_rank + a.latent->rope_dim, .values = 0};
  return {.keys = a.kv_heads * a.head_dim, .values = a.one_vector ? 0 : a.kv_heads * a.v_head_dim};
}

IndexRow index_row(const Attention& a) {
  if (!a.indexer || a.indexer->reused) return {};
  const double tokens = static_cast<double>(a.compression ? a.compression->ratio : a.indexer->pool);
  return {.elements = static_cast<double>(a.indexer->head_dim) / tokens, .bits = a.indexer->cached_bits};
}

std::int64_t kv_values_per_token(const Attention& attention) {
  const CacheRow row = cache_row(attention);
  return row.keys + row.values;
}

std::int64_t kv_values_per_token(const Decoder& model, bool growing_alone) {
  std::int64_t values = 0;
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    const Attention& a = model.kinds[kind].attention;
    if (!growing_alone || !a.window) values += model.count_of_kind(kind) * kv_values_per_token(a);
  }
  return values;
}

double state_bytes(const Recurrent& r, double activation_bytes) {
  constexpr double kState = 4;
  return static_cast<double>(r.state_elements()) * kState + static_cast<double>(r.conv_elements()) * activation_bytes;
}

double state_bytes_per_sequence(const Decoder& model, double activation_bytes) {
  double bytes = 0;
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    const auto& recurrent = model.kinds[kind].recurrent;
    if (recurrent) bytes += static_cast<double>(model.count_of_kind(kind)) * state_bytes(*recurrent, activation_bytes);
  }
  return bytes;
}

}  // namespace llmperf::model
