// Mixtures of experts. Attention is that of the dense sibling, but for DeepSeek's latents and gpt-oss' sinks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/hf_family.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

using descriptor::Reader;

// The number of experts has two spellings, by the version of transformers that wrote the file. Reads the one that is
// there.
std::int64_t read_expert_count(Reader& reader, std::string_view key, std::string_view other_key) {
  const bool other = !reader.has(key) && reader.has(other_key);
  ignore(reader, {key, other_key});
  return reader.require_int(other ? other_key : key, kExpertRange);
}

// The experts' count and routing; their widths are the caller's.
Experts read_routing(HfModel& model, std::string_view count_key, std::string_view other_count_key) {
  Experts experts;
  experts.count = read_expert_count(model.reader, count_key, other_count_key);
  experts.per_token = model.reader.require_int("num_experts_per_tok", kExpertRange);
  check_experts(model.reader, "num_experts_per_tok", experts);
  ignore(model.reader, {"norm_topk_prob"});
  return experts;
}

// Qwen's rule: layer i has experts when i + 1 is a multiple of decoder_sparse_step and it is not in mlp_only_layers.
// The others are dense and of width intermediate_size, which otherwise means nothing.
void read_sparse_layers(HfModel& model) {
  Reader& reader = model.reader;
  const std::int64_t step = reader.int_or("decoder_sparse_step", 1, kLayerRange);
  model.dense_layers.assign(static_cast<std::size_t>(model.layers), false);
  for (std::int64_t i = 0; i < model.layers; ++i) model.dense_layers[static_cast<std::size_t>(i)] = (i + 1) % step != 0;
  for (const std::int64_t i : reader.optional_ints("mlp_only_layers", {0, kLayerRange.max})) {
    if (i < model.layers) model.dense_layers[static_cast<std::size_t>(i)] = true;
  }
  if (std::find(model.dense_layers.begin(), model.dense_layers.end(), true) == model.dense_layers.end()) {
    ignore(reader, {"intermediate_size"});
    return;
  }
  model.dense = model.layer.feed_forward;
  model.dense.experts.reset();
  model.dense.intermediate = reader.require_int("intermediate_size", kWidthRange);
}

void read_deepseek(HfModel& model, std::int64_t first_dense_by_default) {
  Reader& reader = model.reader;
  read_dimensions(model, false);
  for (const std::string_view key : {"attention_bias", "mlp_bias"}) expect(reader, key, false);

  Attention& attention = model.layer.attention;
  LatentAttention latent;
  attention.heads = reader.require_int("num_attention_heads", kHeadRange);
  attention.kv_heads = attention.heads;
  latent.q_lora_rank = reader.optional_int("q_lora_rank", kWidthRange);
  if (!latent.q_lora_rank && !is_null(reader, "q_lora_rank")) latent.q_lora_rank = 1536;
  latent.kv_lora_rank = reader.int_or("kv_lora_rank", 512, kWidthRange);
  latent.rope_dim = reader.int_or("qk_rope_head_dim", 64, kHeadDimRange);
  latent.nope_dim = reader.int_or("qk_nope_head_dim", 128, kHeadDimRange);
  attention.head_dim = latent.rope_dim + latent.nope_dim;
  attention.v_head_dim = reader.int_or("v_head_dim", 128, kHeadDimRange);
  attention.rotary_dim = latent.rope_dim;
  attention.latent = latent;

  FeedForward& ff = model.layer.feed_forward;
  ff.activation = read_activation(reader, "hidden_act", Activation::silu);
  Experts experts = read_routing(model, "n_routed_experts", "num_local_experts");
  experts.groups = reader.optional_int("n_group", kGroupRange).value_or(1);
  experts.groups_per_token = reader.optional_int("topk_group", kGroupRange).value_or(experts.groups);
  if (std::string wrong = groups_problem(experts); !wrong.empty()) reader.problem("n_group", std::move(wrong));
  experts.intermediate = reader.require_int("moe_intermediate_size", kWidthRange);
  const bool no_shared = is_null(reader, "n_shared_experts");
  const std::int64_t shared = reader.optional_int("n_shared_experts", {0, kExpertRange.max}).value_or(0);
  if (!no_shared && !reader.has("n_shared_experts")) reader.require_int("n_shared_experts");
  experts.shared_intermediate = shared * experts.intermediate;
  ff.experts = experts;
  if (reader.int_or("moe_layer_freq", 1, kLayerRange) != 1) {
    reader.problem("moe_layer_freq", "moe_layer_freq other than 1 is not supported");
  }
  const std::int64_t dense = reader.int_or("first_k_dense_replace", first_dense_by_default, {0, kLayerRange.max});
  for (std::int64_t i = 0; i < model.layers; ++i) model.dense_layers.push_back(i < dense);
  model.dense.activation = ff.activation;
  if (dense > 0) {
    model.dense.intermediate = reader.require_int("intermediate_size", kWidthRange);
  } else {
    ignore(reader, {"intermediate_size"});
  }
  // The number of key and value heads plays no part in latent attention; the next-token heads are not run.
  ignore(reader, {"num_key_value_heads", "head_dim", "qk_head_dim", "num_nextn_predict_layers", "routed_scaling_factor",
                  "scoring_func"});
}

}  // namespace

void read_mixtral(HfModel& model) {
  read_dimensions(model, false);
  read_heads(model, {.kv_heads = 8, .head_dim = {}});
  model.window = model.reader.optional_int("sliding_window", kPositionRange);
  FeedForward& ff = model.layer.feed_forward;
  ff.activation = read_activation(model.reader, "hidden_act", Activation::silu);
  ff.experts = read_routing(model, "num_local_experts", "num_experts");
  ff.experts->intermediate = model.reader.require_int("intermediate_size", kWidthRange);
}

void read_qwen2_moe(HfModel& model) {
  Reader& reader = model.reader;
  read_dimensions(model, false);
  read_heads(model, {.kv_heads = 16, .head_dim = {}});
  model.layer.attention.qkv_bias = reader.bool_or("qkv_bias", true);
  // Which layers see the window changed between versions of transformers: only an explicit list is clear.
  model.window = read_switched_window(model);
  ignore(reader, {"max_window_layers"});
  if (model.window && !reader.has("layer_types")) {
    reader.problem("use_sliding_window",
                   "use_sliding_window needs layer_types: versions of transformers disagree on "
                   "which layers of this architecture see the window");
  }
  read_layer_types(model);
  FeedForward& ff = model.layer.feed_forward;
  ff.activation = read_activation(reader, "hidden_act", Activation::silu);
  ff.experts = read_routing(model, "num_experts", "num_local_experts");
  ff.experts->intermediate = reader.require_int("moe_intermediate_size", kWidthRange);
  ff.experts->shared_intermediate = reader.require_int("shared_expert_intermediate_size", kWidthRange);
  ff.experts->shared_gate = true;
  read_sparse_layers(model);
}

void read_qwen3_moe(HfModel& model) {
  Reader& reader = model.reader;
  read_dimensions(model, false);
  read_heads(model, {.kv_heads = 4, .head_dim = {}});
  read_attention_bias(model, false);
  // Keys of Qwen3-Coder-480B's own file: other names, or parts that this architecture has never had.
  if (reader.bool_or("qkv_bias", false)) model.layer.attention.qkv_bias = true;
  expect(reader, "use_qk_norm", true);
  if (reader.int_or("shared_expert_intermediate_size", 0, {0, kWidthRange.max}) != 0) {
    reader.problem("shared_expert_intermediate_size", "shared experts are not supported for this architecture");
  }
  model.layer.attention.qk_norm = true;
  model.window = read_switched_window(model);  // of all layers
  ignore(reader, {"max_window_layers"});
  read_layer_types(model);
  FeedForward& ff = model.layer.feed_forward;
  ff.activation = read_activation(reader, "hidden_act", Activation::silu);
  ff.experts = read_routing(model, "num_experts", "num_local_experts");
  ff.experts->intermediate = reader.require_int("moe_intermediate_size", kWidthRange);
  read_sparse_layers(model);
}

void read_deepseek_v2(HfModel& model) {
  constexpr std::array<std::string_view, 2> kMethods = {"greedy", "group_limited_greedy"};
  model.reader.choice("topk_method", kMethods, 0);
  read_deepseek(model, 0);
}

void read_deepseek_v3(HfModel& model) {
  // The routing bias per expert (e_score_correction_bias) belongs to this method.
  constexpr std::array<std::string_view, 1> kMethods = {"noaux_tc"};
  model.reader.choice("topk_method", kMethods, 0);
  read_deepseek(model, 3);
  model.layer.feed_forward.experts->score_correction = true;
}

void read_gpt_oss(HfModel& model) {
  Reader& reader = model.reader;
  read_dimensions(model, false);
  read_heads(model, {.kv_heads = 8, .head_dim = 64});
  read_attention_bias(model, true);
  model.layer.attention.sinks = true;
  model.window = reader.optional_int("sliding_window", kPositionRange);
  if (!model.window && !is_null(reader, "sliding_window")) model.window = 128;
  slide_even_layers(model);
  read_layer_types(model);
  if (read_activation(reader, "hidden_act", Activation::silu) != Activation::silu) {
    reader.problem("hidden_act", "this architecture has a clamped SwiGLU; hidden_act must be silu");
  }
  ignore(reader, {"swiglu_limit", "swiglu_alpha", "experts_per_token"});
  FeedForward& ff = model.layer.feed_forward;
  ff.activation = Activation::swiglu_clamped;
  ff.bias = true;
  ff.fused_gate_up = true;
  ff.experts = read_routing(model, "num_local_experts", "num_experts");
  ff.experts->intermediate = reader.require_int("intermediate_size", kWidthRange);
  ff.experts->router_bias = true;
}

}  // namespace llmperf::model
