// Sources: load_arch_hparams and load_arch_tensors of llama.cpp's src/models/*.cpp (2026), and load_hparams and
// load_tensors of src/llama-model.cpp before they were split up (2025); conversion/*.py for what the converter drops.
#include "model/gguf_architectures.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "model/families.h"

namespace llmperf::model {
namespace {

using M = GgufMixers;
using R = RecurrentKind;
using A = Activation;

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
    {.name = "gemma3", .models = "gemma3_text gemma3", .activation = A::gelu_tanh, .windows = GgufWindows{.period = 6}},
    {.name = "gemma3n", .models = "gemma3n_text gemma3n", .activation = A::gelu_tanh,
     .windows = GgufWindows{.period = 5}, .keeps_shared_projections = true},
    {.name = "gemma4", .models = "gemma4_text gemma4", .activation = A::gelu_tanh, .windows = GgufWindows{.period = 6}},
    // ---- Qwen. Those for images differ in the rotary embedding alone.
    {.name = "qwen2vl", .models = "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text"},
    {.name = "qwen3vl", .models = "qwen3_vl qwen3_vl_text"},
    {.name = "qwen3vlmoe", .models = "qwen3_vl_moe qwen3_vl_moe_text"},
    {.name = "qwen3next", .models = "qwen3_next", .mixers = M::by_interval, .recurrent = R::gated_delta_net,
     .renamed = kPostAttentionNorm},
    {.name = "qwen35", .models = "qwen3_5_text qwen3_5", .mixers = M::by_interval, .recurrent = R::gated_delta_net,
     .renamed = kPostAttentionNorm, .apart_gates = true, .keeps_next_token_layers = true},
    {.name = "qwen35moe", .models = "qwen3_5_moe_text qwen3_5_moe", .mixers = M::by_interval,
     .recurrent = R::gated_delta_net, .renamed = kPostAttentionNorm, .apart_gates = true,
     .keeps_next_token_layers = true},
    // ---- GLM, DeepSeek, Kimi, MiniMax, MiMo, Step. The converter drops DeepSeek-V3's layer for the next token.
    {.name = "glm4moe", .models = "glm4_moe", .renamed = kPostAttentionNorm, .keeps_next_token_layers = true},
    {.name = "deepseek2", .models = "deepseek_v3 deepseek_v2 glm4_moe_lite"},
    {.name = "deepseek32", .models = "deepseek_v32", .keeps_next_token_layers = true},
    {.name = "glm-dsa", .models = "glm_moe_dsa", .keeps_next_token_layers = true},
    {.name = "kimi-linear", .models = "kimi_linear", .mixers = M::by_kv_heads, .recurrent = R::kimi_delta},
    {.name = "minimax-m2", .models = "minimax_m2"},
    {.name = "mimo2", .models = "mimo_v2_flash", .windows = GgufWindows{}, .keeps_next_token_layers = true},
    {.name = "step35", .models = "step3p5", .windows = GgufWindows{}, .keeps_next_token_layers = true},
    // ---- State-space models and hybrids
    {.name = "mamba", .models = "mamba", .mixers = M::recurrent, .recurrent = R::mamba, .rotated = false,
     .parts_may_lack = true},
    {.name = "mamba2", .models = "mamba2", .mixers = M::recurrent, .rotated = false, .parts_may_lack = true},
    {.name = "jamba", .models = "jamba", .mixers = M::by_kv_heads, .recurrent = R::mamba, .rotated = false},
    {.name = "nemotron_h", .models = "nemotron_h", .activation = A::relu2, .mixers = M::one_part, .rotated = false,
     .parts_may_lack = true},
    {.name = "nemotron_h_moe", .models = "nemotron_h", .activation = A::relu2, .mixers = M::one_part, .rotated = false,
     .parts_may_lack = true},
    {.name = "granitehybrid", .models = "granitemoehybrid", .mixers = M::by_kv_heads},
    // The loader asks for this one norm without the ending.
    {.name = "falcon-h1", .models = "falcon_h1", .mixers = M::both, .renamed = "ffn_norm.weight=ffn_norm"},
    {.name = "lfm2", .models = "lfm2", .mixers = M::by_kv_heads, .recurrent = R::short_conv,
     .windows = GgufWindows{}, .renamed = kFinalEmbeddingNorm},
    {.name = "lfm2moe", .models = "lfm2_moe", .mixers = M::by_kv_heads, .recurrent = R::short_conv,
     .windows = GgufWindows{}, .renamed = kFinalEmbeddingNorm},
    // ---- Dense decoders and mixtures
    {.name = "gpt-oss", .windows = GgufWindows{.period = 2, .absent = 128}, .renamed = kPostAttentionNorm},
    {.name = "llama4", .models = "llama4_text llama4",
     .windows = GgufWindows{.period = 4, .chunked = true, .absent = 8192}, .unrotated_every = 4},
    {.name = "mistral3", .models = "ministral3 mistral3"},
    {.name = "mistral4", .models = "mistral4"},
    {.name = "deci", .models = "nemotron-nas", .parts_may_lack = true},
    {.name = "command-r", .models = "cohere"},
    {.name = "cohere2", .models = "cohere2", .windows = GgufWindows{.period = 4}, .unrotated_every = 4},
    {.name = "olmo2", .models = "olmo2 olmo3", .windows = GgufWindows{.period = 4}},
    {.name = "exaone4", .models = "exaone4", .windows = GgufWindows{.period = 4}, .unrotated_every = 4},
    {.name = "seed_oss", .models = "seed_oss", .renamed = kPostAttentionNorm},
    {.name = "smollm3", .models = "smollm3", .unrotated_every = 4},
    {.name = "granite", .models = "granite"},
    {.name = "granitemoe", .models = "granitemoe"},
    {.name = "internlm2", .models = "internlm2", .splits_qkv = true},
    {.name = "bailingmoe", .models = "bailing_moe", .splits_qkv = true, .leading_dense = false},
    {.name = "bailingmoe2", .models = "bailing_moe_v2", .keeps_next_token_layers = true},
    {.name = "ernie4_5", .models = "ernie4_5"},
    {.name = "ernie4_5-moe", .models = "ernie4_5_moe", .leading_dense = false},
    {.name = "hunyuan-moe", .models = "hunyuan_v1_moe"},
    {.name = "hunyuan-dense", .models = "hunyuan_v1_dense"},
    {.name = "phimoe", .models = "phimoe", .other_norm_key = true},
    {.name = "dbrx", .models = "dbrx", .renamed = "ffn_norm.weight=attn_output_norm.weight",
     .accepted = kAlibi},
    {.name = "starcoder2", .models = "starcoder2", .activation = A::gelu_tanh},
    {.name = "gpt2", .models = "gpt2", .activation = A::gelu_tanh},
    {.name = "gptneox", .models = "gpt_neox", .activation = A::gelu},
    {.name = "gptj", .models = "gptj", .activation = A::gelu_tanh},
    {.name = "bloom", .models = "bloom", .activation = A::gelu_tanh, .rotated = false,
     .accepted = kAlibi},
    {.name = "falcon", .models = "falcon", .activation = A::gelu,
     .renamed = "ffn_norm.weight=attn_norm_2.weight ffn_norm.bias=attn_norm_2.bias"},
    {.name = "mpt", .models = "mpt", .activation = A::gelu, .rotated = false, .accepted = kAlibi},
    // ---- Encoders
    {.name = "bert", .models = "bert xlm-roberta roberta", .activation = A::gelu, .rotated = false,
     .renamed = kPostNorms, .encoder = true},
    {.name = "nomic-bert", .models = "nomic_bert", .renamed = kPostNorms, .encoder = true},
};
// clang-format on

// Two names of llama.cpp may be of one model type.
const GgufArchitecture* of_model_type(const Decoder& model) {
  const std::string_view model_type = model.architecture;
  if (model_type == "nemotron_h") return find_gguf_architecture(model.has_experts() ? "nemotron_h_moe" : "nemotron_h");
  if (model_type == "bailing_moe" && model.kinds.front().attention.qk_norm != QkNorm::none) {
    return find_gguf_architecture("bailingmoe2");
  }
  const auto* found = std::ranges::find_if(kArchitectures, [&](const GgufArchitecture& row) {
    return std::ranges::any_of(words(row.models), [&](std::string_view word) { return word == model_type; });
  });
  return found == std::end(kArchitectures) ? nullptr : found;
}

std::string_view family_architecture(const Decoder& model) {
  const Family* family = find_family(model.architecture);
  return family == nullptr ? std::string_view() : family->gguf;
}

}  // namespace

const GgufArchitecture* find_gguf_architecture(std::string_view name) {
  const auto* found = std::ranges::find(kArchitectures, name, &GgufArchitecture::name);
  return found == std::end(kArchitectures) ? nullptr : found;
}

const GgufArchitecture* gguf_architecture(const Decoder& model) {
  if (const GgufArchitecture* own = of_model_type(model)) return own;
  return find_gguf_architecture(family_architecture(model));
}

std::string_view gguf_architecture_name(const Decoder& model) {
  const GgufArchitecture* own = gguf_architecture(model);
  return own == nullptr ? family_architecture(model) : own->name;
}

bool gguf_keeps_windows(const Decoder& model) {
  const GgufArchitecture* architecture = gguf_architecture(model);
  return architecture != nullptr && architecture->windows.has_value();
}

std::vector<std::string> gguf_architecture_names() {
  std::vector<std::string> names = gguf_family_names();
  for (const GgufArchitecture& row : kArchitectures) {
    if (std::ranges::find(names, row.name) == names.end()) names.emplace_back(row.name);
  }
  return names;
}

}  // namespace llmperf::model
