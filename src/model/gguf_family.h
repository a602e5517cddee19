// Internal to src/model: the architectures of GGUF files (general.architecture), and what neither the keys nor the
// tensors of a file say about them because llama.cpp has it in code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/decoder.h"

namespace llmperf::model {

enum class GgufWindowLayers : unsigned char {
  none,  // no model of the architecture has a sliding window
  all,
  even  // every second layer, beginning with the first
};

// Width of an expert in files without expert_feed_forward_length, as in those before it was introduced.
enum class GgufExpertWidth : unsigned char {
  required,       // there are no such files
  dense,          // feed_forward_length
  dense_per_used  // feed_forward_length over the experts per token
};

struct GgufFamily {
  std::string_view name;             // "qwen2moe"
  std::string_view model_type;       // Hugging Face's name of it: Decoder::architecture
  std::string_view moe_type = {};    // … of a model with experts, where it has another name
  std::string_view noaux_type = {};  // … with a routing bias per expert
  Norm norm = Norm::rms;
  int norms = 2;
  bool parallel_blocks = false;
  bool latent = false;
  bool gated = true;
  Activation activation = Activation::silu;
  bool fused_gate_up = false;
  bool softcap = false;
  // What is true here is true of every model; what is not depends on which tensors there are.
  bool qkv_bias = false;
  bool o_bias = false;
  bool qk_norm = false;
  bool sinks = false;
  bool feed_forward_bias = false;
  bool router_bias = false;
  bool lm_head_bias = false;
  std::int64_t feed_forward_divisor = 1;  // of feed_forward_length: it counts the gate and up matrices together
  GgufExpertWidth expert_width = GgufExpertWidth::required;
  bool gated_shared_expert = false;  // always there, of width feed_forward_length unless another is given
  GgufWindowLayers window_layers = GgufWindowLayers::none;
  std::int64_t default_window = 0;  // when there is no key; 0: none
};

// Null when there is none.
const GgufFamily* find_gguf_family(std::string_view name);
std::vector<std::string> gguf_family_names();

}  // namespace llmperf::model
