// Sources: the config classes and modelling code in transformers; the loading of hyperparameters and tensors in
// llama.cpp (src/llama-model.cpp), and its converter (convert_hf_to_gguf.py) for what it writes into the keys.
#include "model/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "model/gguf/tensors.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

// In the order of Fact.
constexpr FactRow kFacts[] = {
    {Fact::hidden, "hidden_size", "embedding_length", kHiddenRange},
    {Fact::layers, "num_hidden_layers", "block_count", kLayerRange},
    {Fact::vocab, "vocab_size", "vocab_size", kVocabRange},
    {Fact::max_position, "max_position_embeddings", "context_length", kPositionRange},
    {Fact::heads, "num_attention_heads", "attention.head_count", kHeadRange},
    {Fact::kv_heads, "num_key_value_heads", "attention.head_count_kv", kHeadRange},
    {Fact::head_dim, "head_dim", "attention.key_length", kHeadDimRange},
    {Fact::v_head_dim, "v_head_dim", "attention.value_length", kHeadDimRange},
    {Fact::q_lora_rank, "q_lora_rank", "attention.q_lora_rank", kWidthRange},
    {Fact::kv_lora_rank, "kv_lora_rank", "attention.kv_lora_rank", kWidthRange},
    {Fact::rope_dim, "qk_rope_head_dim", "rope.dimension_count", kHeadDimRange},
    {Fact::nope_dim, "qk_nope_head_dim", "", kHeadDimRange},
    {Fact::window, "sliding_window", "attention.sliding_window", kPositionRange},
    {Fact::intermediate, "intermediate_size", "feed_forward_length", kWidthRange},
    {Fact::experts, "num_experts", "expert_count", kExpertRange},
    {Fact::experts_per_token, "num_experts_per_tok", "expert_used_count", kExpertRange},
    {Fact::expert_groups, "n_group", "expert_group_count", kGroupRange},
    {Fact::groups_per_token, "topk_group", "expert_group_used_count", kGroupRange},
    {Fact::expert_width, "moe_intermediate_size", "expert_feed_forward_length", kWidthRange},
    {Fact::shared_width, "shared_expert_intermediate_size", "expert_shared_feed_forward_length", kWidthRange},
    {Fact::shared_experts, "n_shared_experts", "expert_shared_count", kExpertRange},
    {Fact::leading_dense, "first_k_dense_replace", "leading_dense_block_count", {0, kLayerRange.max}},
};
static_assert(std::size(kFacts) == static_cast<std::size_t>(Fact::leading_dense) + 1);

using W = WindowLayers;
constexpr Trait kAttentionBias = {false, "attention_bias"};
constexpr WindowRule kSwitchedWindow = {.layers = W::upper, .absent = 4096, .switched = true};
constexpr std::string_view kNumExperts = "num_experts", kLocalExperts = "num_local_experts";
constexpr ExpertRule kQwenExperts = {
    .count = kNumExperts, .other_count = kLocalExperts, .unsaid_per_used = true, .dense = DenseLayers::by_step};
constexpr ExpertRule kDeepseekExperts = {.count = "n_routed_experts",
                                         .other_count = kLocalExperts,
                                         .grouped = true,
                                         .methods = "greedy group_limited_greedy",
                                         .shared = SharedExperts::counted,
                                         .dense = DenseLayers::leading};
// The number of key and value heads plays no part in latent attention.
constexpr std::string_view kDeepseekSkipped =
    "num_key_value_heads head_dim qk_head_dim routed_scaling_factor scoring_func partial_rotary_factor";

constexpr ExpertRule with_shared_expert(ExpertRule rule) {
  rule.shared = SharedExperts::gated;
  return rule;
}
constexpr ExpertRule leading_dense(ExpertRule rule, std::int64_t layers) {
  rule.leading = layers;
  return rule;
}
constexpr ExpertRule without_dense(ExpertRule rule) {
  rule.dense = DenseLayers::none;
  return rule;
}
// The routing bias per expert (e_score_correction_bias) belongs to the method of DeepSeek-V3.
constexpr ExpertRule with_correction(ExpertRule rule) {
  rule.methods = "noaux_tc";
  rule.leading = 3;
  rule.score_correction = true;
  return rule;
}

constexpr std::string_view kGraniteScalars =
    "attention_multiplier embedding_multiplier logits_scaling residual_multiplier init_method normalization_function "
    "position_embedding_type";
constexpr std::string_view kLfm2Skipped =
    "block_dim block_ffn_dim_multiplier block_mlp_init_scale block_multiple_of block_norm_eps block_out_init_scale "
    "block_use_swiglu block_use_xavier_init block_auto_adjust_ff_dim block_ff_dim conv_dim conv_dim_out "
    "conv_use_xavier_init norm_eps num_heads use_pos_enc routed_scaling_factor theta";
constexpr std::string_view kBailingSkipped =
    "embedding_dropout output_dropout router_dtype routed_scaling_factor score_function max_window_layers "
    "group_norm_size linear_silu layer_group_size mtp_loss_scaling_factor multi_gate norm_head norm_softmax "
    "moe_router_topk_scaling_factor linear_attn_norm_group_size rotary_dim sliding_window";
constexpr ExpertRule kBailingExperts = {.count = kNumExperts,
                                        .grouped = true,
                                        .dense = DenseLayers::leading,
                                        .score_correction = true,
                                        .correction_key = "moe_router_enable_expert_bias"};
// The first file of the family has keys of everything that its code once did: images, latent attention, classifiers.
constexpr std::string_view kHunyuanSkipped =
    "attention_head_dim capacity_factor cla_share_factor class_num dense_list enable_lm_head_fp32 kv_lora_rank "
    "max_image_size moe_drop_tokens moe_layer_num_skipped moe_random_routing_dropped_token n_group norm_topk_prob "
    "norm_type num_media_embeds org_vocab_size pool_type q_lora_rank qk_nope_head_dim qk_rope_head_dim "
    "routed_scaling_factor skip_cls_token topk_group use_mixed_mlp_moe use_rotary_pos_emb v_head_dim "
    "xdrope_section";
constexpr std::string_view kGptSpelt =
    "hidden_size=n_embd num_hidden_layers=n_layer num_attention_heads=n_head num_key_value_heads= head_dim= "
    "intermediate_size=n_inner max_position_embeddings=n_positions";
constexpr std::string_view kGptSkipped =
    "n_ctx scale_attn_weights scale_attn_by_inverse_layer_idx reorder_and_upcast_attn";
constexpr std::string_view kMambaSkipped =
    "d_inner d_model n_layer rescale_prenorm_residual residual_in_fp32 rms_norm ssm_cfg time_step_floor "
    "time_step_init_scheme time_step_max time_step_min time_step_scale use_mambapy use_associative_scan mixer_rms_eps";
constexpr std::string_view kBertSkipped =
    "attention_probs_dropout_prob position_embedding_type output_past gradient_checkpointing directionality "
    "pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type";

// A row per architecture: what it is called, then attention, feed-forward part and keys.
// clang-format off
constexpr Family kFamilies[] = {
    {.name = "llama", .also = "yi Yi", .gguf = "llama",
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .mlp_bias = {false, "mlp_bias"}},
    // Mistral, Mixtral and Yi are converted to GGUF as Llama too. A window is honoured if such a file has the key; the
    // converter does not write it, as llama.cpp runs these models without one.
    {.name = "mistral", .gguf = "llama", .kv_heads = 8,
     .window = {.layers = W::all, .absent = 4096, .has_layer_types = false}, .must_be_false = "attention_bias"},
    {.name = "mixtral", .gguf = "llama", .kv_heads = 8, .window = {.layers = W::all, .has_layer_types = false},
     .experts = {.count = kLocalExperts, .other_count = kNumExperts, .width = Fact::intermediate}},
    // The code of the first Qwen came with its files, whose config has names of its own.
    {.name = "qwen", .gguf = "qwen",
     .spelt = "max_position_embeddings=seq_length num_key_value_heads= head_dim=kv_channels",
     .head_dim = 128, .rotary_key = "rotary_pct", .qkv_bias = {true}, .fused_qkv = true,
     .activation_key = "", .halved_width = true, .must_be_false = "use_cache_quantization",
     .skipped = "scale_attn_weights bf16 fp16 fp32 rotary_emb_base use_dynamic_ntk use_logn_attn use_flash_attn "
                "use_cache_kernel softmax_in_fp32 onnx_safe",
     .own_keys = read_qwen_keys},
    {.name = "qwen2", .gguf = "qwen2", .kv_heads = 32, .qkv_bias = {true}, .window = kSwitchedWindow,
     .skipped = "dual_chunk_attention_config"},
    {.name = "qwen2_moe", .gguf = "qwen2moe", .kv_heads = 16, .qkv_bias = {true, "qkv_bias"},
     .window = {.layers = W::listed, .absent = 4096, .switched = true}, .experts = with_shared_expert(kQwenExperts)},
    {.name = "qwen3", .gguf = "qwen3", .kv_heads = 32, .head_dim = 128,
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .qk_norm = QkNorm::head, .window = kSwitchedWindow},
    {.name = "qwen3_moe", .gguf = "qwen3moe", .kv_heads = 4,
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .qk_norm = QkNorm::head,
     .window = {.layers = W::all, .absent = 4096, .switched = true}, .experts = kQwenExperts,
     .must_be_true = "use_qk_norm", .own_keys = read_qwen3_moe_keys},
    // Those for images differ in the rotary embedding alone.
    {.name = "qwen3_vl_text", .also = "qwen3_vl", .like = "qwen3", .gguf = "qwen3vl"},
    {.name = "qwen3_vl_moe_text", .also = "qwen3_vl_moe qwen3_omni_moe_text qwen3_omni_moe", .like = "qwen3_moe", .gguf = "qwen3vlmoe"},
    // The first files of Gemma say hidden_act: gelu, and were trained and are run with the tanh form.
    {.name = "gemma", .gguf = "gemma", .tied = true, .kv_heads = 16, .head_dim = 256,
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias,
     .activation = Activation::gelu_tanh, .activation_key = "hidden_activation",
     .must_be_false = "use_bidirectional_attention", .skipped = "hidden_act"},
    {.name = "gemma2", .gguf = "gemma2", .norms = 4, .tied = true, .kv_heads = 4, .head_dim = 256,
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .softcap = true,
     .window = {.layers = W::even, .absent = 4096},
     .activation = Activation::gelu_tanh, .activation_key = "hidden_activation",
     .must_be_false = "use_bidirectional_attention",
     .skipped = "hidden_act query_pre_attn_scalar final_logit_softcapping sliding_window_size"},
    {.name = "phi", .gguf = "phi2",
     .absent = "vocab_size=51200 hidden_size=2048 num_hidden_layers=24 num_attention_heads=32 intermediate_size=8192",
     .norm = Norm::layer, .norms = 1, .parallel_blocks = true, .lm_head_bias = true,
     .rotary = 0.5, .rotary_key = "partial_rotary_factor", .qkv_bias = {true}, .o_bias = {true},
     .gated = false, .activation = Activation::gelu_tanh, .mlp_bias = {true}, .must_be_false = "qk_layernorm"},
    // Two of the keys are of Phi-4-mini; 1 means that every layer is an ordinary one.
    {.name = "phi3", .gguf = "phi3", .rotary_key = "partial_rotary_factor", .fused_qkv = true,
     .window = {.layers = W::all, .has_layer_types = false}, .fused_gate_up = true,
     .must_be_false = "attention_bias mlp_bias lm_head_bias", .must_be_one = "full_attn_mod interpolate_factor"},
    {.name = "deepseek_v2", .gguf = "deepseek2", .latent = true, .experts = kDeepseekExperts,
     .must_be_false = "attention_bias mlp_bias", .must_be_one = "moe_layer_freq", .skipped = kDeepseekSkipped},
    {.name = "deepseek_v3", .also = "kimi_k2", .gguf = "deepseek2", .latent = true, .experts = with_correction(kDeepseekExperts),
     .must_be_false = "attention_bias mlp_bias", .must_be_one = "moe_layer_freq", .skipped = kDeepseekSkipped},
    {.name = "minicpm3", .gguf = "minicpm3", .tied = true, .latent = true, .must_be_false = "attention_bias",
     .skipped = "num_key_value_heads head_dim scale_emb scale_depth dim_model_base"},
    // ChatGLM2, ChatGLM3 and GLM-4-9B: again code that came with the files.
    {.name = "chatglm", .gguf = "chatglm",
     .spelt = "num_hidden_layers=num_layers vocab_size=padded_vocab_size max_position_embeddings=seq_length "
              "num_key_value_heads=multi_query_group_num head_dim=kv_channels intermediate_size=ffn_hidden_size",
     .kv_heads = 1, .head_dim = 128, .rotary = 0.5,
     .qkv_bias = {false, "add_qkv_bias"}, .o_bias = {false, "add_bias_linear"}, .fused_qkv = true,
     .activation_key = "", .mlp_bias = {false, "add_bias_linear"}, .fused_gate_up = true,
     .must_be_true = "post_layer_norm",
     .skipped = "vocab_size rope_ratio original_rope bias_dropout_fusion attention_softmax_in_fp32 "
                "fp32_residual_connection apply_query_key_layer_scaling apply_residual_connection_post_layernorm "
                "prefix_projection",
     .own_keys = read_chatglm_keys},
    {.name = "glm4", .also = "glm4v glm4v_text", .gguf = "glm4", .norms = 4, .kv_heads = 2, .head_dim = 128,
     .rotary = 0.5, .rotary_key = "partial_rotary_factor",
     .qkv_bias = {true, "attention_bias"},  // the output projection has none
     .fused_gate_up = true},
    {.name = "glm", .kv_heads = 2, .head_dim = 128, .rotary = 0.5, .rotary_key = "partial_rotary_factor",
     .qkv_bias = {true, "attention_bias"}, .fused_gate_up = true},
    // The checkpoint fuses the experts; llama.cpp's converter takes them apart.
    {.name = "gpt_oss", .gguf = "gpt-oss", .kv_heads = 8, .head_dim = 64,
     .qkv_bias = {true, "attention_bias"}, .o_bias = {true, "attention_bias"}, .sinks = true,
     .window = {.layers = W::even, .absent = 128},
     .activation = Activation::swiglu_clamped, .mlp_bias = {true}, .fused_gate_up = true,
     .experts = {.count = kLocalExperts, .other_count = kNumExperts, .width = Fact::intermediate, .router_bias = true},
     .skipped = "swiglu_limit swiglu_alpha experts_per_token"},

    // ---- 2024 to 2026, by the code in transformers and beside the models' files
    {.name = "ministral3", .also = "mistral3", .gguf = "mistral3", .kv_heads = 8, .window = {.layers = W::all, .has_layer_types = false},
     .must_be_false = "attention_bias"},
    {.name = "mistral4", .gguf = "mistral4", .latent = true, .experts = kDeepseekExperts,
     .must_be_false = "attention_bias mlp_bias", .must_be_one = "moe_layer_freq", .skipped = kDeepseekSkipped},
    {.name = "deepseek_v32", .gguf = "deepseek32", .latent = true, .experts = with_correction(kDeepseekExperts),
     .must_be_false = "attention_bias mlp_bias", .must_be_one = "moe_layer_freq", .skipped = kDeepseekSkipped,
     .own_layers = make_indexed_layers},
    {.name = "glm_moe_dsa", .like = "deepseek_v32", .gguf = "glm-dsa"},
    {.name = "glm4_moe_lite", .gguf = "deepseek2", .latent = true,
     .experts = leading_dense(with_correction(kDeepseekExperts), 1),
     .must_be_false = "attention_bias mlp_bias", .must_be_one = "moe_layer_freq", .skipped = kDeepseekSkipped},
    {.name = "glm4_moe", .also = "glm4v_moe glm4v_moe_text", .gguf = "glm4moe", .kv_heads = 8, .head_dim = 128,
     .rotary = 0.5, .rotary_key = "partial_rotary_factor", .qkv_bias = kAttentionBias,
     .qk_norm = QkNorm::head, .qk_normed = {false, "use_qk_norm"},
     .experts = leading_dense(with_correction(kDeepseekExperts), 1), .skipped = "routed_scaling_factor scoring_func"},
    {.name = "minimax_m2", .gguf = "minimax-m2", .kv_heads = 8, .head_dim = 128, .rotary_dim_key = "rotary_dim",
     .qk_norm = QkNorm::whole, .qk_normed = {true, "use_qk_norm"},
     .experts = {.count = kLocalExperts, .width = Fact::intermediate, .score_correction = true,
                 .correction_key = "use_routing_bias"},
     .skipped = "sliding_window attn_type_list mtp_transformer_layers num_mtp_modules use_mtp qk_norm_type scoring_func "
                "shared_intermediate_size partial_rotary_factor"},
    {.name = "minimax_m3_vl", .also = "minimax_m3", .kv_heads = 4, .head_dim = 128, .rotary_dim_key = "rotary_dim",
     .qk_norm = QkNorm::head, .qk_normed = {true, "use_qk_norm"}, .activation = Activation::swiglu_clamped,
     .activation_key = "",
     .experts = {.count = kLocalExperts, .width = Fact::intermediate, .score_correction = true,
                 .correction_key = "use_routing_bias"},
     .must_be_false = "attention_output_gate",
     .skipped = "hidden_act num_mtp_modules qk_norm_type scoring_func partial_rotary_factor routed_scaling_factor "
                "swiglu_alpha swiglu_limit use_gemma_norm",
     .own_layers = make_minimax_m3_layers},
    {.name = "deepseek_v4", .spelt = "intermediate_size=", .kv_heads = 1, .head_dim = 512, .window = {.layers = W::all, .absent = 128,
     .has_layer_types = false}, .experts = without_dense(with_correction(kDeepseekExperts)),
     .must_be_false = "attention_bias mlp_bias", .skipped = "routed_scaling_factor scoring_func swiglu_limit "
     "compress_rope_theta hc_eps hc_sinkhorn_iters",
     .own_layers = make_deepseek_v4_layers},
    {.name = "kimi_linear", .gguf = "kimi-linear",
     .spelt = "num_experts_per_tok=num_experts_per_token n_shared_experts=num_shared_experts n_group=num_expert_group "
              "max_position_embeddings=model_max_length",
     .latent = true, .rotary = 0,
     .experts = {.count = kNumExperts, .grouped = true, .methods = "noaux_tc", .shared = SharedExperts::counted,
                 .dense = DenseLayers::leading, .leading = 1, .score_correction = true},
     .must_be_true = "mla_use_nope", .must_be_one = "moe_layer_freq",
     .skipped = "num_key_value_heads head_dim routed_scaling_factor moe_renormalize moe_router_activation_func "
                "use_grouped_topk activation_situ_beta activation_situ_linear_beta",
     .own_layers = make_kimi_layers},
    {.name = "longcat_flash",
     .spelt = "num_hidden_layers=num_layers intermediate_size=ffn_hidden_size num_experts_per_tok=moe_topk "
              "moe_intermediate_size=expert_ffn_hidden_size",
     .latent = true, .experts = {.count = "n_routed_experts", .score_correction = true},
     .must_be_false = "attention_bias router_bias",
     .skipped = "num_key_value_heads head_dim attention_method mla_scale_q_lora mla_scale_kv_lora "
                "routed_scaling_factor hidden_act",
     .own_layers = make_longcat_layers},
    // Three layers of four are gated delta nets, and a sigmoid gate in the query matrix is on the others' result.
    {.name = "qwen3_next", .gguf = "qwen3next", .kv_heads = 2, .head_dim = 256,
     .rotary = 0.25, .rotary_key = "partial_rotary_factor", .qkv_bias = kAttentionBias, .o_bias = kAttentionBias,
     .qk_norm = QkNorm::head, .experts = with_shared_expert(kQwenExperts),
     .must_be_false = "use_sliding_window", .own_layers = make_delta_net_layers},
    {.name = "qwen3_5_moe_text", .also = "qwen3_5_moe", .gguf = "qwen35moe", .next_token_key = "mtp_num_hidden_layers", .next_token_copies = false,
     .kv_heads = 2, .head_dim = 256, .rotary = 0.25, .rotary_key = "partial_rotary_factor", .qkv_bias = kAttentionBias,
     .o_bias = kAttentionBias, .qk_norm = QkNorm::head, .experts = with_shared_expert(kQwenExperts),
     .must_be_true = "attn_output_gate",
     .must_be_false = "use_sliding_window mtp_use_dedicated_embeddings", .skipped = "mamba_ssm_dtype",
     .own_layers = make_delta_net_layers},
    {.name = "qwen3_5_text", .also = "qwen3_5", .gguf = "qwen35", .next_token_key = "mtp_num_hidden_layers", .next_token_copies = false,
     .kv_heads = 4, .head_dim = 256, .rotary = 0.25, .rotary_key = "partial_rotary_factor", .qkv_bias = kAttentionBias,
     .o_bias = kAttentionBias, .qk_norm = QkNorm::head, .must_be_true = "attn_output_gate",
     .must_be_false = "use_sliding_window mtp_use_dedicated_embeddings", .skipped = "mamba_ssm_dtype mlp_only_layers",
     .own_layers = make_delta_net_layers},
    {.name = "qwen2_vl", .also = "qwen2_5_vl qwen2_vl_text qwen2_5_vl_text qwen2_5_omni qwen2_5_omni_text", .gguf = "qwen2vl",
     .kv_heads = 8, .qkv_bias = {true}, .window = kSwitchedWindow,
     .skipped = "vision_config"},
    {.name = "gemma3_text", .also = "gemma3", .gguf = "gemma3",
     .absent = "vocab_size=262208 hidden_size=2304 num_hidden_layers=26 num_attention_heads=8 intermediate_size=9216",
     .norms = 4, .tied = true, .kv_heads = 4, .head_dim = 256,
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .qk_norm = QkNorm::head,
     .window = {.layers = W::pattern, .absent = 4096, .period = 6},
     .activation = Activation::gelu_tanh, .activation_key = "hidden_activation",
     .must_be_false = "use_bidirectional_attention",
     .skipped = "hidden_act query_pre_attn_scalar final_logit_softcapping attn_logit_softcapping rope_local_base_freq"},
    {.name = "gemma4_text", .also = "gemma4", .gguf = "gemma4", .norms = 4, .tied = true, .kv_heads = 4, .head_dim = 256,
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .qk_norm = QkNorm::head,
     .window = {.layers = W::pattern, .absent = 512, .period = 6},
     .activation = Activation::gelu_tanh, .activation_key = "hidden_activation",
     .skipped = "hidden_act final_logit_softcapping use_bidirectional_attention",
     .own_layers = make_gemma4_layers},
    {.name = "gemma3n_text", .also = "gemma3n", .gguf = "gemma3n", .spelt = "intermediate_size=", .absent = "vocab_size=262400",
     .norms = 4, .tied = true, .kv_heads = 2, .head_dim = 256,
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .qk_norm = QkNorm::head,
     .window = {.layers = W::pattern, .absent = 512, .period = 5},
     .activation = Activation::gelu_tanh, .activation_key = "hidden_activation",
     .skipped = "query_pre_attn_scalar final_logit_softcapping rope_local_base_freq activation_sparsity_pattern "
                "altup_active_idx altup_coef_clip altup_correct_scale altup_lr_multiplier",
     .own_layers = make_gemma3n_layers},
    // Each block is one mixer behind one norm.
    {.name = "nemotron_h", .gguf = "nemotron_h nemotron_h_moe", .spelt = "num_hidden_layers=", .kv_heads = 8, .head_dim = 128,
     .rotary = 0, .gated = false, .activation = Activation::relu2, .activation_key = "mlp_hidden_act",
     .must_be_false = "attention_bias mlp_bias mamba_proj_bias use_bias",
     .skipped = "num_hidden_layers expand mamba_expand hidden_act mamba_hidden_act mamba_ssm_cache_dtype "
                "partial_rotary_factor sliding_window rescale_prenorm_residual residual_in_fp32 time_step_floor "
                "time_step_limit time_step_max time_step_min time_step_rank use_mamba_kernels norm_topk_prob "
                "routed_scaling_factor mtp_layers_block_type mtp_hybrid_override_pattern mamba_num_groups "
                "mamba_state_dim num_query_groups attention_head_dim moe_shared_expert_overlap",
     .own_layers = make_nemotron_h_layers},
    {.name = "nemotron-nas", .gguf = "deci", .spelt = "intermediate_size= num_key_value_heads=",
     .must_be_false = "attention_bias mlp_bias", .skipped = "num_key_value_heads intermediate_size",
     .own_layers = make_nemotron_nas_layers},
    {.name = "granite", .gguf = "granite", .qkv_bias = kAttentionBias, .o_bias = kAttentionBias,
     .mlp_bias = {false, "mlp_bias"}, .skipped = kGraniteScalars},
    {.name = "granitemoe", .gguf = "granitemoe", .qkv_bias = kAttentionBias, .o_bias = kAttentionBias,
     .experts = {.count = kLocalExperts, .width = Fact::intermediate}, .skipped = kGraniteScalars},
    {.name = "granitemoehybrid", .also = "granitemoeshared", .gguf = "granitehybrid", .spelt = "intermediate_size=",
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias,
     .must_be_false = "mamba_proj_bias mlp_bias", .skipped = kGraniteScalars, .own_layers = make_granite_hybrid_layers},
    {.name = "falcon_h1", .gguf = "falcon-h1", .kv_heads = 8,
     .must_be_false = "attention_bias mamba_proj_bias mlp_bias projectors_bias",
     .skipped = "attention_in_multiplier attention_out_multiplier attn_layer_indices embedding_multiplier key_multiplier "
                "lm_head_multiplier mamba_expand mamba_norm_before_gate mamba_use_mlp mlp_expansion_factor "
                "mlp_multipliers ssm_in_multiplier ssm_multipliers ssm_out_multiplier time_step_floor time_step_max "
                "time_step_min time_step_limit",
     .own_layers = make_falcon_h1_layers},
    {.name = "jamba", .gguf = "jamba", .kv_heads = 8, .rotary = 0, .must_be_false = "mamba_proj_bias",
     .skipped = "calc_logits_for_entire_prompt sliding_window use_mamba_kernels mamba_inner_layernorms",
     .own_layers = make_jamba_layers},
    {.name = "lfm2", .gguf = "lfm2", .spelt = "intermediate_size=", .tied = true, .kv_heads = 8,
     .qk_norm = QkNorm::head, .activation_key = "", .must_be_true = "tie_embedding", .must_be_false = "conv_bias",
     .skipped = kLfm2Skipped, .own_keys = read_lfm2_keys, .own_layers = make_lfm2_layers},
    {.name = "lfm2_moe", .gguf = "lfm2moe", .tied = true, .kv_heads = 8, .qk_norm = QkNorm::head, .activation_key = "",
     .experts = {.count = kNumExperts, .dense = DenseLayers::leading, .score_correction = true,
                 .correction_key = "use_expert_bias"},
     .must_be_true = "tie_embedding", .must_be_false = "conv_bias", .skipped = kLfm2Skipped,
     .own_layers = make_lfm2_layers},
    {.name = "llama4_text", .also = "llama4", .gguf = "llama4", .spelt = "intermediate_size=intermediate_size_mlp", .kv_heads = 8,
     .head_dim = 128, .qkv_bias = kAttentionBias, .o_bias = kAttentionBias,
     .skipped = "use_qk_norm attn_temperature_tuning attn_scale floor_scale for_llm_compressor layer_types",
     .own_layers = make_llama4_layers},
    {.name = "mimo", .kv_heads = 8, .qkv_bias = {true, "attention_bias"}, .window = kSwitchedWindow},
    {.name = "mimo_v2_flash", .gguf = "mimo2", .kv_heads = 4, .head_dim = 192,
     .rotary = 0.334, .rotary_key = "partial_rotary_factor",
     .experts = {.count = "n_routed_experts", .grouped = true, .methods = "noaux_tc", .score_correction = true},
     .must_be_false = "attention_bias",
     .skipped = "attention_chunk_size attention_value_scale n_shared_experts routed_scaling_factor scoring_func "
                "sliding_window_size swa_rope_theta hybrid_block_size attention_projection_layout",
     .own_layers = make_mimo_v2_layers},
    {.name = "step3p5", .also = "step3p7", .gguf = "step35", .spelt = "num_key_value_heads=num_attention_groups", .kv_heads = 8,
     .qk_norm = QkNorm::head, .qk_normed = {true, "use_qk_norm"}, .activation_key = "",
     .must_be_true = "use_moe use_head_wise_attn_gate",
     .skipped = "att_impl_type max_seq_len moe_every_n_layer moe_layer_offset moe_router_activation "
                "moe_router_scaling_factor need_fp32_gate norm_expert_weight scoring_func n_shared_experts partial_rotary_factors swiglu_limits "
                "swiglu_limits_shared use_rope_layers yarn_only_types zero_centered sink use_moe_router_bias",
     .own_layers = make_step3_layers},
    {.name = "cohere", .gguf = "command-r", .norm = Norm::layer_no_bias, .norms = 1, .parallel_blocks = true, .tied = true,
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .qk_norm = QkNorm::whole, .qk_normed = {false, "use_qk_norm"},
     .skipped = "logit_scale"},
    {.name = "cohere2", .gguf = "cohere2", .norm = Norm::layer_no_bias, .norms = 1, .parallel_blocks = true, .tied = true,
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias,
     .window = {.layers = W::pattern, .absent = 4096, .period = 4, .rotates_all = false},
     .must_be_true = "use_parallel_block use_gated_activation use_embedding_sharing",
     .must_be_false = "use_qk_norm",
     .skipped = "logit_scale use_parallel_embedding layer_switch order_of_interleaved_layers position_embedding_type rotary_pct"},
    {.name = "olmo2", .gguf = "olmo2", .norms_after = true, .qkv_bias = kAttentionBias, .o_bias = kAttentionBias,
     .qk_norm = QkNorm::whole},
    {.name = "olmo3", .gguf = "olmo2", .norms_after = true, .qkv_bias = kAttentionBias, .o_bias = kAttentionBias,
     .qk_norm = QkNorm::whole, .window = {.layers = W::pattern, .absent = 4096, .period = 4}},
    {.name = "exaone4", .also = "exaone4_5_text exaone4_5", .gguf = "exaone4", .norms_after = true, .kv_heads = 32, .qk_norm = QkNorm::head,
     .window = {.layers = W::pattern, .absent = 4096, .period = 4, .rotates_all = false},
     .skipped = "mtp_loss_scaling_factor mtp_share_layers"},
    {.name = "seed_oss", .gguf = "seed_oss", .kv_heads = 8, .head_dim = 128, .qkv_bias = {true, "attention_bias"},
     .o_bias = {false, "attention_out_bias"}, .mlp_bias = {false, "mlp_bias"}, .skipped = "residual_dropout"},
    {.name = "smollm3", .gguf = "smollm3", .tied = true, .kv_heads = 4,
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .mlp_bias = {false, "mlp_bias"},
     .must_be_false = "use_sliding_window", .skipped = "sliding_window max_window_layers layer_types",
     .own_layers = make_smollm3_layers},
    {.name = "olmoe", .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .qk_norm = QkNorm::whole,
     .experts = {.count = kNumExperts, .width = Fact::intermediate}, .skipped = "clip_qkv"},
    {.name = "exaone", .spelt = "num_hidden_layers=num_layers", .activation_key = "activation_function",
     .skipped = "embed_dropout"},
    {.name = "nemotron", .norm = Norm::layer, .rotary = 0.5, .rotary_key = "partial_rotary_factor",
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .gated = false, .activation = Activation::relu2,
     .mlp_bias = {false, "mlp_bias"}},
    {.name = "internlm2", .gguf = "internlm2", .qkv_bias = {false, "bias"}, .o_bias = {false, "bias"}, .fused_qkv = true},
    {.name = "internlm3", .gguf = "llama", .qkv_bias = {false, "qkv_bias"}, .o_bias = {false, "bias"},
     .mlp_bias = {false, "bias"}},
    {.name = "bailing_moe", .also = "bailing_moe_v2", .gguf = "bailingmoe bailingmoe2", .rotary_key = "partial_rotary_factor",
     .qkv_bias = {false, "use_qkv_bias"}, .o_bias = {false, "use_bias"},
     .qk_norm = QkNorm::head, .qk_normed = {false, "use_qk_norm"}, .fused_qkv = true, .experts = kBailingExperts,
     .must_be_true = "use_rmsnorm", .must_be_false = "use_sliding_window", .skipped = kBailingSkipped, .own_keys = read_bailing_keys},
    {.name = "bailing_moe_linear", .also = "bailing_moe_linear_v2", .rotary_key = "partial_rotary_factor",
     .qkv_bias = {false, "use_qkv_bias"}, .o_bias = {false, "use_bias"},
     .qk_norm = QkNorm::head, .qk_normed = {false, "use_qk_norm"}, .fused_qkv = true, .experts = kBailingExperts,
     .must_be_true = "use_rmsnorm", .must_be_false = "use_sliding_window", .skipped = kBailingSkipped, .own_keys = read_bailing_keys,
     .own_layers = make_ring_layers},
    {.name = "ernie4_5", .gguf = "ernie4_5", .tied = true, .qkv_bias = {false, "use_bias"}, .o_bias = {false, "use_bias"},
     .mlp_bias = {false, "use_bias"}},
    {.name = "ernie4_5_moe", .gguf = "ernie4_5-moe",
     .spelt = "num_experts_per_tok=moe_k n_shared_experts=moe_num_shared_experts",
     .absent = "n_shared_experts=0", .tied = true, .kv_heads = 4,
     .qkv_bias = {false, "use_bias"}, .o_bias = {false, "use_bias"}, .mlp_bias = {false, "use_bias"},
     .experts = {.count = "moe_num_experts", .shared = SharedExperts::counted, .score_correction = true},
     .skipped = "moe_capacity moe_gate moe_use_aux_free moe_norm_min moe_group moe_aux_loss_lambda",
     .own_layers = make_ernie_layers},
    {.name = "hunyuan_v1_moe", .gguf = "hunyuan-moe", .spelt = "head_dim=attention_head_dim num_experts_per_tok= "
     "moe_intermediate_size= n_shared_experts=", .qkv_bias = kAttentionBias, .o_bias = kAttentionBias,
     .qk_norm = QkNorm::head, .qk_normed = {false, "use_qk_norm"}, .mlp_bias = {false, "mlp_bias"},
     .must_be_false = "use_cla use_mla position_embedding_xdrope group_limited_greedy add_classification_head",
     .skipped = kHunyuanSkipped,
     .own_keys = read_hunyuan_keys},
    {.name = "hunyuan_v1_dense", .gguf = "hunyuan-dense", .qkv_bias = kAttentionBias, .o_bias = kAttentionBias,
     .qk_norm = QkNorm::head, .qk_normed = {true, "use_qk_norm"}, .mlp_bias = {false, "mlp_bias"},
     .must_be_false = "use_cla use_mla position_embedding_xdrope add_classification_head", .skipped = kHunyuanSkipped},
    {.name = "phimoe", .gguf = "phimoe", .norm = Norm::layer, .lm_head_bias = true, .kv_heads = 8, .qkv_bias = kAttentionBias,
     .o_bias = kAttentionBias, .window = {.layers = W::all, .has_layer_types = false},
     .experts = {.count = kLocalExperts, .width = Fact::intermediate}, .must_be_true = "lm_head_bias", .skipped = "input_jitter_noise"},
    {.name = "dbrx", .gguf = "dbrx",
     .spelt = "hidden_size=d_model num_hidden_layers=n_layers num_attention_heads=n_heads num_key_value_heads= head_dim= "
              "max_position_embeddings=max_seq_len intermediate_size=",
     .norm = Norm::layer_no_bias, .fused_qkv = true, .activation_key = "", .skipped = "resid_pdrop emb_pdrop", .own_layers = make_dbrx_layers},
    {.name = "minimax_text_01", .also = "minimax_m1 minimax", .kv_heads = 8, .rotary_dim_key = "rotary_dim",
     .experts = {.count = kLocalExperts, .width = Fact::intermediate},
     .skipped = "layernorm_full_attention_alpha layernorm_full_attention_beta layernorm_linear_attention_alpha "
                "layernorm_linear_attention_beta layernorm_mlp_alpha layernorm_mlp_beta postnorm sliding_window "
                "shared_intermediate_size shared_moe_mode block_size full_attn_alpha_factor full_attn_beta_factor "
                "linear_attn_alpha_factor linear_attn_beta_factor mlp_alpha_factor mlp_beta_factor",
     .own_layers = make_minimax_01_layers},

    // Every layer is one recurrence behind one norm.
    {.name = "mamba", .also = "falcon_mamba", .gguf = "mamba", .spelt = "num_attention_heads= intermediate_size=",
     .tied = true, .must_be_false = "use_bias",
     .skipped = kMambaSkipped, .own_layers = make_mamba_layers},

    // ---- Older decoders
    {.name = "gpt2", .gguf = "gpt2", .spelt = kGptSpelt, .absent = "max_position_embeddings=1024", .norm = Norm::layer,
     .tied = true, .learned_positions = 0, .rotary = 0, .qkv_bias = {true}, .o_bias = {true}, .fused_qkv = true,
     .gated = false, .activation = Activation::gelu_tanh, .activation_key = "activation_function", .width_of_hidden = 4,
     .mlp_bias = {true}, .skipped = kGptSkipped},
    {.name = "gpt_bigcode", .gguf = "starcoder", .spelt = kGptSpelt, .absent = "max_position_embeddings=1024",
     .norm = Norm::layer, .tied = true, .learned_positions = 0, .rotary = 0, .qkv_bias = {true}, .o_bias = {true},
     .fused_qkv = true, .gated = false, .activation = Activation::gelu_tanh, .activation_key = "activation_function",
     .width_of_hidden = 4, .mlp_bias = {true},
     .skipped = "scale_attn_weights attention_softmax_in_fp32 scale_attention_softmax_in_fp32 inference_runner "
                "validate_runner_input pre_allocate_kv_cache max_sequence_length max_batch_size pad_key_length",
     .own_keys = read_bigcode_keys},
    {.name = "gptj", .spelt = kGptSpelt, .norm = Norm::layer, .norms = 1, .parallel_blocks = true,
     .lm_head_bias = true, .rotary_dim_key = "rotary_dim", .gated = false, .activation = Activation::gelu_tanh,
     .activation_key = "activation_function", .width_of_hidden = 4, .mlp_bias = {true}, .must_be_true = "rotary",
     .skipped = kGptSkipped},
    {.name = "gpt_neox", .gguf = "gptneox", .norm = Norm::layer, .rotary = 0.25, .rotary_key = "rotary_pct",
     .qkv_bias = {true, "attention_bias"}, .o_bias = {true, "attention_bias"}, .fused_qkv = true, .gated = false,
     .activation = Activation::gelu, .width_of_hidden = 4, .mlp_bias = {true},
     .skipped = "rotary_emb_base attention_probs_dropout_prob", .own_keys = read_neox_keys},
    {.name = "opt", .spelt = "intermediate_size=ffn_dim num_key_value_heads= head_dim=",
     .norm = Norm::layer, .tied = true, .learned_positions = 2, .rotary = 0, .qkv_bias = {true, "enable_bias"},
     .o_bias = {true, "enable_bias"}, .gated = false, .activation = Activation::relu,
     .activation_key = "activation_function", .mlp_bias = {true, "enable_bias"}, .must_be_true = "do_layer_norm_before",
     .must_be_false = "remove_final_layer_norm",
     .skipped = "activation_dropout dropout init_std layerdrop word_embed_proj_dim layer_norm_elementwise_affine"},
    {.name = "bloom", .gguf = "bloom",
     .spelt = "hidden_size=n_embed num_hidden_layers=n_layer num_attention_heads=n_head num_key_value_heads= head_dim= "
              "intermediate_size=n_inner max_position_embeddings=seq_length",
     .norm = Norm::layer, .tied = true, .embedding_norm = true, .rotary = 0, .qkv_bias = {true}, .o_bias = {true},
     .fused_qkv = true, .gated = false, .activation = Activation::gelu_tanh, .activation_key = "", .width_of_hidden = 4,
     .mlp_bias = {true},
     .skipped = "apply_residual_connection_post_layernorm attention_softmax_in_fp32 masked_softmax_fusion offset_alibi "
                "skip_bias_add skip_bias_add_qkv slow_but_exact unk_token_id bias_dropout_fusion"},
    {.name = "falcon", .gguf = "falcon", .spelt = "num_key_value_heads=num_kv_heads intermediate_size=ffn_hidden_size",
     .norm = Norm::layer, .tied = true, .fused_qkv = true, .gated = false, .activation = Activation::gelu,
     .activation_key = "activation", .width_of_hidden = 4, .must_be_false = "alibi bias",
     .skipped = "apply_residual_connection_post_layernorm multi_query new_decoder_architecture parallel_attn "
                "num_ln_in_parallel_attn hidden_act",
     .own_keys = read_falcon_keys},
    {.name = "mpt", .gguf = "mpt",
     .spelt = "hidden_size=d_model num_hidden_layers=n_layers num_attention_heads=n_heads num_key_value_heads= head_dim= "
              "max_position_embeddings=max_seq_len intermediate_size=",
     .norm = Norm::layer_no_bias, .tied = true, .rotary = 0, .fused_qkv = true, .gated = false,
     .activation = Activation::gelu, .activation_key = "",
     .skipped = "init_config init_device learned_pos_emb logit_scale embedding_fraction emb_pdrop resid_pdrop verbose "
                "norm_type tokenizer_name",
     .own_keys = read_mpt_keys},
    // Of 13B the positions are ALiBi's, which is not told apart from rotation.
    {.name = "baichuan", .gguf = "baichuan", .fused_qkv = true,
     .skipped = "z_loss_weight"},
    {.name = "starcoder2", .gguf = "starcoder2", .norm = Norm::layer, .tied = true, .kv_heads = 2,
     .qkv_bias = {true, "use_bias"}, .o_bias = {true, "use_bias"},
     .window = {.layers = W::all, .has_layer_types = false}, .gated = false, .activation = Activation::gelu_tanh,
     .mlp_bias = {true, "use_bias"},
     .skipped = "activation_function attention_softmax_in_fp32 embedding_dropout mlp_type norm_epsilon norm_type "
                "residual_dropout scale_attention_softmax_in_fp32 scale_attn_weights"},

    // ---- Encoders
    {.name = "bert", .also = "xlm-roberta roberta camembert", .gguf = "bert",
     .norm = Norm::layer, .norms_after = true, .encoder = true, .embedding_norm = true,
     .learned_positions = 0, .rotary = 0, .qkv_bias = {true}, .o_bias = {true}, .gated = false,
     .activation = Activation::gelu, .mlp_bias = {true}, .must_be_false = "is_causal", .skipped = kBertSkipped, .own_keys = read_bert_keys},
    {.name = "modernbert", .gguf = "modern-bert", .norm = Norm::layer_no_bias, .encoder = true,
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .fused_qkv = true, .activation = Activation::gelu,
     .activation_key = "hidden_activation", .mlp_bias = {false, "mlp_bias"}, .fused_gate_up = true,
     .must_be_false = "norm_bias is_causal causal_mask",
     .skipped = "classifier_activation classifier_bias classifier_pooling decoder_bias deterministic_flash_attn "
                "embedding_dropout global_rope_theta local_rope_theta initializer_cutoff_factor mlp_dropout norm_eps "
                "position_embedding_type reference_compile sparse_pred_ignore_index sparse_prediction repad_logits_with_grad",
     .own_layers = make_modernbert_layers},

    // ---- Read from GGUF files alone
    {.name = "mamba2", .gguf = "mamba2"},
    {.name = "nomic_bert", .gguf = "nomic-bert", .norm = Norm::layer, .encoder = true},
};
// clang-format on
constexpr std::span<const Family> kConfigFamilies = std::span(kFamilies).first(std::size(kFamilies) - 2);
static_assert(kFamilies[kConfigFamilies.size()].name == "mamba2");  // the first that is read from GGUF files alone

constexpr std::string_view kNeutralKeys[] = {
    // identity and files
    // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one text in several lines
    "auto_map custom_pipelines finetuning_task name_or_path problem_type tokenizer_class transformers_version "
    "transformers.js_config unsloth_fixed unsloth_version model_name model_file is_llama_config",
    // how it is run
    // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one text in several lines
    "attn_implementation chunk_size_feed_forward dtype experts_implementation gradient_checkpointing is_decoder "
    "output_attentions output_hidden_states output_router_logits output_scores return_dict return_dict_in_generate "
    "tf_legacy_loss torch_dtype torchscript use_bfloat16 use_cache use_return_dict cache_implementation pretraining_tp "
    "ep_size",
    // training
    "attention_dropout attn_dropout_prob attn_pdrop embd_pdrop emb_dropout_prob resid_pdrop hidden_dropout "
    "hidden_dropout_prob initializer_range router_aux_loss_coef aux_loss_alpha seq_aux router_jitter_noise "
    "classifier_dropout matryoshka_dimensions",
    // labels of classifiers
    "id2label label2id num_labels task_specific_params",
    // numerics and positions
    "rms_norm_eps layer_norm_eps layer_norm_epsilon layernorm_epsilon norm_eps rope_theta rope_scaling rope_interleave "
    "rope_interleaved original_max_position_embeddings initial_context_length use_mrope",
    // text generation
    "prefix begin_suppress_tokens diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size "
    "exponential_decay_length_penalty length_penalty max_length max_new_tokens min_length no_repeat_ngram_size "
    "num_beam_groups num_beams num_return_sequences remove_invalid_values repetition_penalty suppress_tokens "
    "temperature top_k top_p typical_p num_logits_to_keep logits_to_keep tie_encoder_decoder",
};

// Architectures that people ask for and that have what no row can say.
// clang-format off
constexpr std::pair<std::string_view, std::string_view> kMissing[] = {
    {"t5 mt5 umt5 byt5 longt5 t5gemma bart mbart pegasus marian m2m_100 nllb-moe blenderbot switch_transformers whisper "
     "speech_to_text moonshine florence2 encoder-decoder vision-encoder-decoder t5encoder",
     "an encoder-decoder, whose decoder has cross-attention to what the encoder read"},
    {"mllama mllama_text_model", "cross-attention layers, whose keys and values are those of images"},
    {"deepseek4", "DeepSeek-V4's compressed keys and hyper-connections are read from its config.json alone"},
    {"rwkv rwkv5 rwkv6 rwkv7 rwkv6qwen2 arwkv7", "a state space of RWKV's kind"},
};
// clang-format on

struct ActivationName {
  std::string_view name;
  Activation activation;
};
constexpr ActivationName kActivations[] = {{"silu", Activation::silu},
                                           {"relu2", Activation::relu2},
                                           {"situ", Activation::silu},
                                           {"swish", Activation::silu},
                                           {"gelu", Activation::gelu},
                                           {"gelu_python", Activation::gelu},
                                           {"gelu_new", Activation::gelu_tanh},
                                           {"gelu_fast", Activation::gelu_tanh},
                                           {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                           {"gelu_accurate", Activation::gelu_tanh},
                                           {"relu", Activation::relu}};

}  // namespace

const FactRow& fact_row(Fact fact) { return kFacts[static_cast<std::size_t>(fact)]; }

std::string_view Family::key(Fact fact) const {
  const std::string_view usual = fact_row(fact).hf;
  for (std::string_view word : words(spelt)) {
    const std::size_t sign = word.find('=');
    if (word.substr(0, sign) == usual) return word.substr(sign + 1);
  }
  return usual;
}

std::optional<std::int64_t> Family::value_where_absent(Fact fact) const {
  const std::string_view usual = fact_row(fact).hf;
  for (const std::string_view word : words(absent)) {
    const std::size_t sign = word.find('=');
    if (word.substr(0, sign) == usual) return parse_int(word.substr(sign + 1));
  }
  return std::nullopt;
}

std::optional<Fact> fact_called(std::string_view key) {
  static const auto called = [] {
    std::map<std::string_view, Fact> facts = {{"max_sequence_length", Fact::max_position}};  // of the first Llama files
    for (const FactRow& row : kFacts) {
      facts.emplace(row.hf, row.fact);
      for (const Family& family : kConfigFamilies) {
        facts.emplace(family.key(row.fact), row.fact);
        if (row.fact != Fact::experts) continue;
        facts.emplace(family.experts.count, row.fact);
        facts.emplace(family.experts.other_count, row.fact);
      }
    }
    return facts;
  }();
  const auto found = called.find(key);
  return found == called.end() ? std::nullopt : std::optional(found->second);
}

std::string_view missing_ingredient(std::string_view architecture) {
  for (const auto& [names, what] : kMissing) {
    if (std::ranges::count(words(names), architecture) > 0) return what;
  }
  return {};
}

std::span<const Family> families() { return kConfigFamilies; }

namespace {

// The row of that name, or of a model that is also called so; null when there is none.
const Family* row_of(std::span<const Family> table, std::string_view name) {
  const auto found = std::ranges::find_if(
      table, [&](const Family& row) { return row.name == name || std::ranges::count(words(row.also), name) > 0; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

const Family* find_family(std::string_view model_type) {
  const Family* found = row_of(kConfigFamilies, model_type);
  return found == nullptr || found->like.empty() ? found : find_family(found->like);
}

std::string_view gguf_names(std::string_view model_type) {
  const Family* row = row_of(kFamilies, model_type);
  return row == nullptr ? std::string_view() : row->gguf;
}

std::optional<Family> find_gguf_family(std::string_view architecture, bool experts, bool score_correction) {
  std::optional<Family> first;
  for (const Family& row : kFamilies) {
    const std::vector<std::string_view> names = words(row.gguf);
    const auto name = std::ranges::find(names, architecture);
    if (name == names.end()) continue;
    Family family = row.like.empty() ? row : *find_family(row.like);
    family.name = row.name;
    family.gguf = *name;
    const ExpertRule& rule = family.experts;
    if (!rule.count.empty() == experts && rule.score_correction == score_correction) return family;
    if (!first) first = family;
  }
  return first;
}

WindowRule gguf_window(const Family& family) {
  WindowRule rule = family.window;
  for (const Family& other : kFamilies) {
    if (rule.layers != WindowLayers::none) break;
    // The default of an absent key is that of one row only.
    if (other.gguf == family.gguf) rule = {.layers = other.window.layers, .switched = other.window.switched};
  }
  return rule.switched ? WindowRule{} : rule;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& family : kConfigFamilies) {
    names.emplace_back(family.name);
    for (const std::string_view name : words(family.also)) {
      if (to_lower(name) == name) names.emplace_back(name);
    }
  }
  return names;
}

std::vector<std::string> gguf_family_names() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) {
    for (const std::string_view name : words(family.gguf)) {
      if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
    }
  }
  return names;
}

bool is_neutral_key(std::string_view key) {
  static const std::vector<std::string_view> sorted = [] {
    std::vector<std::string_view> all;
    for (const std::string_view group : kNeutralKeys) {
      for (const std::string_view each : words(group)) all.push_back(each);
    }
    std::ranges::sort(all);
    return all;
  }();
  // Ids of tokens; the library's own bookkeeping, images, heads of classifiers in the first libraries.
  const bool ends = std::ranges::any_of(words("_id _ids _token_index"), [&](auto end) { return key.ends_with(end); });
  const bool begins = std::ranges::any_of(words("_ vit_ anyres_ summary_"), [&](auto b) { return key.starts_with(b); });
  return ends || begins || std::ranges::binary_search(sorted, key);
}

std::optional<Activation> find_activation(std::string_view name) {
  const auto* found = std::ranges::find(kActivations, name, &ActivationName::name);
  return found == std::end(kActivations) ? std::nullopt : std::optional(found->activation);
}

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const ActivationName& known : kActivations) names.emplace_back(known.name);
  return names;
}

// Sources: load_arch_hparams and load_arch_tensors of llama.cpp's src/models/*.cpp (2026), and load_hparams and
// load_tensors of src/llama-model.cpp before they were split up (2025); conversion/*.py for what the converter drops.

namespace {

using M = GgufMixers;
using R = RecurrentKind;

// The norm before the feed-forward part goes by the name of one behind attention.
constexpr std::string_view kPostAttentionNorm = "ffn_norm.weight=post_attention_norm.weight";
constexpr std::string_view kPostNorms =
    "post_attention_norm.weight=attn_output_norm.weight post_attention_norm.bias=attn_output_norm.bias "
    "post_ffw_norm.weight=layer_output_norm.weight post_ffw_norm.bias=layer_output_norm.bias";
constexpr std::string_view kFinalEmbeddingNorm = "output_norm.weight=token_embd_norm.weight";
constexpr std::string_view kAlibi = "attention.max_alibi_bias attention.clamp_kqv";

// clang-format off
constexpr GgufArchitecture kArchitectures[] = {
    // ---- Gemma
    {.name = "gemma2", .windows = GgufWindows{.period = 2, .absent = 4096}},
    {.name = "gemma3", .windows = GgufWindows{.period = 6}},
    {.name = "gemma3n", .windows = GgufWindows{.period = 5}},
    {.name = "gemma4", .windows = GgufWindows{}},
    // ---- Qwen
    {.name = "qwen3next", .mixers = M::by_interval, .recurrent = R::gated_delta_net, .renamed = kPostAttentionNorm},
    {.name = "qwen35", .mixers = M::by_interval, .recurrent = R::gated_delta_net, .renamed = kPostAttentionNorm,
     .apart_gates = true, .keeps_next_token_layers = true},
    {.name = "qwen35moe", .mixers = M::by_interval, .recurrent = R::gated_delta_net, .renamed = kPostAttentionNorm,
     .apart_gates = true, .keeps_next_token_layers = true},
    // ---- GLM, DeepSeek, Kimi, MiMo, Step. The converter drops DeepSeek-V3's layer for the next token.
    {.name = "glm4moe", .renamed = kPostAttentionNorm, .keeps_next_token_layers = true},
    {.name = "deepseek32", .keeps_next_token_layers = true},
    {.name = "glm-dsa", .keeps_next_token_layers = true},
    {.name = "kimi-linear", .mixers = M::by_kv_heads, .recurrent = R::kimi_delta},
    {.name = "mimo2", .windows = GgufWindows{}, .keeps_next_token_layers = true},
    {.name = "step35", .windows = GgufWindows{}, .keeps_next_token_layers = true},
    // ---- State-space models and hybrids
    {.name = "mamba", .mixers = M::recurrent, .recurrent = R::mamba, .parts_may_lack = true},
    {.name = "mamba2", .mixers = M::recurrent, .parts_may_lack = true},
    {.name = "jamba", .mixers = M::by_kv_heads, .recurrent = R::mamba},
    {.name = "nemotron_h", .mixers = M::one_part, .parts_may_lack = true},
    {.name = "nemotron_h_moe", .mixers = M::one_part, .parts_may_lack = true},
    {.name = "granitehybrid", .mixers = M::by_kv_heads},
    // The loader asks for this one norm without the ending.
    {.name = "falcon-h1", .mixers = M::both, .renamed = "ffn_norm.weight=ffn_norm"},
    {.name = "lfm2", .mixers = M::by_kv_heads, .recurrent = R::short_conv, .windows = GgufWindows{},
     .renamed = kFinalEmbeddingNorm},
    {.name = "lfm2moe", .mixers = M::by_kv_heads, .recurrent = R::short_conv, .windows = GgufWindows{},
     .renamed = kFinalEmbeddingNorm},
    // ---- Dense decoders and mixtures. Those that families have with a window and that have none here are run without.
    {.name = "gpt-oss", .windows = GgufWindows{.period = 2, .absent = 128}, .renamed = kPostAttentionNorm},
    {.name = "llama4", .windows = GgufWindows{.period = 4, .chunked = true, .absent = 8192}, .unrotated_every = 4},
    {.name = "mistral3"},
    {.name = "starcoder2"},
    {.name = "phimoe", .other_norm_key = true},
    {.name = "deci", .parts_may_lack = true},
    {.name = "cohere2", .windows = GgufWindows{.period = 4}, .unrotated_every = 4},
    {.name = "olmo2", .windows = GgufWindows{.period = 4}},
    {.name = "exaone4", .windows = GgufWindows{.period = 4}, .unrotated_every = 4},
    {.name = "seed_oss", .renamed = kPostAttentionNorm},
    {.name = "smollm3", .unrotated_every = 4},
    {.name = "internlm2", .splits_qkv = true},
    {.name = "baichuan", .splits_qkv = true},
    {.name = "bailingmoe", .splits_qkv = true, .leading_dense = false},
    {.name = "bailingmoe2", .keeps_next_token_layers = true},
    {.name = "ernie4_5-moe", .leading_dense = false},
    {.name = "dbrx", .renamed = "ffn_norm.weight=attn_output_norm.weight", .accepted = kAlibi},
    {.name = "bloom", .accepted = kAlibi},
    {.name = "falcon", .renamed = "ffn_norm.weight=attn_norm_2.weight ffn_norm.bias=attn_norm_2.bias"},
    {.name = "mpt", .accepted = kAlibi},
    // ---- Encoders
    {.name = "bert", .renamed = kPostNorms},
    {.name = "nomic-bert", .renamed = kPostNorms},
    {.name = "modern-bert", .windows = GgufWindows{.period = 3, .full_first = true}, .embedding_norm_first = true},
};
// clang-format on

}  // namespace

const GgufArchitecture* find_gguf_architecture(std::string_view name) {
  const auto* found = std::ranges::find(kArchitectures, name, &GgufArchitecture::name);
  return found == std::end(kArchitectures) ? nullptr : found;
}

std::string_view gguf_architecture_name(const Decoder& model) {
  // Vectors that weigh the results of earlier layers are in no file.
  if (model.attention_residuals) return {};
  const std::vector<std::string_view> names = words(gguf_names(model.architecture));
  if (names.empty()) return {};
  // Mixtures of Nemotron-H have a name of their own, and so has Ling from version 2 on, which norms queries and keys.
  const bool normed =
      std::ranges::any_of(model.kinds, [](const Layer& layer) { return layer.attention.qk_norm != QkNorm::none; });
  return model.architecture == "nemotron_h" ? names[model.has_experts() ? 1 : 0]
         : names.size() > 1 && normed       ? names[1]
                                            : names[0];
}

GgufArchitecture gguf_architecture(const Decoder& model) {
  const GgufArchitecture* known = find_gguf_architecture(gguf_architecture_name(model));
  return known == nullptr ? GgufArchitecture{} : *known;
}

void require_gguf_architecture(const Decoder& model) {
  if (find_family(model.architecture) == nullptr || !gguf_architecture_name(model).empty()) return;
  throw Error::bad_input(
      fmt::format("no architecture of llama.cpp is known for {} (model type {}): its GGUF files cannot be predicted",
                  model.name, quote(model.architecture)),
      "choose `weights` other than a GGUF file type");
}

bool gguf_keeps_windows(const Decoder& model) { return gguf_architecture(model).windows.has_value(); }

}  // namespace llmperf::model
