// The inner loops of the replayed ops, as tables of functions: each instruction set (machine.h) has one, made from the
// same source (kernels.inc). A kernel runs on one thread and does the part of the work it is told; dividing the work is
// the caller's business. Only plain types here: these declarations are seen by code compiled for different processors.
//
// bf16 is computed in fp32: converted when loaded, rounded to nearest even when stored.
#pragma once

#include <cstdint>

namespace llmperf::replay::cpu {

enum class Element : unsigned char { f32, bf16, s8, s32 };

constexpr std::int64_t bytes_of(Element element) {
  return element == Element::s8 ? 1 : element == Element::bf16 ? 2 : 4;
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

// For one type of elements. Order of in and out: operands.h.
struct TypedKernels {
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
  // Writes the state of the tile's rows (queries x group): sums of values weighted by exp(score - maximum) [rows,
  // v_dim], then maxima [rows], then sums of the weights [rows].
  void (*attention)(const AttentionTile& tile, float* state, float* scratch);
  // The result of rows [first, last) of a tile (row: query and head of the group) from `count` states, `state_stride`
  // floats apart, of its keys.
  void (*finish_attention)(const float* states, std::int64_t count, std::int64_t state_stride,
                           const AttentionTile& tile, void* out, std::int64_t first, std::int64_t last);
  void (*scan)(const ScanArgs& args, float* scratch);
};

// y[i, j] = scale sum_c x[i, c] w[j, c], i < m, j < n, c < k: x and w of one type and without gaps.
struct ProductArgs {
  const void* x = nullptr;
  const void* w = nullptr;
  Element input = Element::f32;
  void* y = nullptr;
  Element output = Element::f32;  // f32 or bf16
  std::int64_t y_stride = 0;      // elements between rows
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  float scale = 1;
};

struct Kernels {
  TypedKernels f32;
  TypedKernels bf16;
  void (*product)(const ProductArgs& args, float* scratch);
  const TypedKernels& of(Element element) const { return element == Element::f32 ? f32 : bf16; }

  // Microbenchmarks (describe_device.cpp). fma: multiply-adds in registers, returns a number that depends on all of
  // them so that none can be left out; `flops_per_round` in total. sum, copy, triad: over `count` floats.
  float (*fma)(std::int64_t rounds);
  std::int64_t flops_per_round;
  float (*read)(const float* from, std::int64_t count);
  void (*copy)(const float* from, float* to, std::int64_t count);
  void (*triad)(const float* a, const float* b, float* to, std::int64_t count);
};

// Floats in whole cache lines.
constexpr std::int64_t whole_line_floats(std::int64_t floats) { return (floats + 15) / 16 * 16; }

// Rows of either operand that a product converts, and multiplies, at once: about a megabyte of each.
constexpr std::int64_t product_panel(std::int64_t k) {
  const std::int64_t rows = (std::int64_t{1} << 18) / k / 16 * 16;
  return rows < 16 ? 16 : rows < 512 ? rows : 512;
}
// Floats that the kernels need as scratch, and attention as the state of a tile of `rows` rows.
constexpr std::int64_t product_scratch(std::int64_t k) { return product_panel(k) * (2 * k + product_panel(k)); }
inline constexpr std::int64_t kKeyBlock = 128;  // keys that are scored before their values are summed
constexpr std::int64_t attention_scratch(std::int64_t rows, std::int64_t head_dim, std::int64_t v_dim) {
  return whole_line_floats(rows * head_dim) + (rows + head_dim + v_dim) * kKeyBlock;
}
constexpr std::int64_t attention_state(std::int64_t rows, std::int64_t v_dim) { return rows * (v_dim + 2); }
constexpr std::int64_t scan_scratch(std::int64_t key_dim, std::int64_t columns) {
  return 2 * whole_line_floats(key_dim) + 2 * whole_line_floats(columns);
}

}  // namespace llmperf::replay::cpu
