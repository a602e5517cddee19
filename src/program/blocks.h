// The transformer blocks of a flat program: what each product is there for, and the dimensions that follow. Nothing is
// taken from names. From the dataflow (dataflow.h):
//  * scores: a product whose result goes through a softmax into another one, which contracts the dimension that was
//    free in one operand of the first; that operand are the keys, the other one the queries, and what the second
//    product multiplies with are the values. The contracted extent is the width of a head.
//  * projections of queries, keys and values: the products with weights that those three come from. The parts of the
//    queries' extents that were columns of the weights, and are not contracted, are the heads; those that were rows are
//    sequences where scores have them as batch, and tokens where they are free.
//  * cross attention: keys and values come from another stream than the queries.
//  * output: the product with weights that reads what the attention made.
//  * feed-forward: a product with weights that reads others with weights through an activation function, or two that
//    were multiplied.
//  * a block begins with the first attention after a feed-forward.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.h"
#include "model/decoder.h"
#include "program/program.h"

namespace llmperf::program {

LLMPERF_WORDS(Role, other,  // adapters, modulation, heads of other kinds
              query, key, value, query_key, key_value, qkv,
              latent,  // the first of two matrices that make queries or keys
              scores, values,
              attention,  // scores, softmax and values in one op
              output, cross_query, cross_key, cross_value, cross_key_value, cross_scores, cross_values, cross_attention,
              cross_output, gate, up, gate_up, down, router, expert_gate, expert_up, expert_gate_up, expert_down,
              embedding,  // a lookup
              lm_head);
std::string_view name(Role role);  // "cross_query"

// self: over the tokens of a sequence; spatial and temporal: over the patches of a frame, and over one patch in all
// frames; cross: over another stream.
enum class AttentionKind : unsigned char { self, spatial, temporal, cross };
std::string_view name(AttentionKind kind);

struct AttentionShape {
  AttentionKind kind = AttentionKind::self;
  std::int64_t batch = 1;    // sequences
  std::int64_t queries = 1;  // of a sequence
  std::int64_t keys = 1;     // that a query is multiplied with
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t v_head_dim = 1;
  bool masked = false;  // by query and key: causal, as a rule
  bool rotary = false;
  bool qk_norm = false;
  bool softcap = false;
  bool qkv_bias = false;
  bool o_bias = false;
  bool fused_qkv = false;
  bool latent = false;
  bool operator==(const AttentionShape&) const = default;
};

struct FeedForwardShape {
  std::int64_t intermediate = 0;
  bool gated = false;
  std::optional<model::Activation> activation;  // nothing: not recognised
  bool bias = false;
  bool fused_gate_up = false;
  std::int64_t experts = 0;    // 0: dense
  std::int64_t per_token = 0;  // 0: not seen
  std::int64_t shared_intermediate = 0;
  bool router_bias = false;
  bool operator==(const FeedForwardShape&) const = default;
};

struct RoleNodes {
  Role role = Role::other;
  List<NodeId> nodes;  // of all layers
};

struct TransformerBlock {
  std::string name;         // "block 1"
  std::int64_t layers = 1;  // alike: in the program, or by a loop over stacked weights
  std::int64_t passes = 1;  // of each layer: by a loop that does not change the weights
  bool again = false;       // these layers are another block's as well: the same weights over other tokens
  std::int64_t hidden = 0;
  std::optional<model::Norm> norm;
  int norms = 0;                 // over the hidden vector
  bool parallel_blocks = false;  // attention and feed-forward read the same
  std::vector<AttentionShape> attentions;
  std::optional<FeedForwardShape> feed_forward;
  std::vector<RoleNodes> products;  // in the order of the first
};

struct WordTable {
  NodeId node = kNone;
  std::int64_t rows = 0;
  std::int64_t width = 0;
};
struct OutputHead {
  NodeId node = kNone;
  std::int64_t words = 0;
  bool tied = false;  // the weights are the word table's
  bool bias = false;
};

struct Blocks {
  List<Role> roles;  // by node
  std::vector<TransformerBlock> blocks;
  std::optional<WordTable> embedding;
  std::int64_t position_embeddings = 0;  // rows of a table of learned positions
  std::optional<OutputHead> lm_head;
  std::vector<RoleNodes> outside;  // products of no block
  std::vector<std::string> notes;  // what was not recognised
};

Blocks recover_blocks(const Program& program);

// A model descriptor (models/*.yaml) from the blocks, as `--model` takes it: a decoder, or a video diffusion
// transformer whose blocks the program has (what surrounds them is then that of the built-in model of the same
// architecture). The notes in it say what was recovered and what was assumed. Throws Error(bad_input), saying what was
// found instead, when the format cannot describe the blocks.
std::string recovered_model(const Program& program, const Blocks& blocks);

}  // namespace llmperf::program
