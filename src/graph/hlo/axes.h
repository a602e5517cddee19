// What the extents of a tensor are made of, followed through reshapes, transposes and slices: after [tokens, width] has
// become [batch x heads, head width, tokens], which part of each extent were rows of the product that made it, and
// which were its columns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace llmperf::graph::hlo {

enum class AxisKind : unsigned char {
  row,       // of the activation that was multiplied: sequences, tokens
  feature,   // of the weights it was multiplied with: heads, width of a head
  repeated,  // by a broadcast: the same elements again
  other
};

struct Axis {
  std::int64_t extent = 1;
  AxisKind kind = AxisKind::other;
  // Of the last product of two activations, the operand it comes from: 0 left, 1 right; -1: of both, or of neither.
  int side = -1;
  // Where it lies in the tensor it was cut from; of two parts of one axis the outer comes first.
  double at = 0;
  double span = 1;
};

// One dimension: its axes, outer ones first, none of them of extent 1. Their product is the extent.
using Dimension = std::vector<Axis>;
using Axes = std::vector<Dimension>;

// Of extents; at most 2^62, however hostile the program.
std::int64_t times(std::int64_t a, std::int64_t b);
std::int64_t extent(const Dimension& dimension);
std::int64_t extent(const Axes& axes);
// The product of the axes of that kind.
std::int64_t extent(const Dimension& dimension, AxisKind kind);
std::int64_t extent(const Axes& axes, AxisKind kind);
bool has_repeats(const Axes& axes);

// One axis for each extent.
Axes fresh_axes(std::span<const std::int64_t> dims, AxisKind kind);
// What a reshape makes of them. Extents that do not line up become axes of the kind that most of them were.
Axes reshaped(const Axes& axes, std::span<const std::int64_t> dims);
// Where a slice, a concatenation or a padding has changed extents, the outermost axis has changed.
Axes resized(const Axes& axes, std::span<const std::int64_t> dims);
// dims[i] is the place of operand dimension i in the result.
Axes broadcast(const Axes& axes, std::span<const std::int64_t> places, std::span<const std::int64_t> dims);

}  // namespace llmperf::graph::hlo
