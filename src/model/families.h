// Internal to src/model: what a config.json and a GGUF header call a fact about a model, and what an architecture
// implies without saying so. One row per fact and one per architecture; the readers of both formats and their messages
// go by them, so that an architecture of known ingredients is one row more.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor/reader.h"
#include "model/decoder.h"

namespace llmperf::model {

// Integers that files state.
// clang-format off
enum class Fact : unsigned char {
  hidden, layers, vocab, max_position,
  heads, kv_heads, head_dim, v_head_dim, q_lora_rank, kv_lora_rank, rope_dim, nope_dim, window,
  intermediate, experts, experts_per_token, expert_groups, groups_per_token, expert_width, shared_width, shared_experts,
  leading_dense
};
// clang-format on

struct FactRow {
  Fact fact;
  std::string_view hf;    // key of config.json, unless the architecture spells it otherwise
  std::string_view gguf;  // key behind "ARCHITECTURE." of GGUF's metadata; empty: it follows from others
  descriptor::IntRange range;
};
const FactRow& fact_row(Fact fact);

// A yes or no: what `key` of config.json says, `value` where it is absent. Without a key it is always `value`. A GGUF
// file tells by its tensors whether it has what may be either way.
struct Trait {
  bool value = false;
  std::string_view key = {};
  bool always() const { return value && key.empty(); }
};

// Which layers see the sliding window.
enum class WindowLayers : unsigned char {
  none,  // no model of the architecture has one: its keys are errors
  all,
  even,     // every second layer, beginning with the first
  pattern,  // all but each `period`-th
  upper,    // from max_window_layers on
  listed    // only layer_types says so: versions of transformers disagree on what holds without it
};
struct WindowRule {
  WindowLayers layers = WindowLayers::none;
  std::int64_t absent = 0;      // the window where the key is absent, but not null; 0: none
  bool switched = false;        // it is in use if use_sliding_window says so; unknown to llama.cpp
  bool has_layer_types = true;  // a list may say otherwise
  std::int64_t period = 0;      // where sliding_window_pattern is absent
  bool rotates_all = true;      // layers without a window are rotated, too
};

// Which layers of a mixture are dense: those that decoder_sparse_step and mlp_only_layers name (Qwen), or the first
// ones (DeepSeek).
enum class DenseLayers : unsigned char { none, by_step, leading };
// Experts that every token takes: one of a width of its own behind a gate (Qwen), or several of a routed one's width.
enum class SharedExperts : unsigned char { none, gated, counted };
struct ExpertRule {
  std::string_view count = {};        // key of their number; empty: a dense model
  std::string_view other_count = {};  // … by the version of transformers that wrote the file
  Fact width = Fact::expert_width;
  // Where a GGUF file does not say an expert's width it is feed_forward_length over the experts per token.
  bool unsaid_per_used = false;
  bool grouped = false;           // n_group, topk_group
  std::string_view methods = {};  // values of topk_method, the usual first, between spaces; empty: there is no such key
  SharedExperts shared = SharedExperts::none;
  DenseLayers dense = DenseLayers::none;
  std::int64_t leading = 0;  // dense layers where the key is absent
  bool router_bias = false;
  bool score_correction = false;
  std::string_view correction_key = {};  // a bool that says whether there is one after all
};

class ConfigReader;  // hf/config.h
using RowFunction = void(ConfigReader& config, descriptor::Reader& reader);

// Absent keys take the defaults of the architecture's config class in transformers.
struct Family {
  std::string_view name;       // model_type of config.json: "qwen2_moe"
  std::string_view also = {};  // other names of it, the same in all that is said here
  std::string_view like = {};  // all that the row of that name says; nothing else is said here but `gguf` and `also`
  // general.architecture of GGUF files; empty: none is known. Several rows may be the same to it, and
  // one of ours two of its (gguf_architecture_name), between a space.
  std::string_view gguf = {};
  std::string_view spelt =
      {};  // keys of facts that go by others, "head_dim=kv_channels", or are not there, "head_dim="
  std::string_view absent = {};  // what facts are where their keys are absent: "vocab_size=262208"

  Norm norm = Norm::rms;
  int norms = 2;                 // of a layer
  bool parallel_blocks = false;  // attention and MLP side by side
  bool tied = false;             // where tie_word_embeddings is absent
  bool lm_head_bias = false;
  bool norms_after = false;  // … each part, and none before
  bool encoder = false;      // reads in both directions, and generates nothing
  bool embedding_norm = false;
  std::optional<std::int64_t> learned_positions = {};  // a table of as many positions, and so many rows more
  std::string_view next_token_key = "num_nextn_predict_layers";
  bool next_token_copies = true;  // … have the embedding and the head once more

  bool latent = false;                        // attention through latents
  std::optional<std::int64_t> kv_heads = {};  // where absent; none: as many as query heads
  std::optional<std::int64_t> head_dim = {};  // where absent; none: hidden / heads
  double rotary = 1;                          // share of a head that is rotated, …
  std::string_view rotary_key = {};           // … unless this key says another; empty: there is none
  std::string_view rotary_dim_key = {};       // key of the width that is rotated
  Trait qkv_bias = {};
  Trait o_bias = {};
  QkNorm qk_norm = QkNorm::none;
  Trait qk_normed = {true};  // whether there is that norm
  bool sinks = false;
  bool softcap = false;    // unless attn_logit_softcapping is null or 0
  bool fused_qkv = false;  // in the checkpoint; a GGUF file has the tensor or not
  WindowRule window = {};

  bool gated = true;
  Activation activation = Activation::silu;
  std::string_view activation_key = "hidden_act";  // empty: there is none
  bool halved_width = false;                       // the width counts the gate and up matrices together
  std::int64_t width_of_hidden = 0;                // the width in hidden vectors where its key is absent or null
  Trait mlp_bias = {};
  bool fused_gate_up = false;
  ExpertRule experts = {};

  // Keys of config.json by what they must be, as another value is a variant that costs something else: names between
  // spaces. Those to skip change nothing beyond kNeutralKeys.
  std::string_view must_be_true = {};
  std::string_view must_be_false = {};
  std::string_view must_be_one = {};
  std::string_view skipped = {};
  RowFunction* own_keys = nullptr;    // reads what no other architecture has
  RowFunction* own_layers = nullptr;  // … once there are layers, which differ in it

  std::string_view key(Fact fact) const;  // of config.json
  std::optional<std::int64_t> value_where_absent(Fact fact) const;
};

// Every row that a config can be read by.
std::span<const Family> families();
// The row of a model_type, that of another where it is like it; null when there is none.
const Family* find_family(std::string_view model_type);
// `gguf` of the row of a model_type; empty when there is none.
std::string_view gguf_names(std::string_view model_type);
// The row of a GGUF file's architecture, with that one name: of several the first one that does or does not have
// experts and their score correction, as the file does, else the first.
std::optional<Family> find_gguf_family(std::string_view architecture, bool experts, bool score_correction);
// The window of the models that llama.cpp runs as `family.gguf`, of whatever row.
WindowRule gguf_window(const Family& family);
// What is supported, for hints.
std::vector<std::string> gguf_family_names();
// The fact that some architecture calls so in config.json.
std::optional<Fact> fact_called(std::string_view key);
// What a model_type or a GGUF file's architecture that no row has is known to need beyond rows; else empty.
std::string_view missing_ingredient(std::string_view architecture);

// Keys that do not change the cost, of transformers' PretrainedConfig and of every architecture: ids, training,
// numerics, defaults of text generation; and the library's own bookkeeping ("_name_or_path").
bool is_neutral_key(std::string_view key);

// The activation of that name in transformers' table, or none where it has no counterpart here; and all such names.
std::optional<Activation> find_activation(std::string_view name);
std::vector<std::string> activation_names();

// ---- What llama.cpp's architectures (general.architecture of a GGUF file) imply beyond the row of the model type that
// is converted to it (above): how its loader tells the kinds of layers, which of them it runs with a window, and what
// its tensors are called where that is not the usual name. What the tensors of a file show by being there is in no
// table.

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
// What there is to say of it, nothing where no row does.
GgufArchitecture gguf_architecture(const Decoder& model);

// ---- Functions of single rows

// What only one architecture's config has (hf/layers.cpp), and whose layers differ in it.
// clang-format off
RowFunction read_qwen_keys, read_qwen3_moe_keys, read_chatglm_keys, read_bailing_keys, read_hunyuan_keys,
    read_falcon_keys, read_mpt_keys, read_bert_keys, read_lfm2_keys, read_neox_keys, read_bigcode_keys;
RowFunction make_indexed_layers, make_deepseek_v4_layers, make_kimi_layers, make_longcat_layers,
    make_delta_net_layers, make_minimax_m3_layers, make_minimax_01_layers, make_gemma4_layers, make_gemma3n_layers,
    make_nemotron_h_layers, make_nemotron_nas_layers, make_granite_hybrid_layers, make_falcon_h1_layers,
    make_jamba_layers, make_mamba_layers, make_lfm2_layers, make_llama4_layers, make_mimo_v2_layers,
    make_step3_layers, make_ernie_layers, make_smollm3_layers, make_ring_layers, make_modernbert_layers,
    make_dbrx_layers;
// clang-format on

}  // namespace llmperf::model
