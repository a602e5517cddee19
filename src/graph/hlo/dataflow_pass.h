// Internal to dataflow*.cpp: the pass over the nodes.
#pragma once

#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "graph/hlo/dataflow.h"

namespace llmperf::graph::hlo {

class DataflowPass {
 public:
  explicit DataflowPass(const Program& program);
  Dataflow run();

 private:
  // ---- dataflow.cpp: what only moves elements
  void visit(NodeId id, const Node& node);
  void structural(const Node& node, std::string_view op);
  void broadcast(const Node& node);
  void slice(NodeId id, const Node& node, std::string_view op);
  void update(const Node& node, std::string_view op);
  void concatenate(const Node& node);
  void pass_through(const Node& node);
  // A value of the program: of an argument, of a loop's argument, of an op seen before.
  const Flow& raw(TensorId tensor);
  // The same, of an argument that is known to be no weights as the stream it is.
  Flow flow(TensorId tensor);
  void set(TensorId tensor, Flow flow);
  Flow stream(TensorId tensor, TensorId root) const;
  const std::vector<std::int64_t>& dims(TensorId tensor) const { return program_.type(tensor).dims; }

  // ---- dataflow_elementwise.cpp
  void elementwise(NodeId id, const Node& node, std::string_view op);
  void combine(NodeId id, std::string_view op, Flow& result, const Flow& other, bool& residual);
  bool beside(const Flow& result, const Flow& other) const;
  void combine_weights(std::string_view op, Flow& result, const Flow& other, bool predicate);
  Flow residual_stream(const Node& node, const std::vector<Flow>& operands, std::size_t principal);
  void merge_constants(NodeId id, const Node& node, std::string_view op, std::vector<Flow>& operands);

  // ---- dataflow_compute.cpp: reductions, norms and products
  void reduce(const Node& node);
  void normalization(NodeId id, const Node& node);
  void sort(const Node& node);
  bool library_function(NodeId id, const Node& node);
  void product(NodeId id, const Node& node);
  void attention(NodeId id, const Node& node);
  bool find_attention(NodeId id, const ProductFlow& product, Flow& result);

  const Program& program_;
  Dataflow result_;
  std::vector<bool> known_;        // by tensor: result_.flows holds it
  std::set<TensorId> active_;      // arguments and constants that are no weights
  std::set<TensorId> changed_;     // arguments of loops that a pass replaces
  std::map<NodeId, int> softmax_;  // exponentials whose results were summed, and over which side of a product
};

// "add" of stablehlo.add, chlo.broadcast_add and vhlo.add_v1.
std::string_view plain_op(const Instruction& instruction);
// Elements that are not repetitions of others.
double distinct(const Flow& flow);

}  // namespace llmperf::graph::hlo
