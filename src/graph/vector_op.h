// Element-wise and row-wise operations: one row of one table for each. Work (cost/work.cpp), explanations, the vector
// problem of tiles, the backward pass, the words of measured rows and replays ("vector:NAME") and those of
// `map vector --kind` are all read from it.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/dtype.h"
#include "base/words.h"

namespace llmperf::graph {

LLMPERF_WORDS(VectorKind, rms_norm, layer_norm, add, add_rms_norm, add_layer_norm, rope, activation, gated_activation,
              multiply, mask, softmax, router, combine, sigmoid_gate, sampling, draw, softcap, dropout, cross_entropy,
              adam,
              // of video models: x (1 + scale) + shift, x + gate y, of two tensors by a mask
              modulate, gate_add, select, reduce, group_norm,
              // of a program: as many operations as Vector::operations says
              elementwise);

// What one kernel reads and writes: tensors of the activations' type, and bytes per element whatever their type.
struct Traffic {
  double reads = 0;
  double writes = 0;
  double read_bytes = 0;
  double written_bytes = 0;
  double read_tensors(Dtype activation) const { return reads + read_bytes * 8 / bits(activation); }
  double written_tensors(Dtype activation) const { return writes + written_bytes * 8 / bits(activation); }
};

// What differentiates an operation.
struct VectorGradient {
  enum class Flow : unsigned char {
    untrained,  // no training pass has such an op
    unchanged,  // the gradient passes for nothing
    kernel
  };
  Flow flow = Flow::untrained;
  VectorKind kind = VectorKind::add;  // of the kernel
  Traffic moved = {};                 // by a kernel that moves each tensor once
  bool results = false;               // it also reads the tensors that the forward op wrote
  // By the kernels of a framework (training_graph.cpp); none: one kernel as above.
  std::array<Traffic, 2> framework = {};
};

// What else is known of an operation, as bits.
enum Trait : unsigned char {
  kByRow = 1,     // needs all of a row before it writes the first element
  kMeasured = 2,  // a word of measured rows and replays
  kMapped = 4     // a word of `map vector --kind`, as is its alias
};

// One operation is an add, multiply, compare, exponential or division.
struct VectorOp {
  VectorKind kind;
  std::string_view name;
  double operations;  // per element
  // As one kernel on [rows, width]: tensors of that shape, and the parameters of a column.
  double reads;
  double writes;
  double parameters;
  int traits;
  VectorGradient backward = {};
  std::string_view alias = {};
  constexpr bool is(Trait trait) const { return (traits & trait) != 0; }
};

namespace detail {

using enum VectorKind;
using enum VectorGradient::Flow;

constexpr VectorGradient moves(VectorKind kind, Traffic moved, std::array<Traffic, 2> framework = {}) {
  return {.flow = kernel, .kind = kind, .moved = moved, .framework = framework};
}
// The gradient and what was kept of the input; another gradient that goes past the norm comes on top. A framework has
// one kernel for the input, and one that reads the same again for gain and bias.
constexpr VectorGradient norm_gradient(VectorKind norm) { return moves(norm, {2, 1}, {{{2, 1}, {2, 0}}}); }

}  // namespace detail

// In the order of VectorKind: operations, tensors read and written, parameters, traits, what differentiates it.
inline constexpr auto kVectorOps = [] {
  using namespace detail;
  constexpr int kNorm = kByRow | kMeasured | kMapped;
  constexpr int kPlain = kMeasured | kMapped;
  return std::to_array<VectorOp>({
      // square, accumulate, scale, weight
      {rms_norm, "rms_norm", 4, 1, 1, 1, kNorm, norm_gradient(rms_norm)},
      // mean, subtract, square, accumulate, scale, weight, bias
      {layer_norm, "layer_norm", 7, 1, 1, 2, kNorm, norm_gradient(layer_norm)},
      {add, "add", 1, 2, 1, 0, kPlain, {.flow = unchanged}},
      {add_rms_norm, "add_rms_norm", 5, 2, 2, 1, kNorm, norm_gradient(rms_norm)},
      {add_layer_norm, "add_layer_norm", 8, 2, 2, 2, kNorm, norm_gradient(layer_norm)},
      // two multiplies and an add per element of a rotated pair
      {rope, "rope", 3, 1, 1, 0, kPlain, moves(rope, {1, 1})},
      // exponential, add, divide, multiply; backward the gradient, and the input or the result
      {activation, "activation", 4, 1, 1, 0, kPlain, moves(activation, {2, 1}, {{{2, 1}}}), "silu"},
      // and the product with up, whose factors are both read back
      {gated_activation, "gated_activation", 5, 2, 1, 0, kPlain, moves(gated_activation, {3, 2}), "silu_mul"},
      {multiply, "multiply", 1, 2, 1, 0, kPlain, moves(multiply, {3, 2})},
      {mask, "mask", 2, 1, 1, 0, 0, moves(mask, {1, 1})},  // scale and add
      // maximum, subtract, exponential, sum, divide
      {softmax, "softmax", 5, 1, 1, 0, kNorm, moves(softmax, {2, 1}, {{{1, 1}}})},
      // softmax over the experts and the choice of the largest
      {router, "router", 5, 1, 1, 0, 0, moves(router, {2, 1})},
      // weight and accumulate; the gradient of the weights needs the results
      {combine, "combine", 2, 1, 1, 0, 0, {.flow = kernel, .kind = combine, .moved = {1, 1}, .results = true}},
      {sigmoid_gate, "sigmoid_gate", 1, 1, 1, 0, 0, moves(sigmoid_gate, {2, 1})},
      {sampling, "sampling", 5, 1, 0, 0, kMeasured},
      {draw, "draw", 8, 1, 0, 0, 0},  // softmax, a running sum and two compares, of top-k and top-p
      {softcap, "softcap", 1, 1, 1, 0, 0, moves(softcap, {2, 1})},  // tanh
      // compare with the random bits, scale; the mask takes a byte
      {dropout, "dropout", 2, 1, 1, 0, 0, moves(dropout, {1, 1, 1}, {{{1, 1, 1}}})},
      // backward from fp32 probabilities: scaled, then narrowed
      {cross_entropy, "cross_entropy", 5, 1, 1, 0, 0, moves(cross_entropy, {0, 1, 4}, {{{0, 0, 4, 4}, {0, 1, 4}}})},
      {adam, "adam", 12, 1, 1, 0, 0},  // two moments, their corrections, root, quotient, decay
      {modulate, "modulate", 2, 1, 1, 2, kMapped},
      {gate_add, "gate_add", 2, 2, 1, 1, kMapped},
      {select, "select", 1, 2, 1, 0, 0},
      {reduce, "reduce", 1, 1, 0, 0, 0},
      {group_norm, "group_norm", 7, 2, 1, 0, 0},  // as layer_norm
      // its own operations, Vector::operations
      {elementwise, "elementwise", 0, 1, 1, 0, kMeasured, moves(elementwise, {2, 1})},
  });
}();
static_assert(
    [] {
      for (std::size_t i = 0; i < kVectorOps.size(); ++i) {
        if (static_cast<std::size_t>(kVectorOps[i].kind) != i) return false;
      }
      return kVectorOps.size() == static_cast<std::size_t>(VectorKind::elementwise) + 1;
    }(),
    "rows of kVectorOps are in the order of VectorKind");

constexpr const VectorOp& vector_op(VectorKind kind) { return kVectorOps[static_cast<std::size_t>(kind)]; }
constexpr std::string_view name(VectorKind kind) { return vector_op(kind).name; }

}  // namespace llmperf::graph
