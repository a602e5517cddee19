// What one execution of an op asks of a device: operations by engine and bytes by what they are. Everything downstream
// (the roofline, the reports, the explanations) is computed from this.
#pragma once

#include <optional>

#include "base/dtype.h"
#include "base/units.h"
#include "graph/op.h"

namespace llmperf::cost {

// How the fastest kernels that a product has multiply and add up (docs/formulas.md, Time of an operation).
enum class Sums : unsigned char {
  wide,     // operands as they are, added up in 32 bits
  narrow,   // fp16 operands may be added up in 16 bits
  integer,  // or be brought to int8
};
// Of a product with weights stored like this: kernels of GPTQ and AWQ that unpack weights to fp16 add up in 16 bits, as
// llama.cpp does with every fp16 product, those of attention included; its kernels on packed weights multiply in int8.
Sums sums_of(const model::StoredFormat& weights);

struct Work {
  Flops matrix;                      // multiply and add count as two
  Flops vector;                      // element-wise operations, dequantisation included
  Dtype matrix_dtype = Dtype::bf16;  // operand type of the matrix engine
  Sums sums = Sums::wide;
  Bytes weights;  // stored weights read
  Bytes activations_read;
  Bytes activations_written;
  Bytes kv_read;
  Bytes kv_written;
  Bytes network;  // sent over a link between devices or to the host; not part of bytes(), which is memory traffic

  Bytes bytes() const { return weights + activations_read + activations_written + kv_read + kv_written; }
  Work& operator+=(const Work& other);
  Work operator*(double factor) const;
};

// The on-chip cache that decides whether a GEMM's operands are read from memory more than once; no value: large enough.
using Cache = std::optional<Bytes>;

// Exact work of one execution of `op`.
//  * GEMM: 2 m n k; operands and result once each, or more often when neither operand fits in `cache` (gemm_reads).
//  * Attention: 2 (qk_dim + v_dim) FLOPs per visible (query, key) pair, masked pairs are skipped; K and V of the
//  visible keys
//    once per query tile and KV head.
//  * Convolution: 2 positions outputs inputs taps; the maps once each.
//  * Vector: operations per element by kind (vector_flops_per_element).
//  * Scan: operations on the state by kind, token by token, or products within and between chunks; the state once each
//    way, counted with the KV cache.
//  * Transfer: bytes over the link alone; what reads and writes them in memory at either end is the ops before and
//    after.
Work work_of(const graph::Op& op, const Cache& cache = std::nullopt);

// Visible (query, key) pairs of one sequence: sum over i = 1..q_tokens of min(context + i, window); q_tokens keys
// without a mask.
double visible_pairs(const graph::Attention& attention);

// How often each operand of a GEMM crosses the memory bus under the best of three schedules: a square output tile as
// large as the cache, a slab of rows of the first operand kept, or a slab of columns of the second. 1 and 1 when either
// operand fits.
struct OperandReads {
  double first = 1;   // of [m, k]
  double second = 1;  // of [k, n]
};
OperandReads gemm_reads(double m, double n, double first_bytes, double second_bytes, double element_bytes,
                        const Cache& cache);

// Operations per element of a vector op (graph/vector_op.h).
inline double vector_flops_per_element(graph::VectorKind kind) { return graph::vector_op(kind).operations; }
// Of what is joined to a product: per element of its first input, and per result.
double joined_input_flops(const graph::Joined& joined);
double joined_output_flops(const graph::Joined& joined);
// Operations per cached value that bring a narrower cache type to the activation type: subtract the zero point, scale.
// None when the cache is as wide as the activations.
double cache_dequant_flops(const model::ElementFormat& cached, Dtype activation);
inline constexpr double kSoftmaxFlops = graph::vector_op(graph::VectorKind::softmax).operations;

}  // namespace llmperf::cost
