// Internal to blocks*.cpp: from the dataflow to units (one attention, one feed-forward), from units to blocks.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "graph/hlo/blocks.h"
#include "graph/hlo/dataflow.h"

namespace llmperf::graph::hlo {

struct Unit {
  NodeId first = kNone;                // in the order of the program
  TensorId stream = kNone;             // where the tokens began
  std::vector<FlowSource> input = {};  // what its first products read
  std::vector<NodeId> nodes = {};      // products, by node
  std::vector<NodeId> norms = {};      // that were applied to its inputs
  int post_norms = 0;                  // … to its result
  bool centred = false;                // their means were subtracted
  std::int64_t hidden = 0;             // width of what it reads
  std::int64_t layers = 1;
  std::int64_t passes = 1;
  std::optional<AttentionShape> attention = {};  // either
  std::optional<FeedForwardShape> feed_forward = {};
  bool over_outer_axis = false;  // attention along an axis that lies outside another one of its rows
};

class BlockRecovery {
 public:
  explicit BlockRecovery(const Program& program);
  Blocks run();

 private:
  // ---- blocks_attention.cpp
  void find_attentions();
  void add_attention(const AttentionFlow& a);
  AttentionShape shape_of(const AttentionFlow& a) const;
  bool is_cross(const AttentionFlow& a) const;
  void add_projections(const AttentionFlow& a, bool cross, Unit& unit);
  void adopt_projections(const AttentionFlow& a, Unit& unit);
  void add_output(const AttentionFlow& a, bool cross, Unit& unit);

  // ---- blocks_feed_forward.cpp
  void find_feed_forwards();
  void add_feed_forward(NodeId down, const ProductFlow& product);
  void find_head();

  // ---- blocks.cpp
  void describe_input(const ProductFlow& product, Unit& unit) const;
  void assign(NodeId node, Role role, Unit& unit);
  void name_frames();
  void group();
  void count_layers(Unit& unit) const;
  const ProductFlow* product(NodeId node) const;
  Role role(NodeId node) const { return blocks_.roles[static_cast<std::size_t>(node)]; }

  const Program& program_;
  Dataflow flow_;
  std::map<FlowSource, std::vector<NodeId>> readers_;  // products with weights that read what a source made
  Blocks blocks_;
  std::vector<Unit> units_;
};

// What a product with weights reads beside them.
const Flow& input_of(const ProductFlow& product);

}  // namespace llmperf::graph::hlo
