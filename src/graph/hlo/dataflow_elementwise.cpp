// Element-wise ops: which operand goes on, and what the others did to it. Statistics of a tensor (a mean, the root of a
// sum of squares) have its source but fewer distinct elements; that is how a norm is told from a product of two
// tensors.
#include <algorithm>
#include <limits>
#include <utility>

#include "graph/hlo/dataflow_pass.h"

namespace llmperf::graph::hlo {
namespace {

struct MarkingOp {
  std::string_view op;
  std::uint32_t mark;
};
constexpr MarkingOp kMarkingOps[] = {{"logistic", kLogistic},
                                     {"tanh", kTanh},
                                     {"erf", kErf},
                                     {"erfc", kErf},
                                     {"rsqrt", kRoot},
                                     {"sqrt", kRoot},
                                     {"power", kRoot},
                                     {"cosine", kTrigonometric},
                                     {"sine", kTrigonometric},
                                     {"clamp", kClamped},
                                     {"exponential", kExponential}};

void mark(std::string_view op, Flow& flow) {
  if ((op == "square" || op == "power") && !flow.has(kActivationMarks | kSummed)) flow.marks |= kPower;
  for (const MarkingOp& known : kMarkingOps) {
    if (known.op == op && (known.mark != kRoot || flow.has(kSummed))) flow.marks |= known.mark;
  }
}

bool adds(std::string_view op) { return op == "add" || op == "subtract" || op == "add_any"; }
bool multiplies(std::string_view op) { return op == "multiply" || op == "divide"; }

// Whether `mask` differs along both free dimensions of the product that made `scores`.
bool masks(const Flow& scores, const Flow& mask) {
  bool along[2] = {false, false};
  for (std::size_t i = 0; i < scores.axes.size() && i < mask.axes.size(); ++i) {
    const bool distinct = std::any_of(mask.axes[i].begin(), mask.axes[i].end(),
                                      [](const Axis& a) { return a.kind != AxisKind::repeated; });
    for (const Axis& axis : scores.axes[i]) {
      if (axis.side >= 0) along[axis.side] = along[axis.side] || distinct;
    }
  }
  return along[0] && along[1];
}

void add_sources(Flow& result, const Flow& other) {
  for (const FlowSource source : other.sources) {
    const bool known = std::find(result.sources.begin(), result.sources.end(), source) != result.sources.end();
    if (!known && result.sources.size() < kMaxSources) result.sources.push_back(source);
  }
  std::sort(result.sources.begin(), result.sources.end());
}

}  // namespace

void DataflowPass::elementwise(NodeId id, const Node& node, std::string_view op) {
  if (node.operands.empty()) return structural(node, op);
  const TensorId to = node.results[0];
  const std::vector<std::int64_t>& extents = dims(to);
  std::vector<Flow> operands;
  for (const TensorId operand : node.operands) {
    Flow from = flow(operand);
    if (from.axes.size() != extents.size()) {  // a scalar, or an implicit broadcast
      std::vector<std::int64_t> places;
      const auto rank = static_cast<std::int64_t>(from.axes.size());
      for (std::int64_t i = 0; i < rank; ++i) places.push_back(static_cast<std::int64_t>(extents.size()) - rank + i);
      from.axes = hlo::broadcast(from.axes, places, extents);
    }
    operands.push_back(std::move(from));
  }
  // The predicate of a selection is not what it selects from.
  const std::size_t first = op == "select" && operands.size() == 3 ? 1 : 0;
  std::size_t principal = operands.size();
  // Products of two activations before those with weights, and among them before adapters of low rank; then streams.
  const auto rank = [&](const Flow& f) {
    const auto product = result_.products.find(f.product());
    if (product == result_.products.end()) return f.sources.empty() || f.sources[0] < 0 ? 0.0 : 1.0;
    return product->second.weights < 0 ? std::numeric_limits<double>::infinity() : 1 + product->second.contracted;
  };
  const auto better = [&](const Flow& a, const Flow& b) {
    const double of_a = distinct(a);
    const double of_b = distinct(b);
    if (of_a != of_b) return of_a > of_b;
    return rank(a) > rank(b);
  };
  for (std::size_t i = first; i < operands.size(); ++i) {
    if (!operands[i].activation()) continue;
    if (principal == operands.size() || better(operands[i], operands[principal])) principal = i;
  }
  if (principal == operands.size()) return merge_constants(id, node, op, operands);

  Flow result = operands[principal];
  const std::uint32_t before = result.marks;
  bool residual = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i == principal) continue;
    if (operands[i].activation() && i >= first) {
      combine(id, op, result, operands[i], residual);
    } else {
      combine_weights(op, result, operands[i], i < first);
    }
  }
  if (residual) return set(to, residual_stream(node, operands, principal));
  mark(op, result);
  // Rotations by complex numbers.
  if (op == "multiply" && program_.type(to).element.kind == ElementClass::complex) result.marks |= kRotated;
  // With a constant, and not to find the largest score.
  const bool alone = std::all_of(operands.begin(), operands.end(),
                                 [&](const Flow& f) { return !f.activation() || f.sources == result.sources; });
  if (op == "maximum" && alone && !result.has(kExponential) && (before & kSummed) == 0) result.marks |= kRectified;
  if (op == "exponential") result.exponential = id;
  set(to, std::move(result));
}

void DataflowPass::combine(NodeId id, std::string_view op, Flow& result, const Flow& other, bool& residual) {
  const bool full = distinct(other) >= distinct(result);
  if (other.sources == result.sources) {
    const std::uint32_t functions = (result.marks | other.marks) & kActivationMarks;
    if (full && op == "multiply" && functions == 0) result.marks |= kPower;
    if (!full && other.has(kSummed)) {
      if (adds(op)) result.marks |= kCentred;
      if (multiplies(op) && other.has(kRoot)) {
        result.norm = id;
        result.marks &= ~(kPower | kSummed | kRoot);
        result.marks |= other.marks & kCentred;
      }
    }
    // The mean of squares less the square of the mean.
    if (op == "subtract" && result.has(kSummed) && other.has(kSummed)) result.marks |= kCentred;
    result.marks |= other.marks & (kActivationMarks | kRotated | kMasked | (full ? kPower : 0U));
    result.exponential = std::max(result.exponential, other.exponential);
    if (result.norm == kNone) result.norm = other.norm;
    return;
  }
  if (other.has(kTrigonometric)) {
    result.marks |= kRotated;
    return;
  }
  if (full && adds(op)) {
    residual = residual || !beside(result, other);
  } else if (full && multiplies(op)) {
    if (result.gate == kNone) {
      const bool ours = result.has(kActivationMarks);
      const std::vector<FlowSource>& gates = ours || !other.has(kActivationMarks) ? result.sources : other.sources;
      if (ours != other.has(kActivationMarks) && !gates.empty()) result.gate = gates[0];
    }
    add_sources(result, other);
    result.marks |= kMultiplied | (other.marks & (kActivationMarks | kPower));
  } else if (!full) {
    for (const FlowSource source : other.sources) {
      if (const auto product = result_.products.find(source); product != result_.products.end()) {
        product->second.modulates = true;
      }
    }
  }
}

// Whether what is added to the principal operand leaves it what it is: a bias of scores by position (which may be
// looked up, or a product itself), or an adapter of low rank beside a projection.
bool DataflowPass::beside(const Flow& result, const Flow& other) const {
  const auto ours = result_.products.find(result.product());
  if (ours == result_.products.end()) return false;
  const bool streams = other.sources.empty() || other.sources[0] < 0;
  if (ours->second.weights < 0) return !streams || other.root != result.root;
  const auto theirs = result_.products.find(other.product());
  return theirs != result_.products.end() && theirs->second.weights >= 0 &&
         theirs->second.contracted * 4 <= ours->second.contracted &&
         theirs->second.operands[theirs->second.weights == 0 ? 1 : 0].product() != kNone;
}

void DataflowPass::combine_weights(std::string_view op, Flow& result, const Flow& other, bool predicate) {
  if (multiplies(op) && other.has(kTrigonometric)) result.marks |= kRotated;
  if ((predicate || adds(op)) && masks(result, other)) result.marks |= kMasked;
  if (predicate && other.activation() && other.sources == result.sources) result.marks |= kRectified;
  if (op != "add" || other.kind != FlowKind::weight || result.has(kActivationMarks | kMultiplied)) return;
  const NodeId product = result.product();
  if (product != kNone) {
    const auto found = result_.products.find(product);
    // As many elements as a row of the result has, so no mask or table of positions.
    if (found != result_.products.end() && found->second.weights >= 0 && result.norm == kNone &&
        distinct(other) <= static_cast<double>(extent(result.axes, AxisKind::feature))) {
      found->second.bias = true;
    }
  } else if (result.norm == kNone && !result.axes.empty()) {
    const double width = static_cast<double>(extent(result.axes.back()));
    const std::vector<std::int64_t>& table = dims(other.root);
    if (distinct(other) > width && table.size() >= 2) {
      result_.added_tables[other.root] = table[table.size() - 2];
    }
  }
}

// The stream after an addition: of its operands the one that is a stream itself goes on.
Flow DataflowPass::residual_stream(const Node& node, const std::vector<Flow>& operands, std::size_t principal) {
  std::size_t through = principal;
  for (std::size_t i = operands.size(); i-- > 0;) {
    if (operands[i].activation() && !operands[i].sources.empty() && operands[i].sources[0] < 0) through = i;
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Flow& operand = operands[i];
    if (!operand.activation()) continue;
    for (const FlowSource source : operand.sources) {
      if (source < 0) {
        if (i != through) result_.joined.insert(~source);
      } else if (const auto product = result_.products.find(source); product != result_.products.end()) {
        product->second.residual = true;
        product->second.post_norm = operand.norm != kNone;
      }
    }
  }
  const Flow& on = operands[through];
  Flow result;
  result.kind = FlowKind::activation;
  result.sources = {~node.results[0]};
  result.root = on.root;
  result.axes = on.axes;
  return result;
}

// Without an activation among the operands: weights, tables, counters.
void DataflowPass::merge_constants(NodeId id, const Node& node, std::string_view op, std::vector<Flow>& operands) {
  // An argument and its own statistics: it is being normalised, so it is no weight.
  for (const Flow& a : operands) {
    for (const Flow& b : operands) {
      const bool statistic = b.has(kSummed) && (op == "subtract" || (multiplies(op) && b.has(kRoot)));
      if (statistic && a.kind == FlowKind::weight && a.root == b.root && distinct(b) < distinct(a)) {
        active_.insert(a.root);
        return elementwise(id, node, op);
      }
    }
  }
  Flow result = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const Flow& other = operands[i];
    if (other.kind == FlowKind::weight && (result.kind != FlowKind::weight || distinct(other) > distinct(result))) {
      result.root = other.root;
    }
    result.kind = std::max(result.kind, other.kind);
    result.varies_in = std::max(result.varies_in, other.varies_in);
    result.marks |= other.marks;
    for (std::size_t d = 0; d < result.axes.size() && d < other.axes.size(); ++d) {
      const bool repeats = !result.axes[d].empty() && result.axes[d].front().kind == AxisKind::repeated;
      if (repeats) result.axes[d] = other.axes[d];
    }
  }
  mark(op, result);
  if (op == "exponential") result.exponential = id;
  set(node.results[0], std::move(result));
}

}  // namespace llmperf::graph::hlo
