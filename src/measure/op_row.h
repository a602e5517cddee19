// What one op-level measurement is of: the words of the `op` column and the shapes behind them. The same small values
// say what a replay is to run, so that a file of measurements can be replayed and a replay is a file of measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"
#include "graph/op.h"

namespace llmperf::measure {

enum class Phase : unsigned char { prefill, decode, verify };  // verify: a step of decode with several tokens
std::string_view name(Phase phase);

// op "gemm" (or "matmul"): `batch` products [m, k] x [k, n]. `weights`: the scheme in which the [k, n] operand is
// stored (column `weights`: "int8", "w4a16-g128", "w8a8"); empty: as the other one.
struct GemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  std::string weights = {};
  std::int64_t ranks = 1;  // op "matmul_all_reduce" (column ranks): devices whose products one kernel adds up
  // Load under which it was measured (column power: "short", "sustained"); empty: as the profile has it.
  std::string power = {};
  std::int64_t copies = 0;  // sets of weights that took turns in the measurement (column copies); 0: not said
  // On an array of tiles: passes of the matrix unit (0: not said), the part of the mesh ("8x8"), which of "abc" are in
  // the tiles' memory, and the mapping as `map gemm --mapping` takes it.
  std::int64_t passes = 0;
  std::string grid = {};
  std::string local = {};
  std::string mapping = {};
  bool operator==(const GemmShape&) const = default;
};

// op "attention_prefill", "attention_decode". kv_len counts the q_len new tokens.
struct AttentionShape {
  Phase phase = Phase::prefill;
  std::int64_t batch = 0;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool causal = true;
  std::string kv_dtype = {};  // of the cache; empty: as the rest
  std::int64_t window = 0;    // keys that a query sees at most; 0: all
  std::int64_t copies = 0;    // caches that took turns in the measurement; 0: not said
  std::int64_t passes = 0;    // on an array of tiles, as of GemmShape
  std::string grid = {};
  bool operator==(const AttentionShape&) const = default;
};

// op "mla_prefill", "mla_decode": latent attention of DeepSeek's widths, over a prompt on expanded keys (192) and
// values (128), and of new tokens on latents of 512 + 64. op "mla_module_prefill", "mla_module_decode": the same with
// the projections around it, from a residual stream of 7168 elements back to one. op "mla_prolog": what of that comes
// before the attention of new tokens, one kernel on Ascend (MlaProlog).
struct LatentShape {
  enum class Part : unsigned char { attention, module, prolog };
  // Of the residual stream, of the latents of queries and of keys, of what of a head is rotated and of what is not.
  static constexpr std::int64_t kHidden = 7168;
  static constexpr std::int64_t kQueryLatent = 1536;
  static constexpr std::int64_t kLatent = 512;
  static constexpr std::int64_t kRotary = 64;
  static constexpr std::int64_t kHead = 128;
  Phase phase = Phase::prefill;
  std::int64_t batch = 0;  // of a prolog column m: one new token of each sequence
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::int64_t heads = 0;
  std::string kv_dtype = {};  // of the cache; empty: as the rest
  Part part = Part::attention;
  std::string weights = {};  // of the projections, as of GemmShape
  bool absorbed = false;     // on latents as they are: new tokens, and prompts where the profile's stack has them so
  bool operator==(const LatentShape&) const = default;
};

// op "moe_products": of "moe" below the two grouped products and the activation between them alone.
// op "moe": the routed experts of a layer, from the router's logits to the sum of their results. Each of m tokens goes
// to topk of them; of these, and of their inner width, a device has 1 / ep and 1 / tp.
struct ExpertsShape {
  std::int64_t m = 0;
  std::int64_t hidden = 0;
  std::int64_t inter = 0;
  std::int64_t topk = 0;
  std::int64_t experts = 0;
  std::int64_t tp = 1;
  std::int64_t ep = 1;
  std::string weights = {};       // as of GemmShape
  std::string distribution = {};  // "balanced", "power_law_1.2": a drawn_load() (expert_load.h); "uniform": drawn
                                  // evenly by every token; empty: balanced
  bool products = false;
  bool operator==(const ExpertsShape&) const = default;
};
// Whether experts have a gate. Those of Nemotron 3 Nano, alone among the shapes that are measured, do not.
bool has_gate(const ExpertsShape& shape);
inline constexpr std::string_view kUniform = "uniform";
// A of "power_law_A"; nothing of other texts.
std::optional<double> drawn_exponent(std::string_view distribution);

// op "vector:NAME": an element-wise op or a norm. NAME is either a kind of graph::VectorKind (vector_op() below) on m
// rows of n elements, or, without n, a layer that profilers of vLLM time by name ("act_fn", "embedding",
// "final_layernorm", "layernorm", "rotary_emb"), whose width is known.
struct VectorShape {
  std::string layer;
  std::int64_t tokens = 0;    // column m: rows
  std::int64_t width = 0;     // column n; 0: the layer's own
  std::int64_t heads = 0;     // rope: rows of a token that are queries, and keys (columns heads, kv_heads);
  std::int64_t kv_heads = 0;  // 0: not known
  Bytes bytes = {};           // elementwise: read and written together (column bytes)
  bool operator==(const VectorShape&) const = default;
};

// op "gather": m rows of n elements, picked from a table of k rows (0: not known).
struct GatherShape {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t table = 0;
  bool operator==(const GatherShape&) const = default;
};

// op "kv_write": keys and values of m tokens go to the cache, kv_heads x head_dim elements of each.
struct CacheShape {
  std::int64_t tokens = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool operator==(const CacheShape&) const = default;
};

// op "scan:NAME", NAME of model::RecurrentKind: a recurrence over q_len new tokens of each sequence; one token goes on
// from a state, several are a prompt. Each of `heads` heads has a state of key_dim rows (column k) and value_dim
// columns (column n); queries and keys are of key_heads heads (column kv_heads).
struct ScanShape {
  model::RecurrentKind kind = model::RecurrentKind::gated_delta_net;
  std::int64_t batch = 0;
  std::int64_t q_len = 1;
  std::int64_t heads = 0;
  std::int64_t key_heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  bool operator==(const ScanShape&) const = default;
};

// op "all_reduce", "all_gather", "reduce_scatter", "all_to_all" (or "alltoall"), by the collective library;
// "custom_all_reduce": by the kernels of the stack's own, where the profile has them.
struct CollectiveShape {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  std::int64_t ranks = 0;
  Bytes bytes = {};  // of the full tensor on one rank: input of all-reduce and reduce-scatter, output of all-gather
  bool custom = false;
  bool operator==(const CollectiveShape&) const = default;
};

// op "copy_to_device", "copy_to_host": over the link between the host's pinned memory and the device's.
struct TransferShape {
  bool to_host = false;
  Bytes bytes = {};
  bool operator==(const TransferShape&) const = default;
};

using OpShape = std::variant<GemmShape, AttentionShape, LatentShape, ExpertsShape, VectorShape, GatherShape, CacheShape,
                             CollectiveShape, ScanShape, TransferShape>;

struct OpRow {
  std::string op;  // as written: "gemm", "vector:rms_norm", "alltoall"
  Dtype dtype = Dtype::fp16;
  OpShape shape;
  std::string runtime = {};  // whose kernel it is: "sglang"; empty: the device's preferred one
  std::string engine_version = {};
  // Who computed it: "torch cuDNN attention" (column kernel); empty: not said.
  std::string kernel = {};
  // How it was launched: "graph", by a captured graph, or "eager", by a framework that calls ops one by one (column
  // mode); empty: as the profile has it.
  std::string mode = {};
  bool operator==(const OpRow&) const = default;
};

inline constexpr std::string_view kEager = "eager";
// What PyTorch is made to compute where it has no kernel for it, and no stack on such a device runs: by the words of
// replay/torch/replay.py.
bool stands_in(std::string_view kernel);

inline constexpr std::string_view kVectorPrefix = "vector:";

// Of a name that `vector:` takes with a width (graph::kMeasured); null for others. elementwise: of shape.bytes instead.
using graph::VectorOp;
const VectorOp* vector_op(std::string_view name);
// Of the layers that `vector:` takes without a width.
struct KnownLayer {
  std::string_view name;
  graph::VectorKind kind;
  std::int64_t width;
  double reads;
  double writes;
};
const KnownLayer* known_layer(std::string_view name);

// Every text that the `op` column takes, and what one says of the shape: its alternative, and of that the phase, the
// layer, the kind of collective, or that there are several ranks. Nothing for other texts.
std::vector<std::string> op_names();
std::optional<OpShape> shape_of_word(std::string_view op);
// The other way round; nothing where no measurements have a word (sends).
std::optional<std::string> word_of(const OpShape& shape);
OpRow row_of(Dtype dtype, OpShape shape);  // of a shape that has one
std::optional<graph::CollectiveKind> collective_kind(std::string_view op);

// Sizes alone: "128 x 1024 x 1024", "batch 1 q 1 kv 129 heads 16/16 x 64".
std::string shape_text(const OpRow& row);
// The op on one line: "gemm bf16 128 x 1024 x 1024". Equal texts are the same op.
std::string describe(const OpRow& row);

}  // namespace llmperf::measure
