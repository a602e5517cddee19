// Sources: the config classes and modelling code in transformers; the loading of hyperparameters and tensors in
// llama.cpp (src/llama-model.cpp), and its converter (convert_hf_to_gguf.py) for what it writes into the keys.
#include "model/families.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
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
constexpr ExpertRule kQwenExperts = {.count = kNumExperts,
                                     .other_count = kLocalExperts,
                                     .unsaid_width = UnsaidWidth::dense_per_used,
                                     .dense = DenseLayers::by_step};
constexpr ExpertRule kDeepseekExperts = {.count = "n_routed_experts",
                                         .other_count = kLocalExperts,
                                         .grouped = true,
                                         .methods = "greedy group_limited_greedy",
                                         .shared = SharedExperts::counted,
                                         .dense = DenseLayers::leading};
// The number of key and value heads plays no part in latent attention.
constexpr std::string_view kDeepseekSkipped =
    "num_key_value_heads head_dim qk_head_dim routed_scaling_factor scoring_func";

constexpr ExpertRule with_shared_expert(ExpertRule rule) {
  rule.shared = SharedExperts::gated;
  return rule;
}
// The routing bias per expert (e_score_correction_bias) belongs to the method of DeepSeek-V3.
constexpr ExpertRule with_correction(ExpertRule rule) {
  rule.methods = "noaux_tc";
  rule.leading = 3;
  rule.score_correction = true;
  return rule;
}

// A row per architecture: what it is called, then attention, feed-forward part and keys.
// clang-format off
constexpr Family kFamilies[] = {
    {.name = "llama", .gguf = "llama", .other_max_position = "max_sequence_length",
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .mlp_bias = {false, "mlp_bias"}},
    // Mistral, Mixtral and Yi are converted to GGUF as Llama too. A window is honoured if such a file has the key; the
    // converter does not write it, as llama.cpp runs these models without one.
    {.name = "mistral", .gguf = "llama", .kv_heads = 8,
     .window = {.layers = W::all, .absent = 4096, .has_layer_types = false}, .must_be_false = "attention_bias"},
    {.name = "mixtral", .gguf = "llama", .kv_heads = 8, .window = {.layers = W::all, .has_layer_types = false},
     .experts = {.count = kLocalExperts, .other_count = kNumExperts, .width = Fact::intermediate,
                 .unsaid_width = UnsaidWidth::dense}},
    // The code of the first Qwen came with its files, whose config has names of its own.
    {.name = "qwen", .gguf = "qwen",
     .spelt = "max_position_embeddings=seq_length num_key_value_heads= head_dim=kv_channels",
     .other_max_position = "max_position_embeddings",
     .head_dim = 128, .rotary_key = "rotary_pct", .qkv_bias = {true}, .fused_qkv = true,
     .activation_key = "", .halved_width = true, .must_be_false = "use_cache_quantization",
     .skipped = "scale_attn_weights bf16 fp16 fp32 rotary_emb_base use_dynamic_ntk use_logn_attn use_flash_attn "
                "use_cache_kernel softmax_in_fp32 onnx_safe",
     .own_keys = read_qwen_keys},
    {.name = "qwen2", .gguf = "qwen2", .kv_heads = 32, .qkv_bias = {true}, .window = kSwitchedWindow},
    {.name = "qwen2_moe", .gguf = "qwen2moe", .kv_heads = 16, .qkv_bias = {true, "qkv_bias"},
     .window = {.layers = W::listed, .absent = 4096, .switched = true}, .experts = with_shared_expert(kQwenExperts)},
    {.name = "qwen3", .gguf = "qwen3", .kv_heads = 32, .head_dim = 128,
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .qk_norm = QkNorm::head, .window = kSwitchedWindow},
    {.name = "qwen3_moe", .gguf = "qwen3moe", .kv_heads = 4,
     .qkv_bias = kAttentionBias, .o_bias = kAttentionBias, .qk_norm = QkNorm::head,
     .window = {.layers = W::all, .absent = 4096, .switched = true}, .experts = kQwenExperts,
     .must_be_true = "use_qk_norm", .own_keys = read_qwen3_moe_keys},
    {.name = "qwen3_vl_text", .like = "qwen3"},
    {.name = "qwen3_vl_moe_text", .like = "qwen3_moe"},
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
     .norm = Norm::layer, .norms = 1, .parallel_blocks = true, .lm_head_bias = true,
     .rotary = 0.5, .rotary_key = "partial_rotary_factor", .qkv_bias = {true}, .o_bias = {true},
     .gated = false, .activation = Activation::gelu_tanh, .mlp_bias = {true}, .must_be_false = "qk_layernorm"},
    // Two of the keys are of Phi-4-mini; 1 means that every layer is an ordinary one.
    {.name = "phi3", .gguf = "phi3", .rotary_key = "partial_rotary_factor", .fused_qkv = true,
     .window = {.layers = W::all, .has_layer_types = false}, .fused_gate_up = true,
     .must_be_false = "attention_bias mlp_bias lm_head_bias", .must_be_one = "full_attn_mod interpolate_factor"},
    {.name = "deepseek_v2", .gguf = "deepseek2", .latent = true, .experts = kDeepseekExperts,
     .must_be_false = "attention_bias mlp_bias", .must_be_one = "moe_layer_freq", .skipped = kDeepseekSkipped},
    {.name = "deepseek_v3", .gguf = "deepseek2", .latent = true, .experts = with_correction(kDeepseekExperts),
     .must_be_false = "attention_bias mlp_bias", .must_be_one = "moe_layer_freq", .skipped = kDeepseekSkipped},
    {.name = "kimi_k2", .like = "deepseek_v3"},
    // ChatGLM2, ChatGLM3 and GLM-4-9B: again code that came with the files.
    {.name = "chatglm", .gguf = "chatglm",
     .spelt = "num_hidden_layers=num_layers vocab_size=padded_vocab_size max_position_embeddings=seq_length "
              "num_key_value_heads=multi_query_group_num head_dim=kv_channels intermediate_size=ffn_hidden_size",
     .kv_heads = 1, .head_dim = 128, .rotary = 0.5,
     .qkv_bias = {false, "add_qkv_bias"}, .o_bias = {false, "add_bias_linear"}, .fused_qkv = true,
     .activation_key = "", .mlp_bias = {false, "add_bias_linear"}, .fused_gate_up = true,
     .must_be_true = "post_layer_norm",
     .skipped = "vocab_size num_hidden_layers rope_ratio original_rope bias_dropout_fusion attention_softmax_in_fp32 "
                "fp32_residual_connection apply_query_key_layer_scaling apply_residual_connection_post_layernorm "
                "prefix_projection",
     .own_keys = read_chatglm_keys},
    {.name = "glm4", .gguf = "glm4", .norms = 4, .kv_heads = 2, .head_dim = 128,
     .rotary = 0.5, .rotary_key = "partial_rotary_factor",
     .qkv_bias = {true, "attention_bias"},  // the output projection has none
     .fused_gate_up = true},
    // The checkpoint fuses the experts; llama.cpp's converter takes them apart.
    {.name = "gpt_oss", .gguf = "gpt-oss", .kv_heads = 8, .head_dim = 64,
     .qkv_bias = {true, "attention_bias"}, .o_bias = {true, "attention_bias"}, .sinks = true,
     .window = {.layers = W::even, .absent = 128},
     .activation = Activation::swiglu_clamped, .mlp_bias = {true}, .fused_gate_up = true,
     .experts = {.count = kLocalExperts, .other_count = kNumExperts, .width = Fact::intermediate, .router_bias = true},
     .skipped = "swiglu_limit swiglu_alpha experts_per_token"},
    {.name = "yi", .like = "llama"},
    {.name = "Yi", .like = "llama"},  // the spelling of the first Yi files, which no hint needs to name
};
// clang-format on

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
    "classifier_dropout",
    // labels of classifiers
    "id2label label2id num_labels task_specific_params",
    // numerics and positions
    "rms_norm_eps layer_norm_eps layer_norm_epsilon layernorm_epsilon rope_theta rope_scaling rope_interleave "
    "rope_interleaved original_max_position_embeddings initial_context_length use_mrope",
    // token ids
    "bos_token_id eos_token_id pad_token_id sep_token_id unk_token_id cls_token_id decoder_start_token_id "
    "forced_bos_token_id forced_eos_token_id prefix",
    // text generation
    "bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size "
    "exponential_decay_length_penalty length_penalty max_length max_new_tokens min_length no_repeat_ngram_size "
    "num_beam_groups num_beams num_return_sequences remove_invalid_values repetition_penalty suppress_tokens "
    "temperature top_k top_p typical_p num_logits_to_keep tie_encoder_decoder model_max_length",
};

struct ActivationName {
  std::string_view name;
  Activation activation;
};
constexpr ActivationName kActivations[] = {{"silu", Activation::silu},
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

std::span<const Family> families() { return kFamilies; }

const Family* find_family(std::string_view model_type) {
  const auto* found = std::ranges::find(kFamilies, model_type, &Family::name);
  if (found == std::end(kFamilies)) return nullptr;
  return found->like.empty() ? found : find_family(found->like);
}

const Family* find_gguf_family(std::string_view architecture, bool experts, bool score_correction) {
  const Family* first = nullptr;
  for (const Family& family : kFamilies) {
    if (family.gguf != architecture || family.gguf.empty()) continue;
    if (first == nullptr) first = &family;
    if (!family.experts.count.empty() == experts && family.experts.score_correction == score_correction) return &family;
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
  for (const Family& family : kFamilies) {
    if (to_lower(family.name) == family.name) names.emplace_back(family.name);
  }
  return names;
}

std::vector<std::string> gguf_family_names() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) {
    if (family.gguf.empty() || std::ranges::find(names, family.gguf) != names.end()) continue;
    names.emplace_back(family.gguf);
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
  return key.starts_with('_') || std::ranges::binary_search(sorted, key);
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

}  // namespace llmperf::model
