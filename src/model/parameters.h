// Exact parameter counts of a decoder, by part. Everything is an integer; sums equal totals exactly.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/decoder.h"
#include "model/quantization.h"

namespace llmperf::model {

// What a tensor is for. `vector` covers norm weights, biases and other one-dimensional parameters; qkv and gate_up
// stand for the matrices of a checkpoint that fuses them, and occur in lists of stored tensors only.
// clang-format off
enum class Role : unsigned char {
  vector, q, k, v, qkv, o,
  q_a, q_b, kv_a, kv_b,       // latent attention
  o_a, o_b, attention_gate,   // low-rank output (DeepSeek-V4), gate on attention's result
  index_q, index_k, index_weights, compress, index_compress,  // Indexer, Compression
  // Recurrent: the products before it (all inputs; gates and decays; of low rank in two steps), and after it
  recurrent_in, recurrent_gates, decay_a, decay_b, gate_a, gate_b, recurrent_x, recurrent_dt, recurrent_out,
  gate, up, gate_up, down, router, expert_gate, expert_up, expert_gate_up, expert_down,
  shared_gate, shared_up, shared_gate_up, shared_down,
  shared_router,              // the sigmoid gate on the shared expert
  latent_down, latent_up,     // around experts that work in a width of their own
  stream_mix, branch_down, branch_up, layer_gate, layer_projection,  // Streams, Layer::low_rank_branch, layer embeddings
  join_inputs,                // Layer::joined_inputs
  token_embedding, position_embedding, type_embedding, layer_embedding, model_projection, pooler, lm_head
};
// clang-format on
// Whether it is a matrix of a routed expert.
constexpr bool is_expert(Role role) {
  return role == Role::expert_gate || role == Role::expert_up || role == Role::expert_down;
}
inline constexpr std::size_t kRoles = static_cast<std::size_t>(Role::lm_head) + 1;

// What a tensor belongs to. attention_norm: over heads or latents, inside attention; norm: over the hidden vector, and
// what else stands between the parts of a layer.
enum class Part : unsigned char {
  attention,
  attention_norm,
  recurrent,
  recurrent_norm,
  feed_forward,
  norm,
  embedding,
  lm_head
};

// One weight tensor [n, k] of a layer (k = 1 for vectors), repeated `count` times (experts).
struct Tensor {
  std::string_view name;       // Hugging Face spelling without the layer prefix: "self_attn.q_proj.weight"
  std::string_view gguf = {};  // llama.cpp's: "attn_q.weight"
  std::int64_t n = 0;          // outputs (rows)
  std::int64_t k = 1;          // inputs (columns)
  std::int64_t count = 1;
  Role role = Role::vector;
  Part part = Part::attention;
  std::int64_t elements() const { return n * k * count; }
};

// Columns of the products before a recurrence: of its inputs, and of decays and gates.
struct RecurrentProducts {
  std::int64_t in = 0;
  std::int64_t gates = 0;
};
RecurrentProducts recurrent_products(const Recurrent& recurrent);
// The matrix of a part's hyper-connections: from all streams to the weights that read, write and mix them.
struct HyperConnection {
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;
};
HyperConnection hyper_connection(const Decoder& model);
// Whether an MLP and experts side by side have norms of their own (Gemma 4).
bool has_norms_beside_experts(const Layer& layer);

// Rows of lm_head: of the vocabulary, or the labels of an encoder.
std::int64_t head_rows(const Decoder& model);

// All tensors of one layer, as the unfused checkpoint would hold them.
std::vector<Tensor> layer_tensors(const Decoder& model, const Layer& layer);
// Tensors outside the layers: embedding, final norm, lm_head (absent when tied), positions.
std::vector<Tensor> outer_tensors(const Decoder& model);

struct ParameterCounts {
  std::int64_t embedding = 0;  // token embedding [vocab, hidden], and learned positions
  // The output matrix and its bias, also when it shares the embedding's storage; of an encoder its pooler and
  // classifier.
  std::int64_t lm_head = 0;
  std::int64_t layers = 0;        // all decoder layers, norms and biases included
  std::int64_t attention = 0;     // of `layers`: projections, their biases, q/k norms, sinks
  std::int64_t recurrent = 0;     // of `layers`: the same of recurrences
  std::int64_t feed_forward = 0;  // of `layers`: MLP, experts, router
  std::int64_t norms = 0;         // of `layers`: norms over the hidden vector
  std::int64_t final_norm = 0;    // and what else is neither of layers, nor embedding or head: norms, mixing of streams
  std::int64_t total = 0;         // embedding + layers + final_norm + lm_head, tied weights once
  std::int64_t activated = 0;     // total less the routed experts one token does not use
  std::int64_t checkpoint = 0;    // what the published files hold (tied lm_head twice where they do, a vision tower)
  std::int64_t vision = 0;        // of the tower, which is not among those above
  // Closed form of the limits (docs/formulas.md): matrices and biases of the layers, norms left out, and what one token
  // uses of them.
  std::int64_t layer_matrices = 0;
  std::int64_t layer_matrices_activated = 0;
};
ParameterCounts count_parameters(const Decoder& model);

// Elements of the index keys that a token adds to a layer's cache, and of their type's bits.
struct IndexRow {
  double elements = 0;  // one index key per `pool` tokens
  double bits = 0;      // of an element
  double bytes() const { return elements * bits / 8; }
};
IndexRow index_row(const Attention& attention);

// Elements of one token's row of the KV cache, all KV heads. Latent attention caches the latent and the rotary key as
// keys, which the values are part of.
struct CacheRow {
  std::int64_t keys = 0;
  std::int64_t values = 0;
};
CacheRow cache_row(const Attention& attention);
// Values (elements) one token adds to the KV cache of a layer of this kind: 2 kv_heads head_dim, or the latent and
// rotary key.
std::int64_t kv_values_per_token(const Attention& attention);
// … and of the whole model, sliding windows not yet full; entries that stand for several tokens are not among them.
// `growing_alone`: of the layers whose cache grows for good, however long the context.
std::int64_t kv_values_per_token(const Decoder& model, bool growing_alone = false);

// What a sequence holds of recurrent layers whatever its length: states in fp32, inputs of convolutions as activations
// of `activation_bytes`.
double state_bytes(const Recurrent& recurrent, double activation_bytes);
double state_bytes_per_sequence(const Decoder& model, double activation_bytes);

}  // namespace llmperf::model
