// What single nodes ask for: the shapes of products and convolutions, operations, bytes. lower.cpp makes ops from it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/op.h"
#include "program/module.h"
#include "program/program.h"

namespace llmperf::program {

// NOLINTNEXTLINE(bugprone-reserved-identifier): the name is clang 14's own, for copying the arrays.
struct DotDimensions {
  Integers batch[2] = {};  // of the left operand and of the right one
  Integers contracted[2] = {};
  // Those of an operand of that type that are neither.
  Integers free(int side, const Type& type) const;
};

// Of a dot_general from its attributes; of a dot, and of products of libraries that have none, the last dimension of
// the first operand with the last but one (of a vector: the only one) of the second.
DotDimensions dot_dimensions(const Instruction& i, const Type& lhs, const Type& rhs);

// As a batch of products [m, k] x [k, n].
struct DotShape {
  double batch = 1;
  double m = 1;
  double n = 1;
  double k = 1;
  double groups = 1;  // of a ragged product: matrices [k, n] among which the m rows are dealt
};
// Throws Error(bad_input) at the instruction when the extents of the two operands do not go together.
DotShape dot_shape(const Module& module, const Instruction& i, const Type& lhs, const Type& rhs);

// Of a library's product, whose text has no dimensions: [batch, m, k] x [batch, k, n] -> [batch, m, n] in whatever
// order. The batch is 0 when there is nothing to multiply.
DotShape library_product(const Type& lhs, const Type& rhs, const Type& out);

// What single nodes ask for: the parts that lower.cpp makes ops from.

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
  double met = 0;  // of positions times taps, those where a tap meets an element of the input; 0: not known, all
};
ConvolutionShape convolution_shape(const Module& module, const Instruction& i, const Type& input, const Type& kernel,
                                   const Type& result);

// The dimension of a convolution's input (0), kernel (1) or result (2) that a letter stands for: b batch, f features, i
// and o inputs and outputs of the kernel, 0 to 9 what it moves along, as in [b, 0, f]x[0, i, o]->[b, 0, f]. -1: none.
std::int64_t convolution_axis(const Instruction& i, std::size_t tensor, char letter);

// Of a collective of the text: a permutation is a `send`.
CollectiveKind collective_kind(const Instruction& i);

// softmax(Q K^T) V of a library on [batch, sequence, heads, width] or [batch, heads, sequence, width], or packed as
// [batch, sequence, 3 or 2, heads, width]; nothing when the shapes are no such.
std::optional<Attention> library_attention(const Program& program, const Node& node);

// What a node costs beside another one on any device of today: to compare the branches of a conditional.

// Of one execution, in operations of a matrix engine; the slowest of its products, vector operations and bytes.
double rough_cost(const Program& program, const Node& node);

}  // namespace llmperf::program
