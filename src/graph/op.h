// The op: the one unit of work that the cost model, the mappers and the reports share. An op is a small value with
// shapes and storage types; `count` says how often it runs unchanged in one step (once per layer of its kind, usually).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"
#include "model/quantization.h"

namespace llmperf::graph {

// [m, k] x [k, n] -> [m, n], `batch` times.
struct Gemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  Dtype activation = Dtype::bf16;                // of the inputs that are activations, and of the output
  const model::StoredFormat* weights = nullptr;  // storage of [n, k]; null: the operand is an activation too
  double weight_matrices = 1;                    // distinct weight matrices read (experts that tokens are routed to)
  bool bias = false;
  bool cached_operand = false;  // weights == null: the [k, n] operand is the KV cache, stored as `cached`
  model::ElementFormat cached = {};
};

// softmax(Q K^T) V over a cache in one kernel. Every sequence adds q_tokens to `context` cached ones; query i (from 1)
// sees min(context + i, window) keys.
struct Attention {
  std::int64_t sequences = 0;
  std::int64_t q_tokens = 0;
  std::int64_t context = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t qk_dim = 0;
  std::int64_t v_dim = 0;
  std::optional<std::int64_t> window;
  std::int64_t query_tile = 0;  // rows of Q per pass over K and V; 0: all
  bool softcap = false;
  bool shared_kv = false;  // values are the first v_dim elements of the keys (latent attention, absorbed form)
  Dtype activation = Dtype::bf16;
  model::CacheScheme cached = {};
};

// Keys that at least one query of the tile sees, summed over query tiles: what one KV head of a sequence is read for.
double keys_read(const Attention& attention);

enum class VectorKind : unsigned char {
  rms_norm,
  layer_norm,
  add,
  add_rms_norm,
  add_layer_norm,
  rope,
  activation,
  gated_activation,
  multiply,
  mask,
  softmax,
  router,
  combine,
  sigmoid_gate,
  sampling,
  softcap
};

// Element-wise or row-wise work on [rows, width].
struct Vector {
  VectorKind kind = VectorKind::add;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  double reads = 1;    // tensors of [rows, width] read from memory
  double writes = 1;   // tensors of [rows, width] written
  Bytes parameters{};  // weights read once (of a norm)
  Dtype activation = Dtype::bf16;
};

// Rows of a table picked by index: [rows] of [table, width] -> [rows, width].
struct Gather {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  const model::StoredFormat* table = nullptr;
  Dtype activation = Dtype::bf16;
};

// Elements moved, converted on the way when the types differ.
struct Copy {
  double read_elements = 0;
  double write_elements = 0;
  model::ElementFormat from = {};
  model::ElementFormat to = {};
  bool from_cache = false;
  bool to_cache = false;
};

// Sent over the link between host and device: activations or cached values [rows, width], or the weights [rows, width]
// of `weight_matrices` matrices that a device multiplies with without keeping them.
struct Transfer {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  model::ElementFormat element = {};
  const model::StoredFormat* weights = nullptr;  // null: `element`
  double weight_matrices = 1;
};

using OpBody = std::variant<Gemm, Attention, Vector, Gather, Copy, Transfer>;

// What runs an op: the device, the CPU that holds the layers left on the host, or the link between the two.
enum class Place : unsigned char { device, host, link };
std::string_view name(Place place);

struct Op {
  std::string_view name;   // of static storage: "qkv_proj"
  std::int64_t count = 1;  // executions per step
  int layer_kind = -1;     // index into Decoder::kinds; -1: outside the layers
  Place place = Place::device;
  bool grows_with_context = false;
  OpBody body;
};

using Graph = std::vector<Op>;

}  // namespace llmperf::graph
