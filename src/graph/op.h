// The op: the one unit of work that the cost model, the mappers and the reports share. An op is a small value with
// shapes and storage types; `count` says how often it runs unchanged in one step (once per layer of its kind, usually).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"
#include "graph/expert_load.h"
#include "graph/vector_op.h"
#include "model/decoder.h"
#include "model/quantization.h"

namespace llmperf::graph {

// What an op is in the model. Names are these words: a Tag is what code decides by, a name what people read. Of video
// models the kernels of one part share a tag.
LLMPERF_WORDS(Tag, none,
              // outside the layers
              embed, embed_reduce, embed_scatter, add_positions, add_types, embed_norm, layer_embed, layer_embed_proj,
              layer_embed_norm, embed_dropout, input_norm, stage_send, stage_gather, head_gather, final_norm, pooler,
              lm_head, logits_gather, logits_to_fp32, logits_to_host, cross_entropy, loss_reduce, sampling,
              mask_prepare, to_host, to_device, send_weights, runtime_overhead,
              // before the layer of a draft, and before attention
              input_norms, join_inputs, join_states, attention_gather, qkv_proj, q_proj, k_proj, v_proj, qkv_bias,
              split_qkv, q_norm, k_norm, q_a_proj, q_a_norm, q_b_proj, kv_a_proj, kv_a_norm, rope_tables, rope, rope_q,
              rope_k, q_all_to_all, k_all_to_all, v_all_to_all, kv_to_host, kv_write, k_write, v_write,
              // an indexer, compressed keys, gates
              attention_gate, index_q, index_k, index_weights, index_norm, index_write, index_scores, top_k, compress,
              compress_pool, compressed_attention, apply_gate, o_a_proj, o_b_proj,
              // recurrences
              recurrent_in, recurrent_gates, decay_a, decay_b, gate_a, gate_b, conv, recurrent_x, recurrent_reduce,
              recurrent_norm, recurrent_dt, scan, gated_norm, recurrent_out, add_mixers,
              // between the parts of a layer
              stream_mix, stream_read, stream_write, stream_projection, branch_down, branch_up, branch_norm, layer_gate,
              layer_multiply, layer_projection, layer_norm, layer_add, latent_down, latent_norm, latent_up,
              // attention
              kv_concat, k_concat, v_concat, kv_to_device, k_to_device, v_to_device, kv_b_proj, q_absorb, v_absorb,
              attention, repeat_kv, repeat_k, repeat_v, scores, softcap, mask, softmax, scores_dropout, weighted_sum,
              merge_heads, kv_ring, kv_gather, merge_reduce, heads_gather,
              // after attention
              o_all_to_all, o_proj_transpose, o_proj, attention_reduce, attention_scatter, post_attention_norm,
              attention_dropout, attention_add, mlp_norm, attention_add_norm, mlp_gather, up_proj, gate_up_proj,
              gate_proj, activation, multiply_gate, down_proj_transpose, down_proj, mlp_reduce, mlp_scatter,
              post_mlp_norm, mlp_dropout, mlp_add, next_norm, mlp_add_norm,
              // experts
              router, routing, dispatch, experts_dispatch, experts_gate_up, experts_gate, experts_up,
              experts_activation, experts_down, experts_return, combine, experts_gather, shared_gate, apply_shared_gate,
              add_shared, experts_norm,
              // a vision tower
              patch_embed, patch_norm, merge_norm, merge_proj, deepstack_norm, deepstack_proj, deepstack_add,
              images_gather,
              // training: operands made narrow, weights made wide, and adapters beside frozen weights
              quantise, dequantise, adapter_down, adapter_up, adapter_add,
              // two-dimensional tensor parallelism
              gather_columns, reduce_rows, norm_statistics,
              // parts of a block of a video model
              spatial_attention, temporal_attention, cross_attention, qk_norm, rotate, modulate, frame_mask, gate, gelu,
              rearrange);

// Of a training step: the forward op, what differentiates it, of a product the gradients of its input and of its
// weights and the sum of these, and the forward op once more.
enum class Pass : unsigned char { forward, backward, dgrad, wgrad, wgrad_sum, again };

// "o_proj", "o_proj dgrad"; empty of none.
std::string_view name(Tag tag, Pass pass = Pass::forward);

// Vector work that the kernel of a product does besides: on its first input as it comes, and on the results before they
// leave.
struct Joined {
  std::optional<VectorKind> input;   // on all of [m, k]
  std::optional<VectorKind> output;  // on `share` elements per result of the product
  double share = 1;
  double reads = 0;         // elements of other operands per result
  double results = 1;       // stored per result of the product: 1/2 where gate and up become one
  std::int64_t cached = 0;  // columns that are stored as keys and values, in the format of Gemm::cached
  Bytes parameters{};       // weights read once (of a norm)
  bool any() const { return input || output || cached > 0; }
};

// What is said of how an op runs on an array of tiles (mapper/tile/), where that is not left to its mapper.
struct OnTiles {
  std::string_view local = {};    // of "abc" the operands and results that are in the tiles' memory
  int passes = 0;                 // of the matrix unit; 0: those that the device's rate is of
  std::string_view grid = {};     // "8x8": the part of the mesh; empty: what the device's file says
  std::string_view mapping = {};  // as `map gemm --mapping` takes it; empty: the best
  bool operator==(const OnTiles&) const = default;
};

// [m, k] x [k, n] -> [m, n], `batch` times.
struct Gemm {
  static constexpr std::string_view kKind = "gemm";
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  Dtype activation = Dtype::bf16;                // of the inputs that are activations, and of the output
  const model::StoredFormat* weights = nullptr;  // storage of [n, k]; null: the operand is an activation too
  double weight_matrices = 1;                    // distinct weight matrices read (experts that tokens are routed to)
  std::array<double, kTileRows.size()> row_tiles = {};  // of these (ExpertLoad::tiles); 0: all have as many rows
  bool bias = false;
  bool cached_operand = false;  // weights == null: the [k, n] operand is the KV cache, stored as `cached`
  model::ElementFormat cached = {};
  // > 0: the result is added to elements of that width in memory (gradients). Of a grouped product without `weights`
  // there are weight_matrices results, among which the k rows of both operands are dealt.
  double accumulated_bits = 0;
  // Both operands are in this type, which another kernel made of them; the result stays in `activation`. Of training.
  std::optional<Dtype> operands = {};
  Joined joined = {};
  std::int64_t copies = 0;  // of a measurement: sets of weights that take turns; 0: weights come from memory
  bool alone = false;  // measured outside of its engine, which would make activations narrow by a kernel of its own
  OnTiles tiles = {};  // of texts that outlive the op
};

// Feature maps of `inputs` channels filtered to `outputs` channels, at `positions` (pixels of all images or frames):
// every result is a product over `taps` neighbours of all inputs. What crosses the memory bus are the maps, not the
// matrix that a product would unfold them to.
struct Convolution {
  static constexpr std::string_view kKind = "convolution";
  std::int64_t positions = 0;  // that filters are multiplied at
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;
  std::int64_t taps = 1;       // 9 of a 3 x 3 filter
  double padding = 0;          // of positions times taps, those that meet no pixel of the input: no work
  double stored = 1;           // pixels of the result per position: 4 of a transposed convolution of stride 2 x 2
  double input_positions = 0;  // of the maps read, with their padding where it is stored
  Dtype activation = Dtype::bf16;
  const model::StoredFormat* weights = nullptr;  // storage of [outputs, inputs * taps]
  bool bias = false;
};

// softmax(Q K^T) V over a cache in one kernel; without values (v_dim 0) the scores alone, summed over the heads. Every
// sequence adds q_tokens to `context` cached ones; query i (from 1) sees min(context + i, window) keys. With `keys`
// nothing is cached or masked: every query sees that many.
struct Attention {
  static constexpr std::string_view kKind = "attention";
  std::int64_t sequences = 0;
  std::int64_t q_tokens = 0;
  std::int64_t context = 0;
  std::int64_t longest = 0;  // context of the longest sequence, where `context` is the mean of unequal ones
  std::int64_t keys = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t qk_dim = 0;
  std::int64_t v_dim = 0;
  std::optional<std::int64_t> window = {};
  bool chunked = false;         // the window does not slide: a query sees what its run of `window` tokens has so far
  std::int64_t query_tile = 0;  // rows of Q per pass over K and V; 0: all
  bool softcap = false;
  bool shared_kv = false;  // values are the first v_dim elements of the keys (latent attention, absorbed form)
  std::int64_t pool = 1;   // tokens that a key stands for; the window counts keys
  bool picked = false;     // the window is of chosen keys, those of each query its own
  bool verifies = false;   // the queries are a step's guesses (SequenceGroup::verifies): decode's kernel, of more rows
  // Devices that share the sequence. Either each has 1 / query_ranks of the queries, dealt so that all have as many
  // visible pairs, and sees every key; or each has all queries and 1 / key_ranks of the keys.
  std::int64_t query_ranks = 1;
  std::int64_t key_ranks = 1;
  bool backward = false;  // gradients of Q, K and V, with the scores computed again
  Dtype activation = Dtype::bf16;
  model::CacheScheme cached = {};
  std::int64_t copies = 0;  // of a measurement: caches that take turns; 0: K and V come from memory
  OnTiles tiles = {};       // passes and grid
};

// A recurrence over `tokens` new tokens of every sequence: each head has a state [key_dim, value_dim] in fp32, which is
// read before the first of them (of a sequence that has a past) and written after the last. Prompts are taken `chunk`
// tokens at a time, as products of matrices; the states at the ends of chunks go through memory.
struct Scan {
  static constexpr std::string_view kKind = "scan";
  model::RecurrentKind kind = model::RecurrentKind::gated_delta_net;
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t key_heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t chunk = 0;  // 0: token by token
  bool has_past = false;
  Dtype activation = Dtype::bf16;
};

// Keys that at least one query of the tile sees, summed over query tiles: what one KV head of a sequence is read for.
double keys_read(const Attention& attention);

// How a kernel walks its elements. Strided: broadcast, permuted or reduced in short rows, so that the number of
// elements bounds it as well as their bytes.
enum class Access : unsigned char { dense, strided };

// Element-wise or row-wise work on [rows, width].
struct Vector {
  static constexpr std::string_view kKind = "vector";
  VectorKind kind = VectorKind::add;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  double reads = 1;    // tensors of [rows, width] read from memory
  double writes = 1;   // tensors of [rows, width] written
  Bytes parameters{};  // weights read once (of a norm)
  Dtype activation = Dtype::bf16;
  Access access = Access::dense;
  double operations = 0;  // elementwise: per element
};

// Rows of a table picked by index: [rows] of [table, width] -> [rows, width].
struct Gather {
  static constexpr std::string_view kKind = "gather";
  std::int64_t rows = 0;
  std::int64_t width = 0;
  const model::StoredFormat* table = nullptr;
  std::int64_t entries = 0;  // rows of the table; 0: not known
  Dtype activation = Dtype::bf16;
};

// Elements moved, converted on the way when the types differ.
struct Copy {
  static constexpr std::string_view kKind = "copy";
  double read_elements = 0;
  double write_elements = 0;
  model::ElementFormat from = {};
  model::ElementFormat to = {};
  bool from_cache = false;
  bool to_cache = false;
  double rows = 0;  // to_cache: tokens whose keys and values are written
  Access access = Access::dense;
};

// Sent over the link between host and device: activations or cached values [rows, width], or the weights [rows, width]
// of `weight_matrices` matrices that a device multiplies with without keeping them.
struct Transfer {
  static constexpr std::string_view kKind = "transfer";
  std::int64_t rows = 0;
  std::int64_t width = 0;
  model::ElementFormat element = {};
  const model::StoredFormat* weights = nullptr;  // null: `element`
  double weight_matrices = 1;
};

enum class CollectiveKind : unsigned char {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  send,
  ring_pass,
  broadcast
};
std::string_view name(CollectiveKind kind);

// Which devices of a plan talk to each other (plan.h).
enum class Axis : unsigned char { tensor, tensor_rows, tensor_columns, ulysses, ring, expert, data, pipeline };
std::string_view name(Axis axis);

// Tokens on their way to the experts that they chose, and back: each picks `per_token` of `experts`, evenly among those
// of `groups_per_token` groups, which it picks evenly among `groups` runs of equally many experts (DeepSeek-V3, arXiv
// 2412.19437, section 2.1.2; one group: no such limit). How unevenly devices come off all the same is `busiest`.
struct Routing {
  std::int64_t experts = 0;  // 0: nothing is routed
  std::int64_t per_token = 0;
  std::int64_t groups = 1;
  std::int64_t groups_per_token = 1;
  model::ElementFormat back = {};  // of what goes the other way: of the results, of the results' gradients
  bool returns = false;            // results, on their way back
  double busiest = 1;              // tokens of the device that gets most of them, over the mean
  bool operator==(const Routing&) const = default;
};
// The chance that a token has at least one of its experts among `held` consecutive ones, the first of which begins a
// group if they are as many as a group or more (derived in op.cpp).
double reached(const Routing& routing, std::int64_t held);

// An exchange between `ranks` devices whose numbers are `stride` apart. [rows, width] elements are
//  * all-reduce: the tensor of which every rank holds a summand and gets the sum;
//  * all-gather: the result, of which every rank contributes 1 / ranks;
//  * reduce-scatter: the tensor of which every rank holds a summand and gets 1 / ranks of the sum;
//  * all-to-all: what a rank holds; it keeps 1 / ranks and gives every other rank as much. With `routing` a row is a
//    token for one device that has experts of it, which it goes to once (or what comes back from there);
//  * send: what goes to the next device;
//  * ring pass: the block of one rank, which visits all others (ranks - 1 passes);
//  * broadcast: the tensor that one rank has and all get.
struct Collective {
  static constexpr std::string_view kKind = "collective";
  CollectiveKind kind = CollectiveKind::all_reduce;
  Axis axis = Axis::tensor;
  std::int64_t ranks = 1;
  std::int64_t stride = 1;
  std::int64_t others = 0;  // > 0: devices that are no ranks, dealt evenly among these (Plan::afd), whatever the stride
  double rows = 0;
  double width = 0;
  model::ElementFormat element = {};
  Routing routing = {};
  bool library = false;    // run by the collective library, whatever kernels of its own the stack has
  bool with_norm = false;  // its kernel adds the residual and takes the norm that follows
  Bytes bytes() const { return Bytes{rows * width * bytes_per_element(element)}; }
};

// What the runtime takes beside the kernels of a step: scheduling, sampling, and launches that the device waits for. It
// asks nothing of the device; its time comes from the runtime profile.
struct Overhead {
  static constexpr std::string_view kKind = "overhead";
};

using OpBody = std::variant<Gemm, Attention, Vector, Gather, Copy, Transfer, Collective, Overhead, Convolution, Scan>;

// What runs an op: the device, the CPU that holds the layers left on the host, the link between the two, or the links
// between devices.
enum class Place : unsigned char { device, host, link, network };
std::string_view name(Place place);

// What of a step the shape of an op of a decoder hangs on: its new tokens, the sequences whose logits are made, tokens
// and sequences both, or one group of sequences (attention, recurrences) and whether the step is divided. Ops of `rows`
// and `sampled` are the same in every step of as many, whatever it is made of.
enum class Scope : unsigned char { rows, sampled, sequences, group };

struct Op {
  std::string_view name;  // for people, of static storage: "qkv_proj"
  Tag tag = Tag::none;    // of an op that a builder of this folder wrote
  Pass pass = Pass::forward;
  std::int64_t count = 1;    // executions per step
  int layer_kind = -1;       // index into Decoder::kinds, or VideoLayer (stdit_graph.h); -1: outside the layers
  std::int16_t layers = -1;  // of a decoder: index into WeightLayout::groups; -1: outside the layers
  Place place = Place::device;
  Scope scope = Scope::rows;
  std::int16_t group = 0;  // of Scope::group: which of the step's
  bool grows_with_context = false;
  bool on_experts = false;  // on a device of experts alone (Plan::afd)
  bool overlaps = false;    // a collective that can run while the op before it does
  double hidden = 1;        // of the shorter of the two, the share that then takes no time of its own
  // What the host does for one execution (runtime profiles): kernels launched (the op's work is spread over them), of
  // these such that have a new shape in every step, and tensor views, which launch nothing.
  std::int32_t launches = 1;
  std::int32_t reshaped = 0;
  std::int32_t views = 0;
  Bytes saved{};  // training: kept by one execution for the backward pass, that no earlier op keeps
  OpBody body;
};

// "gemm", "attention": what the op's body is.
inline std::string_view kind_of(const Op& op) {
  return std::visit([](const auto& body) { return body.kKind; }, op.body);
}

using Graph = std::vector<Op>;

}  // namespace llmperf::graph
