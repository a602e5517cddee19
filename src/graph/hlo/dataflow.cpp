#include "graph/hlo/dataflow.h"

#include <algorithm>
#include <utility>

#include "graph/hlo/dataflow_pass.h"

namespace llmperf::graph::hlo {
namespace {}  // namespace

std::string_view plain_op(const Instruction& instruction) {
  std::string_view op = instruction.op();
  if (instruction.dialect() == "vhlo") op = op.substr(0, op.rfind("_v"));
  if (op.starts_with("broadcast_") && op != "broadcast_in_dim") op.remove_prefix(10);
  return op;
}

double distinct(const Flow& flow) {
  double elements = 1;
  for (const Dimension& dimension : flow.axes) {
    for (const Axis& axis : dimension) {
      if (axis.kind != AxisKind::repeated) elements *= static_cast<double>(axis.extent);
    }
  }
  return elements;
}

DataflowPass::DataflowPass(const Program& program) : program_(program), known_(program.tensors.size(), false) {
  result_.flows.resize(program.tensors.size());
  for (const Loop& loop : program.loops) {
    for (std::size_t i = 0; i < loop.arguments.size(); ++i) {
      if (i >= loop.yielded.size() || loop.yielded[i] != loop.arguments[i]) changed_.insert(loop.arguments[i]);
    }
  }
}

Dataflow DataflowPass::run() {
  for (std::size_t i = 0; i < program_.nodes.size(); ++i) visit(static_cast<NodeId>(i), program_.nodes[i]);
  return std::move(result_);
}

Flow DataflowPass::stream(TensorId tensor, TensorId root) const {
  Flow flow;
  flow.kind = FlowKind::activation;
  flow.sources = {~tensor};
  flow.root = root;
  flow.axes = fresh_axes(dims(tensor), AxisKind::row);
  if (!flow.axes.empty()) {
    for (Axis& axis : flow.axes.back()) axis.kind = AxisKind::feature;
  }
  return flow;
}

const Flow& DataflowPass::raw(TensorId tensor) {
  const auto index = static_cast<std::size_t>(tensor);
  if (known_[index]) return result_.flows[index];
  known_[index] = true;  // first, so that tensors that name each other end
  const Tensor& t = program_.tensor(tensor);
  Flow value;
  if (t.same != kNone && t.same != tensor) {
    const Flow before = flow(t.same);
    if (!changed_.contains(tensor)) {
      value = before;
    } else if (!t.type.tensor() || t.type.element.kind == ElementClass::integer) {
      value.kind = FlowKind::activation;  // a counter
      value.sources = {~tensor};
      value.root = tensor;
      value.axes = fresh_axes(t.type.dims, AxisKind::other);
    } else {
      value = stream(tensor, before.kind == FlowKind::constant || before.root == kNone ? tensor : before.root);
    }
  } else if (t.node == kNone) {
    value.kind = FlowKind::weight;
    value.root = tensor;
    value.axes = fresh_axes(t.type.dims, AxisKind::other);
  }
  result_.flows[index] = std::move(value);
  return result_.flows[index];
}

Flow DataflowPass::flow(TensorId tensor) {
  const Flow& before = raw(tensor);
  if (before.kind != FlowKind::weight || !active_.contains(before.root)) return before;
  Flow value = before;
  value.kind = FlowKind::activation;
  value.sources = {~before.root};
  return value;
}

void DataflowPass::set(TensorId tensor, Flow value) {
  const auto index = static_cast<std::size_t>(tensor);
  const std::vector<std::int64_t>& extents = dims(tensor);
  if (value.axes.size() != extents.size()) value.axes = fresh_axes(extents, AxisKind::other);
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extent(value.axes[d]) != extents[d]) value.axes[d] = fresh_axes({&extents[d], 1}, AxisKind::other)[0];
  }
  result_.flows[index] = std::move(value);
  known_[index] = true;
}

void DataflowPass::visit(NodeId id, const Node& node) {
  if (node.results.empty()) return;
  const std::string_view op = plain_op(*node.instruction);
  // Those that a partition has put in carry the instruction they belong to.
  if (node.traits.op_class == OpClass::collective) return pass_through(node);
  if (library_function(id, node)) return;
  switch (node.traits.op_class) {
    case OpClass::elementwise: return elementwise(id, node, op);
    case OpClass::broadcast: return broadcast(node);
    case OpClass::slice: return slice(id, node, op);
    case OpClass::update: return update(node, op);
    case OpClass::product: return product(id, node);
    case OpClass::attention: return attention(id, node);
    case OpClass::reduce: return reduce(node);
    case OpClass::normalization: return normalization(id, node);
    case OpClass::sort: return sort(node);
    case OpClass::convolution: {
      TensorId root = node.results[0];
      for (const TensorId operand : node.operands) {
        const Flow from = flow(operand);
        if (from.activation()) {
          root = from.root;
          break;
        }
      }
      return set(node.results[0], stream(node.results[0], root));
    }
    default: return structural(node, op);
  }
}

void DataflowPass::structural(const Node& node, std::string_view op) {
  const TensorId to = node.results[0];
  if (op == "constant") {
    Flow value;
    // Large constants are weights that were written into the program.
    const bool large = program_.type(to).elements() > 1;
    value.kind = large ? FlowKind::weight : FlowKind::constant;
    value.root = to;
    value.axes = fresh_axes(dims(to), AxisKind::other);
    return set(to, std::move(value));
  }
  if (node.operands.empty()) return set(to, Flow{FlowKind::constant, fresh_axes(dims(to), AxisKind::other)});
  if (op == "transpose") {
    Flow value = flow(node.operands[0]);
    const std::vector<std::int64_t> order = integers(*node.instruction, {"dims", "permutation"});
    Axes axes;
    for (const std::int64_t place : order) {
      if (place < 0 || static_cast<std::size_t>(place) >= value.axes.size()) break;
      axes.push_back(value.axes[static_cast<std::size_t>(place)]);
    }
    value.axes = std::move(axes);
    return set(to, std::move(value));
  }
  if (op == "concatenate") return concatenate(node);
  if (op == "pad" || op == "dynamic_pad") {
    Flow value = flow(node.operands[0]);
    value.axes = resized(value.axes, dims(to));
    return set(to, std::move(value));
  }
  pass_through(node);
}

// Reshapes, barriers, annotations, collectives, and what is not understood: a result per operand, else the first
// operand in all results.
void DataflowPass::pass_through(const Node& node) {
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    const TensorId to = node.results[i];
    const std::size_t from = i < node.operands.size() ? i : 0;
    if (from >= node.operands.size()) continue;
    Flow value = flow(node.operands[from]);
    const Type& before = program_.type(node.operands[from]);
    const Type& after = program_.type(to);
    if (before.elements() == after.elements()) {
      value.axes = before.dims == after.dims ? value.axes : reshaped(value.axes, after.dims);
    } else if (before.rank() == after.rank()) {
      value.axes = resized(value.axes, after.dims);
    } else {
      value.axes = fresh_axes(after.dims, AxisKind::other);
    }
    set(to, std::move(value));
  }
}

void DataflowPass::concatenate(const Node& node) {
  std::vector<Flow> operands;
  for (const TensorId operand : node.operands) operands.push_back(flow(operand));
  // Keys just made go on, not the cache they are appended to.
  const auto rank = [](const Flow& f) { return !f.activation() ? 0 : f.sources.empty() || f.sources[0] < 0 ? 1 : 2; };
  std::size_t best = 0;
  for (std::size_t i = 1; i < operands.size(); ++i) {
    if (rank(operands[i]) > rank(operands[best])) best = i;
  }
  Flow value = operands[best];
  for (const Flow& other : operands) {
    if (rank(other) < 2 || rank(value) < 2) continue;
    for (const FlowSource source : other.sources) {
      const bool known = std::find(value.sources.begin(), value.sources.end(), source) != value.sources.end();
      if (!known && value.sources.size() < kMaxSources) value.sources.push_back(source);
    }
    value.marks |= other.marks & (kRotated | kTrigonometric);
  }
  std::sort(value.sources.begin(), value.sources.end());
  value.axes = resized(value.axes, dims(node.results[0]));
  set(node.results[0], std::move(value));
}

void DataflowPass::broadcast(const Node& node) {
  const TensorId to = node.results[0];
  const std::vector<std::int64_t>& extents = dims(to);
  const std::string_view op = plain_op(*node.instruction);
  if (node.operands.empty() || op == "dynamic_iota" || op == "constant_like") {
    // An iota: distinct along its dimension, repeated along the others.
    Flow value{FlowKind::constant, fresh_axes(extents, AxisKind::repeated)};
    const std::vector<std::int64_t> along = integers(*node.instruction, {"dim", "iota_dimension"});
    if (!along.empty() && along[0] >= 0 && static_cast<std::size_t>(along[0]) < extents.size()) {
      for (Axis& axis : value.axes[static_cast<std::size_t>(along[0])]) axis.kind = AxisKind::other;
    }
    return set(to, std::move(value));
  }
  Flow value = flow(node.operands[0]);
  std::vector<std::int64_t> places = integers(*node.instruction, {"dims", "broadcast_dimensions"});
  if (places.size() != value.axes.size()) {  // a broadcast puts its dimensions in front
    places.clear();
    const auto rank = static_cast<std::int64_t>(value.axes.size());
    for (std::int64_t i = 0; i < rank; ++i) places.push_back(static_cast<std::int64_t>(extents.size()) - rank + i);
  }
  value.axes = hlo::broadcast(value.axes, places, extents);
  set(to, std::move(value));
}

void DataflowPass::slice(NodeId id, const Node& node, std::string_view op) {
  const TensorId to = node.results[0];
  if (node.operands.empty()) return;
  const TensorId from = node.operands[0];
  Flow value = flow(from);
  const std::vector<std::int64_t>& before = dims(from);
  const std::vector<std::int64_t>& after = dims(to);
  bool by_data = false;  // where it is taken from is computed
  for (std::size_t i = 1; i < node.operands.size(); ++i) {
    by_data = by_data || flow(node.operands[i]).kind != FlowKind::constant;
  }
  const bool gathers = op != "slice" && op != "dynamic_slice" && op != "real_dynamic_slice";
  const bool picks_layer =
      node.loop >= 0 && !before.empty() && program_.loops[static_cast<std::size_t>(node.loop)].trips == before[0];
  const bool rows = before.size() == 2 && !after.empty() && after.back() == before[1];
  if (value.kind == FlowKind::weight && by_data && !picks_layer && rows && (gathers || after[0] == 1)) {
    result_.lookups.push_back({id, to, value.root, before[0], before[1]});
    return set(to, stream(to, to));
  }
  if (value.kind == FlowKind::weight && by_data && node.loop >= 0) value.varies_in = node.loop;
  if (value.has(kRanked) && !after.empty() && !before.empty() && after.back() < before.back()) {
    if (const auto product = result_.products.find(value.product()); product != result_.products.end()) {
      product->second.chosen = after.back();
    }
  }
  if (before.size() == after.size()) {
    value.axes = resized(value.axes, after);
  } else {
    Axes axes = fresh_axes(after, AxisKind::row);
    if (!after.empty() && !before.empty() && after.back() == before.back()) axes.back() = value.axes.back();
    value.axes = std::move(axes);
  }
  set(to, std::move(value));
}

void DataflowPass::update(const Node& node, std::string_view op) {
  const TensorId to = node.results[0];
  const std::size_t written = op == "scatter" ? 2 : 1;
  if (node.operands.size() <= written) return pass_through(node);
  const Flow whole = flow(node.operands[0]);
  const Flow part = flow(node.operands[written]);
  const bool new_part = part.activation() && (!whole.activation() || whole.sources.empty() || whole.sources[0] < 0);
  Flow value = new_part ? part : whole;
  value.axes = resized(value.axes, dims(to));
  set(to, std::move(value));
}

Dataflow follow(const Program& program) { return DataflowPass(program).run(); }

}  // namespace llmperf::graph::hlo
