// Sources: load_arch_hparams and load_arch_tensors of llama.cpp's src/models/*.cpp (2026), and load_hparams and
// load_tensors of src/llama-model.cpp before they were split up (2025); conversion/*.py for what the converter drops.
#include "model/gguf_architectures.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "model/families.h"

namespace llmperf::model {
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
      "choose --weights other than a GGUF file type");
}

bool gguf_keeps_windows(const Decoder& model) { return gguf_architecture(model).windows.has_value(); }

}  // namespace llmperf::model
