// Where the contents of every tensor of a flat program come from: one pass over the nodes in their order. A tensor is
//  * weights: computed from arguments or large constants by moving, slicing and scaling alone;
//  * an activation, whose sources are the products that made it (one; two that were multiplied with each other) or a
//    stream: what a residual addition, a lookup or an argument begins.
// What happened since the source (a norm, an activation function, a softmax, a mask) is kept as marks. An argument is
// an activation from the first time on that it is normalised, or multiplied with weights.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "program/program.h"
#include "program/work.h"

namespace llmperf::program {

// What the extents of a tensor are made of, followed through reshapes, transposes and slices: after [tokens, width] has
// become [batch x heads, head width, tokens], which part of each extent were rows of the product that made it, and
// which were its columns.
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
using Axes = List<Dimension>;

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
// places[i] is the place of operand dimension i in the result; without them the dimensions are its last ones.
Axes broadcast(const Axes& axes, std::span<const std::int64_t> places, std::span<const std::int64_t> dims);

enum class FlowKind : unsigned char { nothing, constant, weight, activation };

inline constexpr std::size_t kMaxSources = 8;  // that a flow keeps

// A product by its node, a stream by ~ the tensor it begins with.
using FlowSource = std::int32_t;

struct Flow {
  FlowKind kind = FlowKind::nothing;
  Axes axes = {};
  List<FlowSource> sources = {};  // of an activation, ascending
  TensorId root = kNone;          // weights: the argument or constant; activation: where its stream began
  int varies_in = -1;             // weights: the loop in which every pass slices its own
  std::uint32_t marks = 0;
  NodeId norm = kNone;         // that normalised it
  NodeId exponential = kNone;  // the last one
  FlowSource gate = kNone;     // of two multiplied sources, the one that went through the activation function

  bool activation() const { return kind == FlowKind::activation; }
  bool has(std::uint32_t mark) const { return (marks & mark) != 0; }
  // The one product that made it, or kNone.
  NodeId product() const { return sources.size() == 1 && sources[0] >= 0 ? sources[0] : kNone; }
};

// What the pass found about a node of class `product`.
struct ProductFlow {
  DotDimensions dims;  // without those that the operands lack
  Integers free[2];    // of the operands; in this order the last dimensions of the result
  Flow operands[2];
  int weights = -1;  // which operand is weights; -1: neither
  double contracted = 1;
  double features = 1;       // free extent of the weights
  std::int64_t experts = 1;  // matrices of the weights, each for rows of its own
  bool bias = false;         // weights were added to the result
  bool residual = false;     // the result was added to a stream
  bool post_norm = false;    // … after a norm
  bool modulates = false;    // the result was spread over the tokens of another tensor
  bool ranked = false;       // the result was sorted
  std::int64_t chosen = 0;   // … and so many of it were kept
};

// softmax(Q K^T) V: two products, or one node of a library (then scores == values).
struct AttentionFlow {
  NodeId scores = kNone;
  NodeId values = kNone;
  Flow queries, keys, value_operand;
  Integers batch, query_free, contracted;  // positions in queries
  Integers key_batch, key_free;            // … in keys
  std::int64_t value_width = 0;            // of a head
  std::uint32_t marks = 0;                 // of the weights of the values
};

// Rows of a table of weights by index.
struct Lookup {
  NodeId node = kNone;
  TensorId result = kNone;
  TensorId table = kNone;  // the root
  std::int64_t rows = 0;
  std::int64_t width = 0;
};

struct Dataflow {
  List<Flow> flows;  // by tensor
  std::map<NodeId, ProductFlow> products;
  std::vector<AttentionFlow> attentions;
  std::vector<Lookup> lookups;
  std::map<TensorId, std::int64_t> added_tables;  // weights added to a stream that no product made, and their rows
  std::set<TensorId> joined;                      // streams that were added to another one, which goes on
};

Dataflow follow(const Program& program);

}  // namespace llmperf::program
