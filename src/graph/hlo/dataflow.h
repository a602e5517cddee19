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
#include <vector>

#include "graph/hlo/axes.h"
#include "graph/hlo/dot.h"
#include "graph/hlo/program.h"

namespace llmperf::graph::hlo {

enum class FlowKind : unsigned char { nothing, constant, weight, activation };

enum Mark : std::uint32_t {
  kLogistic = 1U << 0U,
  kTanh = 1U << 1U,
  kErf = 1U << 2U,
  kRectified = 1U << 3U,  // maximum with a constant
  kExponential = 1U << 4U,
  kClamped = 1U << 5U,
  kPower = 1U << 6U,       // multiplied with itself, before any of the above
  kMultiplied = 1U << 7U,  // two sources with each other
  kCentred = 1U << 8U,     // its mean subtracted
  kSummed = 1U << 9U,      // reduced: a sum of the source's elements
  kRoot = 1U << 10U,       // a root of that
  kRotated = 1U << 11U,    // by a table of sines and cosines
  kTrigonometric = 1U << 12U,
  kMasked = 1U << 13U,  // by a mask over both free dimensions of a product
  kRanked = 1U << 14U   // sorted
};
inline constexpr std::size_t kMaxSources = 8;  // that a flow keeps
inline constexpr std::uint32_t kActivationMarks = kLogistic | kTanh | kErf | kRectified | kExponential | kClamped;

// A product by its node, a stream by ~ the tensor it begins with.
using FlowSource = std::int32_t;

struct Flow {
  FlowKind kind = FlowKind::nothing;
  Axes axes = {};
  std::vector<FlowSource> sources = {};  // of an activation, ascending
  TensorId root = kNone;                 // weights: the argument or constant; activation: where its stream began
  int varies_in = -1;                    // weights: the loop in which every pass slices its own
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
  DotDimensions dims;                            // without those that the operands lack
  std::vector<std::int64_t> lhs_free, rhs_free;  // in this order the last dimensions of the result
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
  std::vector<std::int64_t> batch, query_free, contracted;  // positions in queries
  std::vector<std::int64_t> key_batch, key_free;            // … in keys
  std::int64_t value_width = 0;                             // of a head
  std::uint32_t marks = 0;                                  // of the weights of the values
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
  std::vector<Flow> flows;  // by tensor
  std::map<NodeId, ProductFlow> products;
  std::vector<AttentionFlow> attentions;
  std::vector<Lookup> lookups;
  std::map<TensorId, std::int64_t> added_tables;  // weights added to a stream that no product made, and their rows
  std::set<TensorId> joined;                      // streams that were added to another one, which goes on
};

Dataflow follow(const Program& program);

}  // namespace llmperf::graph::hlo
