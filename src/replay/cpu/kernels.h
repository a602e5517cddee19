// The inner loops of the replayed ops, as tables of functions: each instruction set (isa.h) has one, made from the same
// source (kernels/*.inc). A kernel runs on one thread and does the part of the work it is told; dividing the work is
// the caller's business. Only plain types here: these declarations are seen by code compiled for different processors.
//
// bf16 is computed in fp32: converted when loaded, rounded to nearest even when stored.
#pragma once

#include <cstdint>

namespace llmperf::replay::cpu {

enum class Element : unsigned char { f32, bf16, s8 };

constexpr std::int64_t bytes_of(Element element) {
  return element == Element::f32 ? 4 : element == Element::bf16 ? 2 : 1;
}

// Operands of a kernel over rows of `width` elements, without gaps.
struct RowArgs {
  const void* in[4] = {};
  void* out[2] = {};
  std::int64_t width = 0;
  std::int64_t heads = 1;           // rope: rows of one position
  const float* rotation = nullptr;  // rope: [positions, width]: width / 2 cosines, then as many sines
};
// On rows [first, last) of the operands; on elements [first, last) of the result where the table says so.
using RowKernel = void (*)(const RowArgs& args, std::int64_t first, std::int64_t last);

// For one type of elements. Order of in and out: operands.h.
struct RowKernels {
  RowKernel rms_norm;
  RowKernel layer_norm;
  RowKernel add_rms_norm;
  RowKernel add_layer_norm;
  RowKernel rope;
  RowKernel softmax;
  RowKernel argmax;      // out[0]: std::int32_t per row, the first of the largest
  RowKernel add;         // elements
  RowKernel multiply;    // elements
  RowKernel silu;        // elements
  RowKernel gated_silu;  // elements of the result
  // out[i] = sum of in[r][i] over r < count, for i in [first, last).
  void (*sum)(const void* const* in, std::int64_t count, void* out, std::int64_t first, std::int64_t last);
};

// y[i, j] = scale sum_c x[i, c] w[j, c], i < m, j < n, c < k; strides in elements.
struct ProductArgs {
  const float* x = nullptr;
  std::int64_t x_stride = 0;
  const void* w = nullptr;
  Element w_element = Element::f32;
  std::int64_t w_stride = 0;
  void* y = nullptr;
  Element y_element = Element::f32;
  std::int64_t y_stride = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  float scale = 1;
};

// A tile of attention: all query heads of one KV head, `queries` of one sequence, the keys [first_key, last_key).
// Strides in elements.
struct AttentionTile {
  const void* q = nullptr;  // [queries, group, head_dim], queries q_stride apart
  const void* k = nullptr;  // key 0 of the sequence, keys k_stride apart
  const void* v = nullptr;
  std::int64_t q_stride = 0;
  std::int64_t k_stride = 0;
  std::int64_t v_stride = 0;
  std::int64_t y_stride = 0;  // between results [group, v_dim]
  std::int64_t queries = 0;
  std::int64_t group = 0;
  std::int64_t head_dim = 0;  // of queries and keys
  std::int64_t v_dim = 0;
  std::int64_t first_key = 0;
  std::int64_t last_key = 0;
  std::int64_t visible = 0;       // keys that query 0 of the tile sees
  std::int64_t visible_step = 0;  // how many more each next query sees: 1 causal, 0 not
  float scale = 1;
};

struct AttentionKernels {
  // Writes the state of the tile's rows (queries x group): sums of values weighted by exp(score - maximum) [rows,
  // v_dim], then maxima [rows], then sums of the weights [rows].
  void (*tile)(const AttentionTile& tile, float* state, float* scratch);
  // The result of rows [first, last) of a tile (row: query and head of the group) from `count` states, `state_stride`
  // floats apart, of its keys.
  void (*finish)(const float* states, std::int64_t count, std::int64_t state_stride, const AttentionTile& tile,
                 void* out, std::int64_t first, std::int64_t last);
};

// The recurrence of one head (operands.h, scan) over `columns` columns of its state, token by token in fp32. Strides in
// elements between tokens; the state's between its rows.
struct ScanArgs {
  const void* q = nullptr;  // [key_dim] of a token
  const void* k = nullptr;
  const void* v = nullptr;  // [columns]
  const void* decay = nullptr;
  const void* write = nullptr;
  void* y = nullptr;
  float* state = nullptr;  // [key_dim, columns]
  std::int64_t qk_stride = 0;
  std::int64_t v_stride = 0;  // and of y
  std::int64_t gate_stride = 0;
  std::int64_t state_stride = 0;
  std::int64_t tokens = 0;
  std::int64_t key_dim = 0;
  std::int64_t columns = 0;
  bool fresh = false;  // the state is 0 before the first token
  bool delta = false;
};
// scratch: scan_scratch() floats.
using ScanKernel = void (*)(const ScanArgs& args, float* scratch);

struct Kernels {
  RowKernels f32;
  RowKernels bf16;
  AttentionKernels attention_f32;
  AttentionKernels attention_bf16;
  ScanKernel scan_f32;
  ScanKernel scan_bf16;

  // Few rows of x (kStreamRows): every row of w is read once, from memory to registers.
  void (*stream_product)(const ProductArgs& args);
  // Many rows, by Eigen's blocked product, w and y of f32. scratch: kProductScratch floats.
  void (*blocked_product)(const ProductArgs& args, float* scratch);
  void (*widen)(const void* from, Element element, float* to, std::int64_t count);
  // to = scale from, `rows` rows of `width`.
  void (*narrow)(const float* from, std::int64_t from_stride, void* to, Element element, std::int64_t to_stride,
                 std::int64_t rows, std::int64_t width, float scale);

  // Microbenchmarks (describe_device.cpp). fma: multiply-adds in registers, returns a number that depends on all of
  // them so that none can be left out; `flops_per_round` in total. sum, copy, triad: over `count` floats.
  float (*fma)(std::int64_t rounds);
  std::int64_t flops_per_round;
  float (*sum)(const float* from, std::int64_t count);
  void (*copy)(const float* from, float* to, std::int64_t count);
  void (*triad)(const float* a, const float* b, float* to, std::int64_t count);
};

// Rows of x up to which streaming w beats packing it for a blocked product.
inline constexpr std::int64_t kStreamRows = 8;
// The blocks that Eigen packs: kBlockRows x kBlockDepth of one operand, kBlockDepth x kBlockColumns of the other.
inline constexpr std::int64_t kBlockRows = 384;
inline constexpr std::int64_t kBlockDepth = 256;
inline constexpr std::int64_t kBlockColumns = 512;
inline constexpr std::int64_t kProductScratch = (kBlockRows + kBlockColumns) * kBlockDepth;
// Keys that are scored before their values are summed.
inline constexpr std::int64_t kKeyBlock = 128;

// Floats in whole cache lines: where Eigen's blocks may begin.
constexpr std::int64_t whole_line_floats(std::int64_t floats) { return (floats + 15) / 16 * 16; }

constexpr std::int64_t scan_scratch(std::int64_t key_dim, std::int64_t columns) {
  return 2 * whole_line_floats(key_dim) + 2 * whole_line_floats(columns);
}

// Floats that AttentionKernels::tile needs as scratch, and as state, for a tile of `rows` rows.
constexpr std::int64_t attention_scratch(std::int64_t rows, std::int64_t head_dim, std::int64_t v_dim) {
  return whole_line_floats(rows * head_dim) + (rows + head_dim + v_dim) * kKeyBlock + kProductScratch;
}
constexpr std::int64_t attention_state(std::int64_t rows, std::int64_t v_dim) { return rows * (v_dim + 2); }

}  // namespace llmperf::replay::cpu
