// Sources: the loading of hyperparameters and tensors in llama.cpp (src/llama-model.cpp), and the converter
// (convert_hf_to_gguf.py) for what it writes into the keys.
#include "model/gguf_family.h"

#include <algorithm>
#include <iterator>

namespace llmperf::model {
namespace {

constexpr GgufFamily kFamilies[] = {
    // Mistral, Mixtral and Yi are converted as Llama too. A window is honoured if a file has the key; the converter
    // does not write it, as llama.cpp runs these models without one.
    {.name = "llama",
     .model_type = "llama",
     .moe_type = "mixtral",
     .expert_width = GgufExpertWidth::dense,
     .window_layers = GgufWindowLayers::all},
    {.name = "qwen", .model_type = "qwen", .qkv_bias = true, .feed_forward_divisor = 2},
    {.name = "qwen2", .model_type = "qwen2", .qkv_bias = true},
    {.name = "qwen2moe",
     .model_type = "qwen2_moe",
     .expert_width = GgufExpertWidth::dense_per_used,
     .gated_shared_expert = true},
    {.name = "qwen3", .model_type = "qwen3", .qk_norm = true},
    {.name = "qwen3moe", .model_type = "qwen3_moe", .qk_norm = true, .expert_width = GgufExpertWidth::dense_per_used},
    {.name = "gemma", .model_type = "gemma", .activation = Activation::gelu_tanh},
    {.name = "gemma2",
     .model_type = "gemma2",
     .norms = 4,
     .activation = Activation::gelu_tanh,
     .softcap = true,
     .window_layers = GgufWindowLayers::even,
     .default_window = 4096},
    {.name = "phi2",
     .model_type = "phi",
     .norm = Norm::layer,
     .norms = 1,
     .parallel_blocks = true,
     .gated = false,
     .activation = Activation::gelu_tanh,
     .qkv_bias = true,
     .o_bias = true,
     .feed_forward_bias = true,
     .lm_head_bias = true},
    {.name = "phi3", .model_type = "phi3", .fused_gate_up = true, .window_layers = GgufWindowLayers::all},
    {.name = "chatglm", .model_type = "chatglm", .fused_gate_up = true},
    {.name = "glm4", .model_type = "glm4", .norms = 4, .fused_gate_up = true},
    {.name = "deepseek2", .model_type = "deepseek_v2", .noaux_type = "deepseek_v3", .latent = true},
    // The checkpoint fuses the experts; the converter takes them apart.
    {.name = "gpt-oss",
     .model_type = "gpt_oss",
     .activation = Activation::swiglu_clamped,
     .fused_gate_up = true,
     .qkv_bias = true,
     .o_bias = true,
     .sinks = true,
     .feed_forward_bias = true,
     .router_bias = true,
     .window_layers = GgufWindowLayers::even},
};

}  // namespace

const GgufFamily* find_gguf_family(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                   [name](const GgufFamily& family) { return family.name == name; });
  return found == std::end(kFamilies) ? nullptr : found;
}

std::vector<std::string> gguf_family_names() {
  std::vector<std::string> names;
  for (const GgufFamily& family : kFamilies) names.emplace_back(family.name);
  return names;
}

}  // namespace llmperf::model
