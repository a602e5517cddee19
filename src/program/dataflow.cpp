#include "program/dataflow.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "program/factors.h"
#include "program/work.h"

namespace llmperf::program {
namespace {

bool is_repeat(const Axis& axis) { return axis.kind == AxisKind::repeated; }

Dimension whole(std::int64_t extent, AxisKind kind, double at, double span) {
  if (extent == 1) return {};
  return {Axis{extent, kind, -1, at, span}};
}

// Of extents that cannot be told apart.
Dimension merged(std::int64_t extent, const Axes& axes) {
  for (const Dimension& dimension : axes) {
    for (const Axis& axis : dimension) {
      if (!is_repeat(axis)) return whole(extent, axis.kind, axis.at, axis.span);
    }
  }
  return whole(extent, AxisKind::other, 0, 1);
}

}  // namespace

std::int64_t times(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  return b > 0 && a > kMost / b ? kMost : a * b;
}

std::int64_t extent(const Dimension& dimension) {
  std::int64_t product = 1;
  for (const Axis& axis : dimension) product = times(product, axis.extent);
  return product;
}

std::int64_t extent(const Dimension& dimension, AxisKind kind) {
  std::int64_t product = 1;
  for (const Axis& axis : dimension) {
    if (axis.kind == kind) product = times(product, axis.extent);
  }
  return product;
}

std::int64_t extent(const Axes& axes) {
  std::int64_t product = 1;
  for (const Dimension& dimension : axes) product = times(product, extent(dimension));
  return product;
}

std::int64_t extent(const Axes& axes, AxisKind kind) {
  std::int64_t product = 1;
  for (const Dimension& dimension : axes) product = times(product, extent(dimension, kind));
  return product;
}

bool has_repeats(const Axes& axes) {
  return std::ranges::any_of(axes, [](const Dimension& d) { return std::ranges::any_of(d, is_repeat); });
}

Axes fresh_axes(std::span<const std::int64_t> dims, AxisKind kind) {
  Axes axes;
  double at = 0;
  for (const std::int64_t dim : dims) axes.push_back(whole(dim, kind, at++, 1));
  return axes;
}

Axes reshaped(const Axes& axes, std::span<const std::int64_t> dims) {
  std::vector<Axis> left;  // the innermost first
  for (auto dimension = axes.rbegin(); dimension != axes.rend(); ++dimension) {
    left.insert(left.end(), dimension->rbegin(), dimension->rend());
  }
  Axes result;
  bool aligned = true;
  for (const std::int64_t dim : dims) {
    Dimension dimension;
    std::int64_t missing = dim;
    while (aligned && missing > 1) {
      if (left.empty() || left.back().extent <= 0) {
        aligned = false;
        break;
      }
      Axis& axis = left.back();
      if (missing % axis.extent == 0) {
        missing /= axis.extent;
        dimension.push_back(axis);
        left.pop_back();
      } else if (axis.extent % missing == 0) {
        Axis outer = axis;
        outer.extent = missing;
        outer.span = axis.span = axis.span / 2;
        axis.extent /= missing;
        axis.at += axis.span;
        dimension.push_back(outer);
        missing = 1;
      } else {
        aligned = false;
      }
    }
    result.push_back(aligned ? std::move(dimension) : merged(dim, axes));
  }
  return result;
}

Axes resized(const Axes& axes, std::span<const std::int64_t> dims) {
  Axes result;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    Dimension dimension = i < axes.size() ? axes[i] : Dimension{};
    const std::int64_t before = extent(dimension);
    if (before != dims[i]) {
      const std::int64_t inner = dimension.empty() ? 1 : before / std::max<std::int64_t>(1, dimension.front().extent);
      const Axis outer =
          dimension.empty() ? Axis{1, AxisKind::other, -1, static_cast<double>(i), 1} : dimension.front();
      if (dimension.empty() || inner <= 0 || dims[i] % inner != 0) {
        dimension = {outer};
        dimension.front().extent = dims[i];
      } else {
        dimension.front().extent = dims[i] / inner;
      }
      if (dimension.front().extent == 1) dimension.erase(dimension.begin());
    }
    result.push_back(std::move(dimension));
  }
  return result;
}

Axes broadcast(const Axes& axes, std::span<const std::int64_t> places, std::span<const std::int64_t> dims) {
  Axes result;
  for (const std::int64_t dim : dims) result.push_back(whole(dim, AxisKind::repeated, 0, 1));
  const bool last = places.size() != axes.size();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t place = last ? dims.size() - axes.size() + i : static_cast<std::size_t>(places[i]);
    if (place < dims.size() && extent(axes[i]) == dims[place]) result[place] = axes[i];
  }
  return result;
}

namespace {

// Both lists as long as the shorter, without positions that the operands lack.
void keep_valid(const Type& lhs, const Type& rhs, Integers (&both)[2]) {
  Integers valid[2];
  for (std::size_t i = 0; i < std::min(both[0].size(), both[1].size()); ++i) {
    if (both[0][i] < 0 || both[0][i] >= lhs.rank() || both[1][i] < 0 || both[1][i] >= rhs.rank()) continue;
    for (std::size_t side = 0; side < 2; ++side) valid[side].push_back(both[side][i]);
  }
  std::swap(both, valid);
}

// The op that a reduction applies: "add" …
std::string_view reducer(const Instruction& i) {
  if (const auto applied = i.find("applies")) return applied->substr(applied->find('.') + 1);
  if (i.regions.empty() || i.regions[0].body.empty()) return {};
  return i.regions[0].body[0].op();
}

// The side of the axes of these dimensions, when all have the same; -1 otherwise.
int common_side(const Flow& flow, const Integers& positions) {
  int side = -1;
  for (const std::int64_t position : positions) {
    if (position < 0 || static_cast<std::size_t>(position) >= flow.axes.size()) return -1;
    for (const Axis& axis : flow.axes[position]) {
      if (axis.side < 0 || (side >= 0 && axis.side != side)) return -1;
      side = axis.side;
    }
  }
  return side;
}

void mark(const Node& node, std::string_view op, Flow& flow) {
  if ((op == "square" || op == "power") && !flow.has(kActivationMarks | kSummed)) flow.marks |= kPower;
  if (node.traits.mark != kRoot || flow.has(kSummed)) flow.marks |= node.traits.mark;
}

bool adds(std::string_view op) { return op == "add" || op == "subtract" || op == "add_any"; }
bool multiplies(std::string_view op) { return op == "multiply" || op == "divide"; }

// Whether `mask` differs along both free dimensions of the product that made `scores`.
bool masks(const Flow& scores, const Flow& mask) {
  bool along[2] = {false, false};
  for (std::size_t i = 0; i < scores.axes.size() && i < mask.axes.size(); ++i) {
    const bool distinct = std::ranges::any_of(mask.axes[i], [](const Axis& a) { return a.kind != AxisKind::repeated; });
    for (const Axis& axis : scores.axes[i]) {
      if (axis.side >= 0) along[axis.side] = along[axis.side] || distinct;
    }
  }
  return along[0] && along[1];
}

void add_sources(Flow& result, const Flow& other) {
  for (const FlowSource source : other.sources) {
    const bool known = contains(result.sources, source);
    if (!known && result.sources.size() < kMaxSources) result.sources.push_back(source);
  }
  std::ranges::sort(result.sources);
}

// Elements that are not repetitions of others.
double distinct(const Flow& flow) {
  double elements = 1;
  for (const Dimension& dimension : flow.axes) {
    for (const Axis& axis : dimension) {
      if (axis.kind != AxisKind::repeated) elements *= static_cast<double>(axis.extent);
    }
  }
  return elements;
}

class DataflowPass {
 public:
  explicit DataflowPass(const Program& program) : program_(program), known_(program.tensors.size(), false) {
    result_.flows.resize(program.tensors.size());
    for (const Loop& loop : program.loops) {
      for (std::size_t i = 0; i < loop.arguments.size(); ++i) {
        if (i >= loop.yielded.size() || loop.yielded[i] != loop.arguments[i]) changed_.insert(loop.arguments[i]);
      }
    }
  }

  Dataflow run() {
    for (std::size_t i = 0; i < program_.nodes.size(); ++i) visit(static_cast<NodeId>(i), program_.nodes[i]);
    return std::move(result_);
  }

 private:
  // --- what only moves elements
  void visit(NodeId id, const Node& node) {
    if (node.results.empty()) return;
    const std::string_view op = plain_op(node.instruction->name);
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

  void structural(const Node& node, std::string_view op) {
    const TensorId to = node.results[0];
    if (op == "constant") {
      // Large constants are weights that were written into the program.
      const bool large = program_.type(to).elements() > 1;
      return set(to, {.kind = large ? FlowKind::weight : FlowKind::constant,
                      .axes = fresh_axes(dims(to), AxisKind::other),
                      .root = to});
    }
    if (node.operands.empty()) return set(to, Flow{FlowKind::constant, fresh_axes(dims(to), AxisKind::other)});
    if (op == "transpose") return broadcast(node);
    if (op == "concatenate") return concatenate(node);
    if (op == "pad" || op == "dynamic_pad") {
      Flow value = flow(node.operands[0]);
      value.axes = resized(value.axes, dims(to));
      return set(to, std::move(value));
    }
    pass_through(node);
  }

  // Of a transposition too: both only place dimensions.
  void broadcast(const Node& node) {
    const TensorId to = node.results[0];
    const Integers& extents = dims(to);
    const std::string_view op = plain_op(node.instruction->name);
    if (node.operands.empty() || op == "dynamic_iota" || op == "constant_like") {
      // An iota: distinct along its dimension, repeated along the others.
      Flow value{FlowKind::constant, fresh_axes(extents, AxisKind::repeated)};
      const Integers along = integers(*node.instruction, {"dim", "iota_dimension"});
      if (!along.empty() && along[0] >= 0 && static_cast<std::size_t>(along[0]) < extents.size()) {
        for (Axis& axis : value.axes[along[0]]) axis.kind = AxisKind::other;
      }
      return set(to, std::move(value));
    }
    Flow value = flow(node.operands[0]);
    const Type* const from[] = {&program_.type(node.operands[0])};
    Integers places;
    if (const auto links = links_of(*node.instruction, node.traits, from, program_.type(to))) {
      places.assign(value.axes.size(), -1);
      for (const Link& link : *links) {
        if (link.at >= 0 && link.at < static_cast<std::int64_t>(places.size())) places[link.at] = link.result;
      }
    }
    value.axes = program::broadcast(value.axes, places, extents);
    set(to, std::move(value));
  }

  void slice(NodeId id, const Node& node, std::string_view op) {
    const TensorId to = node.results[0];
    if (node.operands.empty()) return;
    const TensorId from = node.operands[0];
    Flow value = flow(from);
    const Integers& before = dims(from);
    const Integers& after = dims(to);
    bool by_data = false;  // where it is taken from is computed
    for (std::size_t i = 1; i < node.operands.size(); ++i) {
      by_data = by_data || flow(node.operands[i]).kind != FlowKind::constant;
    }
    const bool gathers = op != "slice" && op != "dynamic_slice" && op != "real_dynamic_slice";
    const bool picks_layer = node.loop >= 0 && !before.empty() && program_.loops[node.loop].trips == before[0];
    const bool rows = before.size() == 2 && !after.empty() && after.back() == before[1];
    if (value.kind == FlowKind::weight && by_data && !picks_layer && rows && (gathers || after[0] == 1)) {
      result_.lookups.push_back({id, to, value.root, before[0], before[1]});
      return set(to, stream(to, to));
    }
    if (value.kind == FlowKind::weight && by_data && node.loop >= 0) value.varies_in = node.loop;
    if (value.has(kRanked) && !after.empty() && !before.empty() && after.back() < before.back()) {
      if (ProductFlow* product = product_of(value.product())) product->chosen = after.back();
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

  void update(const Node& node, std::string_view op) {
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

  void concatenate(const Node& node) {
    List<Flow> operands;
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
      add_sources(value, other);
      value.marks |= other.marks & (kRotated | kTrigonometric);
    }
    value.axes = resized(value.axes, dims(node.results[0]));
    set(node.results[0], std::move(value));
  }

  // Reshapes, barriers, annotations, collectives, and what is not understood: a result per operand, else the first
  // operand in all results.
  void pass_through(const Node& node) {
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

  // A value of the program: of an argument, of a loop's argument, of an op seen before.
  const Flow& raw(TensorId tensor) {
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
        value = {FlowKind::activation, fresh_axes(t.type.dims, AxisKind::other), {~tensor}, tensor};  // a counter
      } else {
        value = stream(tensor, before.kind == FlowKind::constant || before.root == kNone ? tensor : before.root);
      }
    } else if (t.node == kNone) {
      value = {FlowKind::weight, fresh_axes(t.type.dims, AxisKind::other), {}, tensor};
    }
    result_.flows[index] = std::move(value);
    return result_.flows[index];
  }

  // The same, of an argument that is known to be no weights as the stream it is.
  Flow flow(TensorId tensor) {
    const Flow& before = raw(tensor);
    if (before.kind != FlowKind::weight || !active_.contains(before.root)) return before;
    Flow value = before;
    value.kind = FlowKind::activation;
    value.sources = {~before.root};
    return value;
  }

  // The same of what turns out to be no weights.
  Flow active_flow(TensorId tensor) {
    const Flow& before = raw(tensor);
    if (before.kind == FlowKind::weight) active_.insert(before.root);
    return flow(tensor);
  }
  // Null: the source is no product.
  ProductFlow* product_of(FlowSource source) {
    const auto found = result_.products.find(source);
    return found == result_.products.end() ? nullptr : &found->second;
  }
  void set(TensorId tensor, Flow value) {
    const auto index = static_cast<std::size_t>(tensor);
    const Integers& extents = dims(tensor);
    if (value.axes.size() != extents.size()) value.axes = fresh_axes(extents, AxisKind::other);
    for (std::size_t d = 0; d < extents.size(); ++d) {
      if (extent(value.axes[d]) != extents[d]) value.axes[d] = fresh_axes({&extents[d], 1}, AxisKind::other)[0];
    }
    result_.flows[index] = std::move(value);
    known_[index] = true;
  }

  Flow stream(TensorId tensor, TensorId root) const {
    Flow flow{FlowKind::activation, fresh_axes(dims(tensor), AxisKind::row), {~tensor}, root};
    if (!flow.axes.empty()) {
      for (Axis& axis : flow.axes.back()) axis.kind = AxisKind::feature;
    }
    return flow;
  }

  const Integers& dims(TensorId tensor) const { return program_.type(tensor).dims; }

  // Element-wise ops: which operand goes on, and what the others did to it. Statistics of a tensor (a mean, the root of
  // a sum of squares) have its source but fewer distinct elements; that is how a norm is told from a product of two
  // tensors.
  void elementwise(NodeId id, const Node& node, std::string_view op) {
    if (node.operands.empty()) return structural(node, op);
    const TensorId to = node.results[0];
    const Integers& extents = dims(to);
    List<Flow> operands;
    for (const TensorId operand : node.operands) {
      Flow from = flow(operand);
      // A scalar, or an implicit broadcast.
      if (from.axes.size() != extents.size()) from.axes = program::broadcast(from.axes, {}, extents);
      operands.push_back(std::move(from));
    }
    // The predicate of a selection is not what it selects from.
    const std::size_t first = op == "select" && operands.size() == 3 ? 1 : 0;
    std::size_t principal = operands.size();
    // Products of two activations before those with weights, and among them before adapters of low rank; then streams.
    const auto rank = [&](const Flow& f) {
      const ProductFlow* product = product_of(f.product());
      if (product == nullptr) return f.sources.empty() || f.sources[0] < 0 ? 0.0 : 1.0;
      return product->weights < 0 ? std::numeric_limits<double>::infinity() : 1 + product->contracted;
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
    mark(node, op, result);
    // Rotations by complex numbers.
    if (op == "multiply" && program_.type(to).element.kind == ElementClass::complex) result.marks |= kRotated;
    // With a constant, and not to find the largest score.
    const bool alone =
        std::ranges::all_of(operands, [&](const Flow& f) { return !f.activation() || f.sources == result.sources; });
    if (op == "maximum" && alone && !result.has(kExponential) && (before & kSummed) == 0) result.marks |= kRectified;
    if (op == "exponential") result.exponential = id;
    set(to, std::move(result));
  }

  void combine(NodeId id, std::string_view op, Flow& result, const Flow& other, bool& residual) {
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
        const List<FlowSource>& gates = ours || !other.has(kActivationMarks) ? result.sources : other.sources;
        if (ours != other.has(kActivationMarks) && !gates.empty()) result.gate = gates[0];
      }
      add_sources(result, other);
      result.marks |= kMultiplied | (other.marks & (kActivationMarks | kPower));
    } else if (!full) {
      for (const FlowSource source : other.sources) {
        if (ProductFlow* product = product_of(source)) product->modulates = true;
      }
    }
  }

  // Whether what is added to the principal operand leaves it what it is: a bias of scores by position (which may be
  // looked up, or a product itself), or an adapter of low rank beside a projection.
  bool beside(const Flow& result, const Flow& other) {
    const ProductFlow* ours = product_of(result.product());
    if (ours == nullptr) return false;
    const bool streams = other.sources.empty() || other.sources[0] < 0;
    if (ours->weights < 0) return !streams || other.root != result.root;
    const ProductFlow* theirs = product_of(other.product());
    return theirs != nullptr && theirs->weights >= 0 && theirs->contracted * 4 <= ours->contracted &&
           theirs->operands[theirs->weights == 0 ? 1 : 0].product() != kNone;
  }

  void combine_weights(std::string_view op, Flow& result, const Flow& other, bool predicate) {
    if (multiplies(op) && other.has(kTrigonometric)) result.marks |= kRotated;
    if ((predicate || adds(op)) && masks(result, other)) result.marks |= kMasked;
    if (predicate && other.activation() && other.sources == result.sources) result.marks |= kRectified;
    if (op != "add" || other.kind != FlowKind::weight || result.has(kActivationMarks | kMultiplied)) return;
    const NodeId product = result.product();
    if (product != kNone) {
      ProductFlow* found = product_of(product);
      // As many elements as a row of the result has, so no mask or table of positions.
      if (found != nullptr && found->weights >= 0 && result.norm == kNone &&
          distinct(other) <= static_cast<double>(extent(result.axes, AxisKind::feature))) {
        found->bias = true;
      }
    } else if (result.norm == kNone && !result.axes.empty()) {
      const double width = static_cast<double>(extent(result.axes.back()));
      const Integers& table = dims(other.root);
      if (distinct(other) > width && table.size() >= 2) {
        result_.added_tables[other.root] = table[table.size() - 2];
      }
    }
  }

  // The stream after an addition: of its operands the one that is a stream itself goes on.
  Flow residual_stream(const Node& node, const List<Flow>& operands, std::size_t principal) {
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
        } else if (ProductFlow* product = product_of(source)) {
          product->residual = true;
          product->post_norm = operand.norm != kNone;
        }
      }
    }
    const Flow& on = operands[through];
    return {FlowKind::activation, on.axes, {~node.results[0]}, on.root};
  }

  // Without an activation among the operands: weights, tables, counters.
  void merge_constants(NodeId id, const Node& node, std::string_view op, List<Flow>& operands) {
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
    mark(node, op, result);
    if (op == "exponential") result.exponential = id;
    set(node.results[0], std::move(result));
  }

  // --- reductions, norms and products
  void reduce(const Node& node) {
    const std::size_t inputs = std::max<std::size_t>(1, node.operands.size() / 2);
    const std::string_view op = reducer(*node.instruction);
    Integers reduced;
    if (const auto text = node.instruction->find("dimensions")) reduced = integers(*text);
    for (std::size_t n = 0; n < node.results.size() && n < inputs && n < node.operands.size(); ++n) {
      Flow value = flow(node.operands[n]);
      if (op == "add" && value.exponential != kNone) softmax_.emplace(value.exponential, common_side(value, reduced));
      Axes kept;
      for (std::size_t d = 0; d < value.axes.size(); ++d) {
        if (!contains(reduced, d)) kept.push_back(value.axes[d]);
      }
      value.axes = std::move(kept);
      value.marks &= ~kPower;
      if (op == "add") value.marks |= kSummed;
      set(node.results[n], std::move(value));
    }
  }

  void normalization(NodeId id, const Node& node) {
    pass_through(node);
    if (node.operands.empty()) return;
    Flow value = active_flow(node.operands[0]);
    value.norm = id;
    // "rms_norm" and its kin do not subtract a mean.
    if (to_lower(node.instruction->symbol).find("rms") == std::string::npos) value.marks |= kCentred;
    value.axes = reshaped(value.axes, dims(node.results[0]));
    set(node.results[0], std::move(value));
  }

  void sort(const Node& node) {
    for (std::size_t n = 0; n < node.results.size(); ++n) {
      if (node.operands.empty()) return;
      const TensorId from = node.operands[std::min(n, node.operands.size() - 1)];
      const Flow key = flow(node.operands[0]);
      Flow value = key;
      if (ProductFlow* product = product_of(key.product())) {
        product->ranked = true;
        const Integers& before = dims(from);
        const Integers& after = dims(node.results[n]);
        if (!after.empty() && !before.empty() && after.back() < before.back()) product->chosen = after.back();
      }
      value.marks |= kRanked;
      value.axes = resized(value.axes, dims(node.results[n]));
      set(node.results[n], std::move(value));
    }
  }

  // Custom calls that are known by the name of their target: norms, softmax, activation functions.
  bool library_function(NodeId id, const Node& node) {
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
      const bool tanh = std::ranges::any_of(node.instruction->attributes, [](const Attribute& a) {
        return a.text.find("\"tanh\"") != std::string_view::npos;
      });
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
      softmax_.emplace(
          id, value.axes.empty() ? -1 : common_side(value, {static_cast<std::int64_t>(value.axes.size()) - 1}));
    }
    if (value.axes.size() != dims(node.results[0]).size()) value.axes = reshaped(value.axes, dims(node.results[0]));
    set(node.results[0], std::move(value));
    return true;
  }

  void product(NodeId id, const Node& node) {
    const TensorId to = node.results[0];
    if (node.operands.size() < 2) return pass_through(node);
    const Type& lhs = program_.type(node.operands[0]);
    const Type& rhs = program_.type(node.operands[1]);
    ProductFlow p;
    p.dims = dot_dimensions(*node.instruction, lhs, rhs);
    keep_valid(lhs, rhs, p.dims.batch);
    keep_valid(lhs, rhs, p.dims.contracted);
    p.free[0] = p.dims.free(0, lhs);
    p.free[1] = p.dims.free(1, rhs);
    if (plain_op(node.instruction->name) == "ragged_dot" && rhs.rank() == 3) {  // [rows, k] by [experts, k, n]
      p.free[1] = {2};
      p.experts = rhs.dims[0];
    }
    p.contracted = lhs.extent(p.dims.contracted[0]);
    p.operands[0] = flow(node.operands[0]);
    p.operands[1] = flow(node.operands[1]);
    const bool passive[2] = {!p.operands[0].activation(), !p.operands[1].activation()};
    if (passive[0] && passive[1]) {
      // Of two arguments the second is taken to be the weights, unless only the first is an argument of the program.
      const auto argument = [&](const Flow& f) { return f.root != kNone && program_.tensor(f.root).node == kNone; };
      p.weights = !argument(p.operands[0]) && argument(p.operands[1]) ? 0 : 1;
      Flow& active = p.operands[1 - p.weights];
      if (active.root != kNone) active_.insert(active.root);
      active = flow(node.operands[1 - p.weights]);
      if (!active.activation()) {
        active.kind = FlowKind::activation;
        active.sources = {~node.operands[1 - p.weights]};
      }
    } else if (passive[0] != passive[1]) {
      p.weights = passive[0] ? 0 : 1;
    }
    const Type& weights = p.weights == 0 ? lhs : rhs;
    if (p.weights >= 0) p.features = weights.extent(p.free[p.weights]);
    if (p.weights >= 0 && p.experts == 1) {
      p.experts = static_cast<std::int64_t>(weights.extent(p.dims.batch[p.weights]));
    }
    p.bias = node.operands.size() > 2 && raw(node.operands[2]).kind == FlowKind::weight;

    Flow value{FlowKind::activation, {}, {id}, p.operands[p.weights == 0 ? 1 : 0].root};
    const auto append = [&](const Flow& from, const Integers& positions, int side, int operand) {
      for (const std::int64_t position : positions) {
        Dimension dimension = static_cast<std::size_t>(position) < from.axes.size() ? from.axes[position] : Dimension{};
        for (Axis& axis : dimension) {
          axis.side = side;
          if (p.weights >= 0) axis.kind = operand == p.weights ? AxisKind::feature : AxisKind::row;
        }
        value.axes.push_back(std::move(dimension));
      }
    };
    const int batch_from = p.weights == 0 || (p.weights < 0 && has_repeats(p.operands[0].axes)) ? 1 : 0;
    append(p.operands[batch_from], p.dims.batch[batch_from], -1, batch_from);
    append(p.operands[0], p.free[0], 0, 0);
    append(p.operands[1], p.free[1], 1, 1);
    find_attention(id, p, value);
    result_.products.emplace(id, std::move(p));
    set(to, std::move(value));
  }

  // softmax(Q K^T) V in one node; queries, keys and values are its first operands.
  void attention(NodeId id, const Node& node) {
    pass_through(node);
    const std::optional<Attention> known = library_attention(program_, node);
    if (node.operands.size() < 3 || (known && known->backward)) return;
    AttentionFlow a;
    a.scores = a.values = id;
    Flow* const operands[] = {&a.queries, &a.keys, &a.value_operand};
    for (std::size_t n = 0; n < 3; ++n) *operands[n] = active_flow(node.operands[n]);
    const std::int64_t rank = program_.type(node.operands[0]).rank();
    for (std::int64_t d = 0; d + 1 < rank; ++d) a.batch.push_back(d);
    if (rank > 0) a.contracted = {rank - 1};
    if (!dims(node.operands[2]).empty()) a.value_width = dims(node.operands[2]).back();
    Flow value{FlowKind::activation, {}, {id}, a.queries.root};
    // Libraries may swap heads and tokens.
    Axes axes = a.queries.axes;
    for (const std::int64_t dim : dims(node.results[0])) {
      const auto same = std::ranges::find_if(axes, [&](const Dimension& d) { return extent(d) == dim; });
      value.axes.push_back(same == axes.end() ? Dimension{} : *same);
      if (same != axes.end()) axes.erase(same);
    }
    result_.attentions.push_back(std::move(a));
    set(node.results[0], std::move(value));
  }

  // Whether one operand is a softmax over the free dimension of another product, which is contracted here.
  bool find_attention(NodeId id, const ProductFlow& p, Flow& result) {
    for (int i = 0; i < 2; ++i) {
      const Flow& weights = p.operands[i];
      const NodeId scores = weights.product();
      if (scores == kNone || weights.exponential < scores) continue;
      const auto softmax = softmax_.find(weights.exponential);
      const ProductFlow* found = product_of(scores);
      const int side = common_side(weights, p.dims.contracted[i]);
      if (found == nullptr || softmax == softmax_.end() || side < 0 || softmax->second != side) continue;
      const ProductFlow& s = *found;
      if (s.weights >= 0 && s.dims.batch[0].empty()) continue;  // a router
      AttentionFlow a;
      a.scores = scores;
      a.values = id;
      a.keys = s.operands[side];
      a.queries = s.operands[1 - side];
      a.value_operand = p.operands[1 - i];
      a.batch = s.dims.batch[1 - side];
      a.query_free = s.free[1 - side];
      a.key_batch = s.dims.batch[side];
      a.key_free = s.free[side];
      const Type& values = program_.type(program_.node(id).operands[1 - i]);
      a.value_width = static_cast<std::int64_t>(values.extent(p.free[1 - i]));
      a.contracted = s.dims.contracted[1 - side];
      a.marks = weights.marks;
      result.root = a.queries.root;
      result_.attentions.push_back(std::move(a));
      return true;
    }
    return false;
  }

  const Program& program_;
  Dataflow result_;
  List<bool> known_;               // by tensor: result_.flows holds it
  std::set<TensorId> active_;      // arguments and constants that are no weights
  std::set<TensorId> changed_;     // arguments of loops that a pass replaces
  std::map<NodeId, int> softmax_;  // exponentials whose results were summed, and over which side of a product
};

}  // namespace

Dataflow follow(const Program& program) { return DataflowPass(program).run(); }

}  // namespace llmperf::program
