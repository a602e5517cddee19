// A language model, as its cost sees it: plain dimensions, no weights. A layer mixes tokens (attention, a recurrence,
// or both side by side) and passes each through a feed-forward part (an MLP, experts, or both); either may be missing.
// Layers of the same kind share one Layer; layer_kinds says which kind each layer is, in order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/vision.h"

namespace llmperf::descriptor {
struct Document;
}

namespace llmperf::model {

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434 section 2.1): keys and values are expanded from one latent
// vector per token, which is what the cache holds beside a shared rotary key.
struct LatentAttention {
  std::optional<std::int64_t> q_lora_rank = {};  // none: queries come from one full matrix
  std::int64_t kv_lora_rank = 0;
  std::int64_t rope_dim = 0;  // rotary part of a query or key head
  std::int64_t nope_dim = 0;  // the part without position
  bool operator==(const LatentAttention&) const = default;
};

// A choice of the keys that a query attends to, by scores of a kind of its own (DeepSeek-V3.2's lightning indexer,
// arXiv 2512.02556 section 2.1): queries of `heads` heads against one cached index key per `pool` tokens.
struct Indexer {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t top_k = 0;     // keys that a query attends to at most
  std::int64_t pool = 1;      // tokens that an index key stands for
  bool from_hidden = false;   // index queries come from the hidden vector; else from attention's query latent
  bool weighted = true;       // a weight of each head, from the hidden vector
  bool reused = false;        // the choice is that of the layer before: no weights, index keys or scores
  double cached_bits = 8.25;  // of an element of an index key: fp8, with an fp32 scale per 128
  bool operator==(const Indexer&) const = default;
};

// Keys and values that stand for several tokens each (DeepSeek-V4): behind the window, a query sees one entry per
// `ratio` tokens, which a compressor makes of them.
struct Compression {
  std::int64_t ratio = 1;
  bool overlaps = false;  // entries overlap: a compressor of twice the width
  bool operator==(const Compression&) const = default;
};

// Query and output projections through low ranks (DeepSeek-V4): the heads' results are brought to `output_rank` in
// `output_groups` groups.
struct LowRankProjections {
  std::int64_t query_rank = 0;
  std::int64_t output_rank = 0;
  std::int64_t output_groups = 1;
  bool operator==(const LowRankProjections&) const = default;
};

// RMSNorm of queries and keys: over each head, or over all heads of a token as one vector.
enum class QkNorm : unsigned char { none, head, whole };
// Sigmoid gate on what attention returns: one per element, from columns of the query matrix or from a matrix of its
// own, or one per head.
enum class OutputGate : unsigned char { none, with_queries, element, head };

struct Attention {
  std::int64_t heads = 0;                   // 0: the layer has no attention
  std::int64_t kv_heads = 0;                // divides heads; 1 = MQA, heads = MHA. Latent: equal to heads
  std::int64_t head_dim = 0;                // of queries and keys; latent: rope_dim + nope_dim
  std::int64_t v_head_dim = 0;              // of values
  std::int64_t rotary_dim = 0;              // rotated part of a head; 0: no rotary embedding
  std::optional<std::int64_t> window = {};  // keys a query may see, itself included
  bool chunked = false;  // the window does not slide: a query sees the run of `window` tokens that it is in (Llama 4)
  std::optional<LatentAttention> latent = {};
  std::optional<Indexer> indexer = {};
  std::optional<Compression> compression = {};
  std::optional<LowRankProjections> low_rank = {};
  bool qkv_bias = false;
  bool o_bias = false;
  QkNorm qk_norm = QkNorm::none;
  OutputGate gate = OutputGate::none;
  bool no_v_proj = false;     // values are the keys before norm and rotation (Gemma 4): no matrix, but cached
  bool one_vector = false;    // keys and values are one vector per head, cached once (DeepSeek-V4)
  bool shares_cache = false;  // keys and values are those of an earlier layer: no matrices, no cache (Gemma 4 E2B)
  bool unused_kv = false;     // … and yet the checkpoint holds matrices of its own (Gemma 3n)
  bool sinks = false;         // one learned logit per head (gpt-oss)
  bool softcap = false;       // tanh on the scores (Gemma 2)
  bool fused_qkv = false;     // the checkpoint holds q, k and v as one matrix
  bool operator==(const Attention&) const = default;
};

// Mixers that keep a state of fixed size per sequence instead of a cache that grows: `heads` matrices of key_dim x
// value_dim, in fp32.
//
//   gated_delta_net  arXiv 2412.06464: decay per head, rank-one update by the delta rule (Qwen3-Next)
//   kimi_delta       arXiv 2510.26692: decay per element of a key
//   mamba            arXiv 2312.00752: one state vector per channel (key_dim = state size, value_dim = 1)
//   mamba2           arXiv 2405.21060: decay per head; keys are B, queries C, values the channels of a head
//   lightning        arXiv 2401.04658: a fixed decay per head, no convolution (MiniMax-Text-01)
//   short_conv       a gated convolution alone (LFM2): no state but its last inputs
enum class RecurrentKind : unsigned char { gated_delta_net, kimi_delta, mamba, mamba2, lightning, short_conv };
std::string_view name(RecurrentKind kind);

struct Recurrent {
  RecurrentKind kind = RecurrentKind::gated_delta_net;
  std::int64_t heads = 0;      // of values, each with a state
  std::int64_t key_heads = 0;  // of queries and keys (of mamba2: groups of B and C), divides heads
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t conv = 0;  // taps of the causal convolution before the recurrence; 0: none
  bool conv_bias = false;
  std::int64_t gate_rank = 0;  // of the time steps of mamba, of the gates of kimi_delta (0: full)
  bool norms = true;           // on what the recurrence returns; of mamba (Jamba) on time step, B and C
  bool head_norms = false;     // RMSNorm over each query and key head (Ring)
  std::int64_t chunk = 64;     // tokens of a prompt that are computed together, as products of matrices
  bool operator==(const Recurrent&) const = default;

  std::int64_t values() const { return heads * value_dim; }  // width of all value heads
  std::int64_t keys() const { return key_heads * key_dim; }  // … of all key heads
  std::int64_t conv_channels() const;                        // that the convolution runs over
  std::int64_t state_elements() const;                       // of one sequence: of the recurrence
  std::int64_t conv_elements() const { return conv > 0 ? conv_channels() * (conv - 1) : 0; }  // inputs that are kept
};

enum class Activation : unsigned char { silu, gelu, gelu_tanh, relu, swiglu_clamped, relu2 };

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
  bool router_scales = false;     // a scale of each input of the router, and of each expert (Gemma 4)
  std::int64_t identity = 0;      // beside `count`: experts that return their input, which tokens pick alike (LongCat)
  std::int64_t latent = 0;        // width that routed experts work in, between two matrices; 0: the hidden width
  bool latent_norm = false;       // an RMSNorm over it
  std::int64_t held = 0;          // experts whose weights are here, in one device's share of a layer; 0: all
  bool operator==(const Experts&) const = default;
};

struct FeedForward {
  std::int64_t intermediate = 0;  // dense width; with experts: of an MLP beside them, 0: none
  bool gated = true;              // gate and up matrices, act(gate) * up
  Activation activation = Activation::silu;
  bool bias = false;           // on every matrix, experts included
  bool fused_gate_up = false;  // the checkpoint holds gate and up as one matrix
  std::optional<Experts> experts = {};
  bool operator==(const FeedForward&) const = default;
};

enum class Role : unsigned char;  // parameters.h
// Weight schemes by role of the matrix; roles that are not in it are not quantised.
using RoleSchemes = std::map<Role, std::string>;

enum class Norm : unsigned char { rms, layer, layer_no_bias };  // layer: weight and bias, mean subtracted

struct Layer {
  Attention attention;                      // of no heads: none
  std::optional<Recurrent> recurrent = {};  // beside attention they read the same input (Falcon-H1)
  FeedForward feed_forward;                 // neither a width nor experts: none
  // Over the hidden vector: one per part (2, or 1 of a layer of one part or of parallel blocks), before and after each
  // (4), none of a layer without parts.
  int norms = 2;
  bool norms_after = false;      // … after each part and not before it (OLMo 2, BERT)
  bool parallel_blocks = false;  // attention and MLP are added up (Phi-2); with two norms (GPT-NeoX) each has its own
  bool scaled = false;           // one learned factor of the layer's result (Gemma 4)
  // Of layers that draft (next_token_draft): vectors of the hidden width that a product before the layer makes one of;
  // 0: none. Each is normed first; or attention reads the token's embedding beside their sum, and that sum is normed.
  std::int64_t joined_inputs = 0;
  bool reads_token = false;
  std::int64_t low_rank_branch = 0;  // rank of two matrices beside attention (LAuReL of Gemma 3n); 0: none
  int stored_as = 0;                 // index into Decoder::mixture
  bool operator==(const Layer&) const = default;

  bool attends() const { return attention.heads > 0; }
  bool mixes() const { return attends() || recurrent.has_value(); }
  // What its products before attention read, of a hidden vector of that width.
  std::int64_t mixer_input(std::int64_t hidden) const { return reads_token ? 2 * hidden : hidden; }
  bool has_feed_forward() const { return feed_forward.intermediate > 0 || feed_forward.experts.has_value(); }
};

// How several residual streams become a layer's input, and its result theirs.
enum class StreamMix : unsigned char {
  none,
  hyper_connections,  // DeepSeek-V4: three small matrices per part, made from all streams
  altup               // Gemma 3n: predict and correct
};
struct Streams {
  StreamMix mix = StreamMix::none;
  std::int64_t count = 1;
};

struct Decoder {
  std::string name;
  std::string hf_id;            // may be empty
  std::string architecture;     // HF model_type: "qwen2"
  std::string source;           // where the dimensions come from
  std::string notes;            // traps worth showing
  std::string read_as;          // the family that it was read as although it does not say so; else empty
  std::string assumed;          // … with what was passed over, or what its name was taken for; else empty
  std::string default_weights;  // scheme of the published checkpoint when it is quantised, else empty
  std::string default_kv;       // type of the KV cache that the checkpoint asks for; empty: that of the activations
  // What the checkpoint's matrices are stored as where no one scheme says it, one entry per way of storing a layer
  // (Layer::stored_as); lm_head is in the first. Empty: default_weights says it.
  std::vector<RoleSchemes> mixture;

  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::optional<std::int64_t> max_position = {};  // trained context length; none: not published
  Norm norm = Norm::rms;
  bool tied_embeddings = false;             // lm_head shares the embedding's storage
  bool borrows_embedding = false;           // of a draft: its target's embedding, and lm_head where that is tied
  bool checkpoint_repeats_lm_head = false;  // tied, and yet the published files store it twice
  // Layers that predict further tokens (MTP), which the published files hold and a draft can be made of
  // (next_token_draft): each is a layer of the last kind, a projection of its two inputs, three norms, and copies of
  // the embedding and lm_head.
  std::int64_t next_token_layers = 0;
  bool next_token_copies = true;     // … or they share the embedding and the lm_head (Qwen3-Next)
  bool attention_residuals = false;  // four vectors per layer weigh the results of the layers before it (Kimi K3)
  bool lm_head_bias = false;
  std::int64_t position_embeddings = 0;  // learned absolute positions; 0: none
  std::int64_t type_embeddings = 0;      // of segments, added to the tokens' (BERT)
  bool embedding_norm = false;           // after the embedding
  bool final_norm = true;
  // Reads a text once, in both directions (embedding models and rerankers): no cache, no lm_head, nothing is generated.
  bool encoder = false;
  bool pooler = false;  // [hidden, hidden] with a bias over the first token
  // An encoder of a decoder's layers (embedding models, rerankers, reward models): tokens see those before them alone.
  bool causal = false;
  std::int64_t labels = 0;  // of an encoder that classifies: rows of its lm_head
  // A table [its vocabulary, layers * width] beside the embedding, of which each layer adds what it makes of its part
  // (Gemma 3n); 0: none.
  std::int64_t layer_embedding_width = 0;
  std::int64_t layer_embedding_vocab = 0;
  Streams streams;
  bool dropout = false;                    // trained with dropout on scores and on the outputs of both blocks
  std::optional<VisionTower> vision = {};  // beside it: what reads images

  std::vector<Layer> kinds;                // distinct layers, at least one
  std::vector<unsigned char> layer_kinds;  // index into kinds for each layer, in order
  std::vector<std::int64_t> kind_counts;   // layers of each kind; add_layer keeps the three in step

  std::int64_t num_layers() const { return static_cast<std::int64_t>(layer_kinds.size()); }
  const Layer* first_routed() const;  // the first kind with routed experts; null: none
  bool has_experts() const { return first_routed() != nullptr; }
  bool has_recurrent() const;  // a state of fixed size, in some layer
  // Every layer is attention with keys and values of its own and a feed-forward part, on one residual stream: what
  // training and formulas in letters know.
  bool is_plain_transformer() const;
  // Whether every part of it has a backward pass here: those of plain transformers, recurrences and what gates them,
  // layers of one mixer or one feed-forward part alone.
  bool has_backward() const;
  // Layers of kind `kind`.
  std::int64_t count_of_kind(std::size_t kind) const { return kind_counts[kind]; }
  // Appends one layer, sharing the kind of an equal one.
  static constexpr std::size_t kMostKinds = 255;
  void add_layer(const Layer& layer);
};

// The decoder of load_model (model_file.h).
Decoder load_decoder(const std::string& name_or_path, const std::string& assume = {});

// The decoder a document describes: a Hugging Face config (a .json file, or one with a model_type or architectures key)
// or a model descriptor of our own. `hf_quant_config`: the file of that name beside a config.json, or null. `assume`:
// the family that a config is read as, whatever it says; keys that the family does not know are passed over and named.
// Throws Error(bad_input) with every problem found.
Decoder parse_decoder(const descriptor::Document& document, const descriptor::Document* hf_quant_config = nullptr,
                      const std::string& assume = {});

// The families of Hugging Face configs that are read, by model_type.
std::vector<std::string> family_names();

// The same decoder as a model descriptor, to read it again or to change what another model does otherwise. How a
// checkpoint's matrices are stored one by one (Decoder::mixture) is left out.
std::string to_descriptor(const Decoder& decoder);

// ---- Models that propose the tokens which a step of a larger one verifies (speculative decoding), where they are made
// for it: both read hidden states of their target and look tokens up in its embedding.

// The layer for further tokens of a model that has one (multi-token prediction, DeepSeek-V3, arXiv 2412.19437 section
// 2.2): norms of the last hidden state and of the next token's embedding, a product of the two side by side, a layer of
// the model's last kind, a norm; its lm_head is the model's. Throws Error(bad_input) for a model without.
Decoder next_token_draft(const Decoder& target);

// EAGLE-3 (arXiv 2503.01840): three hidden states of the target become one, once per verified token; a layer whose q, k
// and v read it beside the token's embedding, and a lm_head of its own over the 32,000 most frequent tokens. Heads are
// those of the target's attention (of latent attention: of 128, with 8 for keys and values), the MLP is as wide as the
// target's widest dense one, or six times the hidden width where it has none. Biases, windows and norms of heads that
// the target has are left out, as published heads do.
Decoder eagle_draft(const Decoder& target);

// Whether two models can have the same tokens: as many, but for what tables are padded with.
bool shares_vocabulary(const Decoder& a, const Decoder& b);

}  // namespace llmperf::model
