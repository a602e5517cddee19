// What single nodes ask for: the parts that lower.cpp makes ops from.
#pragma once

#include <optional>

#include "graph/hlo/program.h"
#include "graph/op.h"

namespace llmperf::graph::hlo {

// Operations of the vector unit of one execution of a node that is no product.
double vector_operations(const Program& program, const Node& node);

// Bytes of an operand that a node reads when the operand is not made by the same kernel: of a slice, a gather or a
// look-up what it takes, of an update what it changes.
Bytes read_bytes(const Program& program, const Node& node, std::size_t operand);
// Bytes of its n-th result that a node writes.
Bytes written_bytes(const Program& program, const Node& node, std::size_t result);

// The element type of our own with the same width, for byte counts; and the one that products run in.
Dtype storage_dtype(const Element& element);

// Extents of a convolution [positions, inputs x taps] x [inputs x taps, outputs]. Positions are those at which filters
// meet inputs: of a dilated input (transposed convolution) fewer than the result has pixels.
struct ConvolutionShape {
  double positions = 1;
  double outputs = 1;
  double inputs = 1;  // of one group
  double taps = 1;
};
ConvolutionShape convolution_shape(const Module& module, const Instruction& i, const Type& input, const Type& kernel,
                                   const Type& result);

// Of a collective of the text: a permutation is a `send`.
CollectiveKind collective_kind(const Instruction& i);

// softmax(Q K^T) V of a library on [batch, sequence, heads, width] or [batch, heads, sequence, width]; nothing when the
// shapes are no such.
std::optional<Attention> library_attention(const Program& program, const Node& node);

}  // namespace llmperf::graph::hlo
