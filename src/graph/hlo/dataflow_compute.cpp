// Reductions, norms, and products: which operand of a product is weights, and which pairs of products are attention.
#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "graph/hlo/dataflow_pass.h"

namespace llmperf::graph::hlo {
namespace {

using Positions = std::vector<std::int64_t>;

bool contains(const Positions& positions, std::int64_t position) {
  return std::find(positions.begin(), positions.end(), position) != positions.end();
}

// Both lists as long as the shorter, without positions that the operands lack.
void keep_valid(const Type& lhs_type, Positions& lhs, const Type& rhs_type, Positions& rhs) {
  Positions left;
  Positions right;
  for (std::size_t i = 0; i < std::min(lhs.size(), rhs.size()); ++i) {
    if (lhs[i] < 0 || lhs[i] >= lhs_type.rank() || rhs[i] < 0 || rhs[i] >= rhs_type.rank()) continue;
    left.push_back(lhs[i]);
    right.push_back(rhs[i]);
  }
  lhs = std::move(left);
  rhs = std::move(right);
}

Positions free_of(const Type& type, const Positions& batch, const Positions& contracted) {
  Positions free;
  for (std::int64_t i = 0; i < type.rank(); ++i) {
    if (!contains(batch, i) && !contains(contracted, i)) free.push_back(i);
  }
  return free;
}

double extent_at(const Type& type, const Positions& positions) {
  double product = 1;
  for (const std::int64_t position : positions) {
    product *= static_cast<double>(type.dims[static_cast<std::size_t>(position)]);
  }
  return product;
}

// The op that a reduction applies: "add" …
std::string_view reducer(const Instruction& i) {
  if (const auto applied = i.find("applies")) return applied->substr(applied->find('.') + 1);
  if (i.regions.empty() || i.regions[0].body.empty()) return {};
  return i.regions[0].body[0].op();
}

// The side of the axes of these dimensions, when all have the same; -1 otherwise.
int common_side(const Flow& flow, const Positions& positions) {
  int side = -1;
  for (const std::int64_t position : positions) {
    if (position < 0 || static_cast<std::size_t>(position) >= flow.axes.size()) return -1;
    for (const Axis& axis : flow.axes[static_cast<std::size_t>(position)]) {
      if (axis.side < 0 || (side >= 0 && axis.side != side)) return -1;
      side = axis.side;
    }
  }
  return side;
}

}  // namespace

void DataflowPass::reduce(const Node& node) {
  const std::size_t inputs = std::max<std::size_t>(1, node.operands.size() / 2);
  const std::string_view op = reducer(*node.instruction);
  Positions reduced;
  if (const auto text = node.instruction->find("dimensions")) reduced = integers(*text);
  for (std::size_t n = 0; n < node.results.size() && n < inputs && n < node.operands.size(); ++n) {
    Flow value = flow(node.operands[n]);
    if (op == "add" && value.exponential != kNone) softmax_.emplace(value.exponential, common_side(value, reduced));
    Axes kept;
    for (std::size_t d = 0; d < value.axes.size(); ++d) {
      if (!contains(reduced, static_cast<std::int64_t>(d))) kept.push_back(value.axes[d]);
    }
    value.axes = std::move(kept);
    value.marks &= ~kPower;
    if (op == "add") value.marks |= kSummed;
    set(node.results[n], std::move(value));
  }
}

void DataflowPass::normalization(NodeId id, const Node& node) {
  pass_through(node);
  if (node.operands.empty()) return;
  Flow value = flow(node.operands[0]);
  if (value.kind == FlowKind::weight) {
    active_.insert(value.root);
    value = flow(node.operands[0]);
  }
  value.norm = id;
  // "rms_norm" and its kin do not subtract a mean.
  if (to_lower(node.instruction->symbol).find("rms") == std::string::npos) value.marks |= kCentred;
  value.axes = reshaped(value.axes, dims(node.results[0]));
  set(node.results[0], std::move(value));
}

void DataflowPass::sort(const Node& node) {
  for (std::size_t n = 0; n < node.results.size(); ++n) {
    if (node.operands.empty()) return;
    const TensorId from = node.operands[std::min(n, node.operands.size() - 1)];
    const Flow key = flow(node.operands[0]);
    Flow value = key;
    const auto product = result_.products.find(key.product());
    if (product != result_.products.end()) {
      product->second.ranked = true;
      const Positions& before = dims(from);
      const Positions& after = dims(node.results[n]);
      if (!after.empty() && !before.empty() && after.back() < before.back()) product->second.chosen = after.back();
    }
    value.marks |= kRanked;
    value.axes = resized(value.axes, dims(node.results[n]));
    set(node.results[n], std::move(value));
  }
}

// Custom calls that are known by the name of their target: norms, softmax, activation functions.
bool DataflowPass::library_function(NodeId id, const Node& node) {
  const OpClass op_class = node.traits.op_class;
  if (node.instruction->symbol.empty() || node.operands.empty()) return false;
  if (op_class == OpClass::attention || op_class == OpClass::product || op_class == OpClass::normalization)
    return false;
  const std::string target = to_lower(node.instruction->symbol);
  const auto named = [&](std::string_view part) { return target.find(part) != std::string::npos; };
  if (named("layer_norm") || named("layernorm") || named("rms_norm") || named("rmsnorm")) {
    normalization(id, node);
    return true;
  }
  std::uint32_t marks = 0;
  if (named("gelu")) {
    const bool tanh = std::any_of(node.instruction->attributes.begin(), node.instruction->attributes.end(),
                                  [](const Attribute& a) { return a.text.find("\"tanh\"") != std::string_view::npos; });
    marks = tanh || named("tanh") ? kTanh | kPower : kErf;
  } else if (named("erf")) {
    marks = kErf;
  } else if (named("silu") || named("swish")) {
    marks = kLogistic;
  } else if (named("relu")) {
    marks = kRectified;
  } else if (!named("softmax")) {
    return false;
  }
  pass_through(node);
  Flow value = flow(node.operands[0]);
  value.marks |= marks;
  if (marks == 0) {
    value.exponential = id;
    softmax_.emplace(id,
                     value.axes.empty() ? -1 : common_side(value, {static_cast<std::int64_t>(value.axes.size()) - 1}));
  }
  if (value.axes.size() != dims(node.results[0]).size()) value.axes = reshaped(value.axes, dims(node.results[0]));
  set(node.results[0], std::move(value));
  return true;
}

void DataflowPass::product(NodeId id, const Node& node) {
  const TensorId to = node.results[0];
  if (node.operands.size() < 2) return pass_through(node);
  const Type& lhs = program_.type(node.operands[0]);
  const Type& rhs = program_.type(node.operands[1]);
  ProductFlow p;
  p.dims = dot_dimensions(*node.instruction, lhs, rhs);
  keep_valid(lhs, p.dims.lhs_batch, rhs, p.dims.rhs_batch);
  keep_valid(lhs, p.dims.lhs_contracted, rhs, p.dims.rhs_contracted);
  p.lhs_free = free_of(lhs, p.dims.lhs_batch, p.dims.lhs_contracted);
  p.rhs_free = free_of(rhs, p.dims.rhs_batch, p.dims.rhs_contracted);
  if (plain_op(*node.instruction) == "ragged_dot" && rhs.rank() == 3) {  // [rows, k] by [experts, k, n]
    p.rhs_free = {2};
    p.experts = rhs.dims[0];
  }
  p.contracted = extent_at(lhs, p.dims.lhs_contracted);
  p.operands[0] = flow(node.operands[0]);
  p.operands[1] = flow(node.operands[1]);
  const bool passive[2] = {!p.operands[0].activation(), !p.operands[1].activation()};
  if (passive[0] && passive[1]) {
    // Of two arguments the second is taken to be the weights, unless only the first is an argument of the program.
    const auto argument = [&](const Flow& f) { return f.root != kNone && program_.tensor(f.root).node == kNone; };
    p.weights = !argument(p.operands[0]) && argument(p.operands[1]) ? 0 : 1;
    Flow& active = p.operands[1 - p.weights];
    if (active.root != kNone) active_.insert(active.root);
    active = flow(node.operands[static_cast<std::size_t>(1 - p.weights)]);
    if (!active.activation()) {
      active.kind = FlowKind::activation;
      active.sources = {~node.operands[static_cast<std::size_t>(1 - p.weights)]};
    }
  } else if (passive[0] != passive[1]) {
    p.weights = passive[0] ? 0 : 1;
  }
  const Type& weights = p.weights == 0 ? lhs : rhs;
  if (p.weights >= 0) p.features = extent_at(weights, p.weights == 0 ? p.lhs_free : p.rhs_free);
  if (p.weights >= 0 && p.experts == 1) {
    p.experts = static_cast<std::int64_t>(extent_at(weights, p.weights == 0 ? p.dims.lhs_batch : p.dims.rhs_batch));
  }
  p.bias = node.operands.size() > 2 && raw(node.operands[2]).kind == FlowKind::weight;

  Flow value;
  value.kind = FlowKind::activation;
  value.sources = {id};
  value.root = p.operands[p.weights == 0 ? 1 : 0].root;
  const auto append = [&](const Flow& from, const Positions& positions, int side, int operand) {
    for (const std::int64_t position : positions) {
      Dimension dimension = static_cast<std::size_t>(position) < from.axes.size()
                                ? from.axes[static_cast<std::size_t>(position)]
                                : Dimension{};
      for (Axis& axis : dimension) {
        axis.side = side;
        if (p.weights >= 0) axis.kind = operand == p.weights ? AxisKind::feature : AxisKind::row;
      }
      value.axes.push_back(std::move(dimension));
    }
  };
  const int batch_from = p.weights == 0 || (p.weights < 0 && has_repeats(p.operands[0].axes)) ? 1 : 0;
  append(p.operands[batch_from], batch_from == 0 ? p.dims.lhs_batch : p.dims.rhs_batch, -1, batch_from);
  append(p.operands[0], p.lhs_free, 0, 0);
  append(p.operands[1], p.rhs_free, 1, 1);
  find_attention(id, p, value);
  result_.products.emplace(id, std::move(p));
  set(to, std::move(value));
}

// Whether one operand is a softmax over the free dimension of another product, which is contracted here.
bool DataflowPass::find_attention(NodeId id, const ProductFlow& p, Flow& result) {
  for (int i = 0; i < 2; ++i) {
    const Flow& weights = p.operands[i];
    const NodeId scores = weights.product();
    if (scores == kNone || weights.exponential < scores) continue;
    const auto softmax = softmax_.find(weights.exponential);
    const auto found = result_.products.find(scores);
    const int side = common_side(weights, i == 0 ? p.dims.lhs_contracted : p.dims.rhs_contracted);
    if (found == result_.products.end() || softmax == softmax_.end() || side < 0 || softmax->second != side) continue;
    const ProductFlow& s = found->second;
    if (s.weights >= 0 && s.dims.lhs_batch.empty()) continue;  // a router
    AttentionFlow a;
    a.scores = scores;
    a.values = id;
    a.keys = s.operands[side];
    a.queries = s.operands[1 - side];
    a.value_operand = p.operands[1 - i];
    a.batch = side == 0 ? s.dims.rhs_batch : s.dims.lhs_batch;
    a.query_free = side == 0 ? s.rhs_free : s.lhs_free;
    a.key_batch = side == 0 ? s.dims.lhs_batch : s.dims.rhs_batch;
    a.key_free = side == 0 ? s.lhs_free : s.rhs_free;
    a.value_width = static_cast<std::int64_t>(extent_at(
        program_.type(program_.node(id).operands[static_cast<std::size_t>(1 - i)]), i == 0 ? p.rhs_free : p.lhs_free));
    a.contracted = side == 0 ? s.dims.rhs_contracted : s.dims.lhs_contracted;
    a.marks = weights.marks;
    result.root = a.queries.root;
    result_.attentions.push_back(std::move(a));
    return true;
  }
  return false;
}

// softmax(Q K^T) V in one node; queries, keys and values are its first operands.
void DataflowPass::attention(NodeId id, const Node& node) {
  pass_through(node);
  if (node.operands.size() < 3) return;
  AttentionFlow a;
  a.scores = a.values = id;
  Flow* const operands[] = {&a.queries, &a.keys, &a.value_operand};
  for (std::size_t n = 0; n < 3; ++n) {
    Flow value = flow(node.operands[n]);
    if (value.kind == FlowKind::weight) {
      active_.insert(value.root);
      value = flow(node.operands[n]);
    }
    *operands[n] = std::move(value);
  }
  const std::int64_t rank = program_.type(node.operands[0]).rank();
  for (std::int64_t d = 0; d + 1 < rank; ++d) a.batch.push_back(d);
  if (rank > 0) a.contracted = {rank - 1};
  if (!dims(node.operands[2]).empty()) a.value_width = dims(node.operands[2]).back();
  Flow value;
  value.kind = FlowKind::activation;
  value.sources = {id};
  value.root = a.queries.root;
  // Libraries may swap heads and tokens.
  Axes axes = a.queries.axes;
  for (const std::int64_t dim : dims(node.results[0])) {
    const auto same = std::find_if(axes.begin(), axes.end(), [&](const Dimension& d) { return extent(d) == dim; });
    value.axes.push_back(same == axes.end() ? Dimension{} : *same);
    if (same != axes.end()) axes.erase(same);
  }
  result_.attentions.push_back(std::move(a));
  set(node.results[0], std::move(value));
}

}  // namespace llmperf::graph::hlo
