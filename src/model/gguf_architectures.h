// What llama.cpp's architectures (general.architecture of a GGUF file) imply beyond the row of the model type that is
// converted to it (families.h): how its loader tells the kinds of layers, which of them it runs with a window, and what
// its tensors are called where that is not the usual name. What the tensors of a file show by being there is in no
// table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/decoder.h"

namespace llmperf::model {

// How a loader tells which layers are recurrent.
enum class GgufMixers : unsigned char {
  attention,    // none is
  recurrent,    // all are (Mamba)
  both,         // all are, beside attention (Falcon-H1)
  by_kv_heads,  // those of no key and value heads
  by_interval,  // attention.recurrent_layers, else all but every full_attention_interval-th
  one_part      // those of neither key and value heads nor a feed-forward width; each layer has one part (Nemotron-H)
};

// Layers that llama.cpp runs with a window where attention.sliding_window gives one, unless
// attention.sliding_window_pattern says otherwise.
struct GgufWindows {
  std::int64_t period = 0;  // every period-th layer sees everything; 0: none does
  bool full_first = false;  // … the first of a period, not the last
  bool chunked = false;
  std::int64_t absent = 0;  // the window of a file that does not say it; 0: none
};

struct GgufArchitecture {
  std::string_view name;  // "nemotron_h_moe"
  GgufMixers mixers = GgufMixers::attention;
  RecurrentKind recurrent = RecurrentKind::mamba2;
  std::optional<GgufWindows> windows = {};
  std::int64_t unrotated_every =
      0;                        // every n-th layer has no rotary embedding, in models with windows if they have any
  bool parts_may_lack = false;  // layers of one part, or none (nemotron-nas)
  // Tensors by another than the usual name, "ffn_norm.weight=post_attention_norm.weight", between spaces.
  std::string_view renamed = {};
  bool splits_qkv = false;               // the checkpoint's fused matrix is taken apart
  bool apart_gates = false;              // gates and decays of a delta net are tensors of their own (Qwen3.5)
  bool keeps_next_token_layers = false;  // the converter leaves them in the file
  bool embedding_norm_first = false;     // the first layer's norm before attention is the embedding's (ModernBERT)
  std::string_view accepted = {};        // keys that are errors elsewhere, as they change what attention computes
  bool other_norm_key = false;           // the norm's epsilon stands under the key of the other kind (PhiMoE)
  bool leading_dense = true;             // leading_dense_block_count says which layers have experts
};

// Null when there is none.
const GgufArchitecture* find_gguf_architecture(std::string_view name);
// general.architecture that llama.cpp's converter gives the model; empty: none is known.
std::string_view gguf_architecture_name(const Decoder& model);
// What there is to say of it, nothing where no row does.
GgufArchitecture gguf_architecture(const Decoder& model);
// Throws Error(bad_input) where the model's family is known and none of llama.cpp's architectures is. What no family
// has is taken for one of usual names.
void require_gguf_architecture(const Decoder& model);
// Whether llama.cpp runs the model with its sliding or chunked windows.
bool gguf_keeps_windows(const Decoder& model);

}  // namespace llmperf::model
