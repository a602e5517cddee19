// A decoder-only transformer, as its cost sees it: plain dimensions, no weights. Layers of the same kind share one
// Layer; layer_kinds says which kind each layer is, in order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace llmperf::descriptor {
struct Document;
}

namespace llmperf::model {

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434 section 2.1): keys and values are expanded from one latent
// vector per token, which is what the cache holds beside a shared rotary key.
struct LatentAttention {
  std::optional<std::int64_t> q_lora_rank;  // none: queries come from one full matrix
  std::int64_t kv_lora_rank = 0;
  std::int64_t rope_dim = 0;  // rotary part of a query or key head
  std::int64_t nope_dim = 0;  // the part without position
  bool operator==(const LatentAttention&) const = default;
};

struct Attention {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;           // divides heads; 1 = MQA, heads = MHA. Latent: equal to heads
  std::int64_t head_dim = 0;           // of queries and keys; latent: rope_dim + nope_dim
  std::int64_t v_head_dim = 0;         // of values
  std::int64_t rotary_dim = 0;         // rotated part of a head; 0: no rotary embedding
  std::optional<std::int64_t> window;  // keys a query may see, itself included
  std::optional<LatentAttention> latent;
  bool qkv_bias = false;
  bool o_bias = false;
  bool qk_norm = false;    // RMSNorm over each query and key head
  bool sinks = false;      // one learned logit per head (gpt-oss)
  bool softcap = false;    // tanh on the scores (Gemma 2)
  bool fused_qkv = false;  // the checkpoint holds q, k and v as one matrix
  bool operator==(const Attention&) const = default;
};

enum class Activation : unsigned char { silu, gelu, gelu_tanh, relu, swiglu_clamped };

struct Experts {
  std::int64_t count = 0;
  std::int64_t per_token = 0;
  std::int64_t intermediate = 0;         // of one routed expert
  std::int64_t shared_intermediate = 0;  // of all shared experts together; 0: none
  // A token's experts are of at most `groups_per_token` of `groups` runs of equally many (node-limited routing).
  std::int64_t groups = 1;
  std::int64_t groups_per_token = 1;
  bool shared_gate = false;       // sigmoid gate [hidden -> 1] on the shared expert
  bool router_bias = false;       // bias of the router matrix
  bool score_correction = false;  // per-expert routing bias (DeepSeek-V3), one value per expert
  std::int64_t held = 0;          // experts whose weights are here, in one device's share of a layer; 0: all
  bool operator==(const Experts&) const = default;
};

struct FeedForward {
  std::int64_t intermediate = 0;  // dense width; unused when experts are set
  bool gated = true;              // gate and up matrices, act(gate) * up
  Activation activation = Activation::silu;
  bool bias = false;           // on every matrix, experts included
  bool fused_gate_up = false;  // the checkpoint holds gate and up as one matrix
  std::optional<Experts> experts;
  bool operator==(const FeedForward&) const = default;
};

enum class Role : unsigned char;  // parameters.h
// Weight schemes by role of the matrix; roles that are not in it are not quantised.
using RoleSchemes = std::map<Role, std::string>;

enum class Norm : unsigned char { rms, layer };  // layer: weight and bias, mean subtracted

struct Layer {
  Attention attention;
  FeedForward feed_forward;
  int norms = 2;                 // over the hidden vector: 1 (parallel blocks), 2 (pre), 4 (pre and post)
  bool parallel_blocks = false;  // attention and MLP read the same normalised input (Phi-2)
  int stored_as = 0;             // index into Decoder::mixture
  bool operator==(const Layer&) const = default;
};

struct Decoder {
  std::string name;
  std::string hf_id;            // may be empty
  std::string architecture;     // HF model_type: "qwen2"
  std::string source;           // where the dimensions come from
  std::string notes;            // traps worth showing
  std::string default_weights;  // scheme of the published checkpoint when it is quantised, else empty
  std::string default_kv;       // type of the KV cache that the checkpoint asks for; empty: that of the activations
  // What the checkpoint's matrices are stored as where no one scheme says it, one entry per way of storing a layer
  // (Layer::stored_as); lm_head is in the first. Empty: default_weights says it.
  std::vector<RoleSchemes> mixture;

  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::optional<std::int64_t> max_position;  // trained context length; none: not published
  Norm norm = Norm::rms;
  bool tied_embeddings = false;             // lm_head shares the embedding's storage
  bool checkpoint_repeats_lm_head = false;  // tied, and yet the published files store it twice
  // Layers that predict further tokens (MTP), which the published files hold and nothing here runs: each is a layer of
  // the last kind, a projection of its two inputs, three norms, and copies of the embedding and the lm_head.
  std::int64_t next_token_layers = 0;
  bool lm_head_bias = false;
  std::int64_t position_embeddings = 0;  // learned absolute positions; 0: none
  bool dropout = false;                  // trained with dropout on scores and on the outputs of both blocks

  std::vector<Layer> kinds;                // distinct layers, at least one
  std::vector<unsigned char> layer_kinds;  // index into kinds for each layer, in order
  std::vector<std::int64_t> kind_counts;   // layers of each kind; add_layer keeps the three in step

  std::int64_t num_layers() const { return static_cast<std::int64_t>(layer_kinds.size()); }
  bool has_experts() const;  // routed ones, in some layer
  // Layers of kind `kind`.
  std::int64_t count_of_kind(std::size_t kind) const { return kind_counts[kind]; }
  // Appends one layer, sharing the kind of an equal one.
  static constexpr std::size_t kMostKinds = 255;
  void add_layer(const Layer& layer);
};

// The decoder of load_model (model_file.h).
Decoder load_decoder(const std::string& name_or_path);

// The decoder a document describes: a Hugging Face config (a .json file, or one with a model_type or architectures key)
// or a model descriptor of our own. `hf_quant_config`: the file of that name beside a config.json, or null. Throws
// Error(bad_input) with every problem found.
Decoder parse_decoder(const descriptor::Document& document, const descriptor::Document* hf_quant_config = nullptr);

}  // namespace llmperf::model
