#include "program/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/integer.h"
#include "program/replica_groups.h"
#include "program/work.h"

namespace llmperf::program {
namespace {

// Whether other work can be in the same kernel: before it (as its operand), or behind it too.
bool takes_producers(OpClass c) {
  switch (c) {
    case OpClass::elementwise:
    case OpClass::broadcast:
    case OpClass::slice:
    case OpClass::movement:
    case OpClass::reduce:
    case OpClass::update: return true;
    default: return false;
  }
}
// A transposition ends a kernel: its elements are written in another order than they come.
bool joins_readers(const Node& node) {
  const OpClass c = node.traits.op_class;
  return takes_producers(c) && c != OpClass::reduce && c != OpClass::update && node.instruction->op() != "transpose";
}

bool works(const Node& node) {
  if (node.inserted) return node.inserted->kind.has_value();
  return node.traits.op_class != OpClass::free && node.traits.op_class != OpClass::transfer &&
         node.traits.op_class != OpClass::unknown;
}

class Fuser {
 public:
  Fuser(const Program& program, const Uses& uses) : program_(program), uses_(uses) {
    kernels_.of_node.assign(program.nodes.size(), kNone);
    kernels_.repeated.assign(program.nodes.size(), false);
  }

  Kernels run(Fusion fusion) {
    std::map<int, int> given;  // fusions of the program
    for (std::size_t n = program_.nodes.size(); n-- > 0;) {
      const Node& node = program_.nodes[n];
      if (!works(node)) continue;
      const auto id = static_cast<NodeId>(n);
      int& kernel = kernels_.of_node[n];
      if (node.fusion >= 0 && takes_producers(node.traits.op_class)) {
        const auto [entry, fresh] = given.try_emplace(node.fusion, kernels_.count);
        if (fresh) ++kernels_.count;
        kernel = entry->second;
      } else if (fusion == Fusion::none) {
        kernel = kernels_.count++;
      } else if (repeats(id)) {
        kernels_.repeated[n] = true;
      } else if (const int readers = kernel_of_readers(id); readers != kNone) {
        kernel = readers;
        members_[kernel].push_back(id);
      } else {
        kernel = kernels_.count++;
        members_[kernel].push_back(id);
        if (joins_readers(node)) take_reductions(id, kernel);
      }
    }
    return std::move(kernels_);
  }

 private:
  bool alike(const Node& a, const Node& b) const { return a.loop == b.loop && a.count == b.count; }

  // Broadcasts and iotas whose readers are all element-wise kernels.
  bool repeats(NodeId id) const {
    const Node& node = program_.node(id);
    if (node.traits.op_class != OpClass::broadcast || node.results.size() != 1) return false;
    const TensorId storage = uses_.storage(node.results[0]);
    if (uses_.kept(storage)) return false;
    const List<NodeId>& readers = uses_.readers(storage);
    return std::ranges::all_of(readers, [&](NodeId reader) {
      const Node& other = program_.node(reader);
      bool changed = false;
      for (std::size_t k = 0; k < other.results.size(); ++k) {
        const TensorId operand = updated_operand(other, k);
        changed = changed || (operand != kNone && uses_.storage(operand) == storage);
      }
      return takes_producers(other.traits.op_class) && other.fusion < 0 && !changed;
    });
  }

  int kernel_of_readers(NodeId id) const {
    const Node& node = program_.node(id);
    if (!joins_readers(node)) return kNone;
    int kernel = kNone;
    for (const TensorId result : node.results) {
      const TensorId storage = uses_.storage(result);
      if (uses_.kept(storage)) return kNone;
      for (const NodeId reader : uses_.readers(storage)) {
        const Node& other = program_.node(reader);
        const int its = kernels_.of_node[reader];
        if (its == kNone || (kernel != kNone && its != kernel)) return kNone;
        if (!takes_producers(other.traits.op_class) || !alike(node, other) || other.fusion >= 0) return kNone;
        kernel = its;
      }
    }
    return kernel;
  }

  // Kernels that end in a reduction of this node's result and read nothing later than it.
  void take_reductions(NodeId id, int kernel) {
    const Node& node = program_.node(id);
    for (const TensorId result : node.results) {
      const List<NodeId> readers = uses_.readers(uses_.storage(result));
      for (const NodeId reader : readers) {
        const int other = kernels_.of_node[reader];
        if (other == kNone || other == kernel) continue;
        const auto found = members_.find(other);
        if (found == members_.end() || !ends_in_reduction(found->second) || !reads_before(found->second, id)) continue;
        if (!alike(node, program_.node(reader))) continue;
        for (const NodeId member : found->second) {
          kernels_.of_node[member] = kernel;
          members_[kernel].push_back(member);
        }
        members_.erase(other);
      }
    }
  }

  bool ends_in_reduction(const List<NodeId>& members) const {
    const NodeId last = *std::ranges::max_element(members);
    return program_.node(last).traits.op_class == OpClass::reduce;
  }

  // Whether all that the kernel reads was there before the node, or is its result.
  bool reads_before(const List<NodeId>& members, NodeId id) const {
    return std::ranges::all_of(members, [&](NodeId member) { return reads_before(member, members, id, 0); });
  }
  bool reads_before(NodeId node, const List<NodeId>& members, NodeId id, int depth) const {
    constexpr int kMaxRepeated = 20;  // broadcasts of broadcasts
    for (const TensorId operand : program_.node(node).operands) {
      const NodeId maker = program_.tensor(uses_.storage(operand)).node;
      if (maker <= id || contains(members, maker)) continue;
      if (program_.node(maker).instruction->op() == "constant") continue;
      if (!kernels_.repeated[maker] || depth == kMaxRepeated) return false;
      if (!reads_before(maker, members, id, depth + 1)) return false;
    }
    return true;
  }

  const Program& program_;
  const Uses& uses_;
  Kernels kernels_;
  std::map<int, List<NodeId>> members_;
};

}  // namespace

std::optional<Fusion> parse_fusion(std::string_view name) {
  if (name == "none") return Fusion::none;
  if (name == "elementwise") return Fusion::elementwise;
  return std::nullopt;
}

Kernels kernels_of(const Program& program, const Uses& uses, Fusion fusion) { return Fuser(program, uses).run(fusion); }

namespace {

std::int64_t whole(double x) { return std::llround(x); }

// Products of f32 run in tf32 unless the program asks for more (jax.lax.Precision; DEFAULT where nothing is said).
bool asks_for_fp32(const Instruction& i) {
  // stablehlo.dot_algorithm names the type.
  if (const auto algorithm = i.find("algorithm")) {
    return field(*algorithm, "lhs_precision_type").value_or(std::string_view{}) == "f32";
  }
  if (const auto text = i.find({"precision", "precision_config"})) return text->find("HIGH") != std::string_view::npos;
  return false;
}

class Lowerer {
 public:
  Lowerer(const Program& program, const LowerOptions& options)
      : program_(program), options_(options), uses_(program), kernels_(kernels_of(program, uses_, options.fusion)) {}

  Lowered run() {
    std::map<int, List<NodeId>> members;
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      if (kernels_.of_node[n] != kNone) members[kernels_.of_node[n]].push_back(static_cast<NodeId>(n));
    }
    // In the order of the last node of each.
    List<List<NodeId>> ordered;
    for (auto& [kernel, nodes] : members) ordered.push_back(std::move(nodes));
    std::ranges::sort(ordered, [](const auto& a, const auto& b) { return a.back() < b.back(); });
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) fill(static_cast<NodeId>(n));
    is_argument_.assign(program_.tensors.size(), false);
    for (const TensorId argument : program_.arguments) is_argument_[argument] = true;
    auto copy = uses_.copies().begin();
    for (List<NodeId>& nodes : ordered) {
      for (; copy != uses_.copies().end() && copy->first <= nodes.back(); ++copy) copied(*copy);
      kernel(std::move(nodes));
    }
    memory();
    return std::move(result_);
  }

 private:
  void kernel(List<NodeId> nodes) {
    const Node& last = program_.node(nodes.back());
    const OpClass c = last.traits.op_class;
    LoweredOp lowered;
    lowered.op.name = last.instruction->op();
    lowered.op.count = last.count;
    lowered.op_class = c;
    bool made = true;
    if (last.inserted || c == OpClass::collective) {
      made = collective(last, lowered);
    } else if (c == OpClass::product) {
      made = product(last, lowered.op);
    } else if (c == OpClass::convolution) {
      made = convolution(last, lowered.op);
    } else if (c == OpClass::attention) {
      const auto attention = library_attention(program_, last);
      if (!attention) {
        program_.module->fail(*last.instruction,
                              "an attention call with operands that are not [batch, sequence, heads, width]");
      }
      lowered.op.body = *attention;
    } else {
      made = stream(nodes, lowered.op);
      if (nodes.size() > 1) lowered.op.name = "fusion";
    }
    if (!made || last.count == 0) return;
    lowered.nodes = std::move(nodes);
    result_.ops.push_back(std::move(lowered));
  }

  static constexpr Bytes kLeastStored{4096};  // counters and the like stay in registers

  // A constant of one value that is carried through a loop or returned is written to memory first.
  bool filled(NodeId id) const {
    const Node& node = program_.node(id);
    if (node.results.size() != 1 || !is_splat(program_, node.results[0])) return false;
    const TensorId storage = uses_.storage(node.results[0]);
    return program_.type(storage).bytes() >= kLeastStored && uses_.kept(storage);
  }
  void add(std::string_view name, OpClass op_class, NodeId node, std::int64_t count, const Vector& body) {
    LoweredOp& lowered = result_.ops.emplace_back();
    lowered.op.name = name;
    lowered.op.count = count;
    lowered.op.body = body;
    lowered.op_class = op_class;
    lowered.nodes = {node};
  }
  void fill(NodeId id) {
    const Node& node = program_.node(id);
    if (node.instruction->op() != "constant" || !filled(id)) return;
    add(node.instruction->op(), OpClass::broadcast, id, node.count, written(program_.type(node.results[0]), Bytes{}));
  }
  void copied(const Copy& copy) {
    const Type& type = program_.type(copy.changed);
    if (!type.tensor() || type.bytes() < kLeastStored || copy.count == 0) return;
    add("copy", OpClass::movement, copy.node, copy.count,
        written(type, is_splat(program_, copy.value) ? Bytes{} : type.bytes()));
    result_.ops.back().copy = true;
    if (is_argument_[copy.value]) {
      result_.copied_arguments.push_back(copy.value);
      is_argument_[copy.value] = false;  // listed once
    }
  }
  // Element-wise work over a tensor.
  static Vector over(const Type& type) {
    Vector v;
    v.kind = VectorKind::elementwise;
    v.activation = storage_dtype(type.element);
    v.width = std::max<std::int64_t>(1, type.dims.empty() ? 1 : type.dims.back());
    v.rows = std::max<std::int64_t>(1, whole(type.elements() / d(v.width)));
    return v;
  }
  // A tensor that is written whole.
  static Vector written(const Type& type, Bytes read) {
    Vector v = over(type);
    const double element = type.elements() * bytes_per_element(v.activation);
    v.reads = read.value / element;
    v.writes = type.bytes().value / element;
    return v;
  }

  Dtype compute(Dtype dtype) const { return options_.compute ? options_.compute(dtype) : dtype; }

  bool is_weight(TensorId tensor) const {
    const Tensor& t = program_.tensor(tensor);
    return t.parameter || (t.constant && !is_splat(program_, tensor));
  }

  const model::StoredFormat* format(const Element& stored, const Element& other, const Instruction& i) {
    model::StoredFormat f;
    f.bits = stored.bits;
    const Dtype wider =
        bits(storage_dtype(other)) > bits(storage_dtype(stored)) ? storage_dtype(other) : storage_dtype(stored);
    f.compute = compute(wider == Dtype::fp32 && !asks_for_fp32(i) ? Dtype::tf32 : wider);
    Element precision;
    const auto algorithm = i.find("algorithm");
    const auto type = algorithm ? field(*algorithm, "lhs_precision_type") : std::nullopt;
    if (type && parse_element(*type, precision)) f.compute = compute(precision.compute);
    result_.formats.push_back(f);
    return &result_.formats.back();
  }

  void check_operands(const Node& node) const {
    if (node.operands.size() >= 2 && !node.results.empty()) return;
    program_.module->fail(*node.instruction,
                          fmt::format("{} has two operands and a result, and this one has {} and {}",
                                      node.instruction->name, node.operands.size(), node.results.size()));
  }

  // Libraries return a tuple of the result and a workspace.
  const Type& main_result(const Node& node) const {
    const Type& type = program_.type(node.results[0]);
    return type.form == Type::Form::tuple && !type.members.empty() ? type.members[0] : type;
  }

  bool product(const Node& node, Op& op) {
    const Instruction& i = *node.instruction;
    check_operands(node);
    const Type& lhs = program_.type(node.operands[0]);
    const Type& rhs = program_.type(node.operands[1]);
    const Type& out = main_result(node);
    const DotShape s =
        i.op() == "custom_call" ? library_product(lhs, rhs, out) : dot_shape(*program_.module, i, lhs, rhs);
    if (s.batch * s.m * s.n * s.k == 0) return false;
    // The second operand is the one with the weights.
    const bool swap = is_weight(node.operands[0]) && !is_weight(node.operands[1]) && s.groups == 1;
    const Type& first = swap ? rhs : lhs;
    const Type& second = swap ? lhs : rhs;
    Gemm g;
    g.m = whole(swap ? s.n : s.m);
    g.n = whole(swap ? s.m : s.n);
    g.k = whole(s.k);
    g.batch = whole(s.batch);
    g.activation = storage_dtype(first.element);
    const bool weights = is_weight(node.operands[swap ? 0 : 1]);
    const bool single = first.element == second.element && !(g.activation == Dtype::fp32 && !asks_for_fp32(i));
    if (weights || !single || s.groups > 1) {
      g.weights = format(second.element, first.element, i);
      g.weight_matrices = s.groups * s.batch;
    }
    // A ragged product that sums within groups has a result for each.
    g.joined.results = out.elements() / (s.batch * s.m * s.n) * out.element.bits / bits(g.activation);
    op.body = g;
    return true;
  }

  bool convolution(const Node& node, Op& op) {
    check_operands(node);
    const Type& input = program_.type(node.operands[0]);
    const Type& kernel = program_.type(node.operands[1]);
    const Type& out = main_result(node);
    const ConvolutionShape s = convolution_shape(*program_.module, *node.instruction, input, kernel, out);
    if (s.positions * s.outputs * s.inputs * s.taps == 0) return false;
    Convolution c;
    c.positions = std::max<std::int64_t>(1, whole(s.positions));
    c.outputs = whole(s.outputs);
    c.inputs = whole(s.inputs);
    c.taps = std::max<std::int64_t>(1, whole(s.taps));
    if (s.met > 0) c.padding = d(c.positions) * d(c.taps) - s.met;
    c.stored = out.elements() / (d(c.positions) * s.outputs);
    c.input_positions = input.elements() / s.inputs;
    c.activation = storage_dtype(input.element);
    c.weights = format(kernel.element, input.element, *node.instruction);
    op.body = c;
    return true;
  }

  bool collective(const Node& node, LoweredOp& lowered) {
    Collective c;
    if (node.operands.empty() || node.results.empty()) return false;
    const Type& operand = program_.type(node.operands[0]);
    if (node.inserted) {
      c.kind = *node.inserted->kind;
      c.ranks = node.inserted->ranks;
      c.stride = node.inserted->stride;
      lowered.op.name = graph::name(c.kind);
      lowered.groups = node.inserted->text;
    } else {
      const ReplicaGroups groups = replica_groups(*program_.module, *node.instruction, options_.devices);
      c.kind = collective_kind(*node.instruction);
      c.ranks = groups.ranks;
      c.stride = groups.placed_stride(options_.devices_per_node);
      lowered.groups = groups.text;
      lowered.uneven = groups.uneven;
    }
    double bytes = 0;
    const bool of_operands = c.kind == CollectiveKind::reduce_scatter;
    for (const TensorId t : of_operands ? node.operands : node.results) bytes += program_.type(t).bytes().value;
    c.element = element_format(operand.element);
    c.width = 1;
    c.rows = bytes / std::max(0.5, bytes_per_element(c.element));
    lowered.op.place = Place::network;
    lowered.op.body = c;
    return bytes > 0;
  }

  // Element-wise and other vector work of one kernel.
  bool stream(const List<NodeId>& nodes, Op& op) {
    double operations = 0;
    double written = 0;
    double widest = 0;
    const Type* space = nullptr;
    bool strided = false;
    reads_.clear();
    need(nodes);
    for (const NodeId id : nodes) {
      const Node& node = program_.node(id);
      const double share = needed_[id];
      operations += vector_operations(program_, node) * share;
      read(id, node, kernels_.of_node[id], 0, share);
      for (std::size_t n = 0; n < node.results.size(); ++n) {
        const Type& type = program_.type(node.results[n]);
        if (leaves(id, node.results[n])) written += written_bytes(program_, node, n).value;
        if (share == 1) consider(type, space, widest);
      }
      const bool reduces = node.traits.op_class == OpClass::reduce || node.traits.op_class == OpClass::sort;
      if (reduces && share == 1 && !node.operands.empty()) consider(program_.type(node.operands[0]), space, widest);
      strided = strided || node.instruction->op() == "transpose" || node.instruction->op() == "gather";
    }
    double read_bytes = 0;
    for (const auto& [storage, bytes] : reads_) {
      read_bytes += std::min(bytes, program_.type(storage).bytes().value);
    }
    if (space == nullptr || widest == 0 || operations + written + read_bytes == 0) return false;
    Vector v = over(*space);
    const double element = bytes_per_element(v.activation);
    v.reads = read_bytes / (widest * element);
    v.writes = written / (widest * element);
    v.operations = operations / widest;
    v.access = strided ? Access::strided : Access::dense;
    op.body = v;
    return true;
  }

  static void consider(const Type& type, const Type*& space, double& widest) {
    if (!type.tensor() || type.elements() <= widest) return;
    space = &type;
    widest = type.elements();
  }

  // What a kernel reads from memory: values of other kernels, and what the repeated ones are computed from.
  void read(NodeId id, const Node& node, int kernel, int depth, double share) {
    constexpr int kMaxChain = 50;
    for (std::size_t n = 0; n < node.operands.size(); ++n) {
      const TensorId storage = uses_.storage(node.operands[n]);
      const NodeId maker = program_.tensor(storage).node;
      if (maker != kNone && maker != id) {
        const auto m = static_cast<std::size_t>(maker);
        if (kernels_.of_node[m] == kernel && kernel != kNone) continue;
        if (kernels_.repeated[m] && depth < kMaxChain) {
          read(maker, program_.node(maker), kernel, depth + 1, share);
          continue;
        }
      }
      const double bytes = read_bytes(program_, node, n).value * share;
      if (bytes > 0) reads_[storage] += bytes;
    }
  }

  // The shares of what a kernel's nodes make that anything needs: of a value that only slices of it are read of,
  // theirs.
  void need(const List<NodeId>& nodes) {
    needed_.clear();
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
      const Node& node = program_.node(*id);
      double& share = needed_[*id];
      const auto left = [&](TensorId result) { return leaves(*id, result); };
      if (node.results.empty() || std::ranges::any_of(node.results, left)) share = 1;
      share = std::min(share, 1.0);
      for (std::size_t n = 0; n < node.operands.size(); ++n) {
        const NodeId maker = program_.tensor(uses_.storage(node.operands[n])).node;
        if (maker == kNone || maker >= *id || kernels_.of_node[maker] != kernels_.of_node[*id]) continue;
        const double whole = program_.type(node.operands[n]).bytes().value;
        const bool part = node.traits.op_class == OpClass::slice && n == 0 && whole > 0;
        needed_[maker] += share * (part ? read_bytes(program_, node, n).value / whole : 1);
      }
    }
  }

  // Whether someone outside of the kernel needs the value.
  bool leaves(NodeId id, TensorId tensor) const {
    const TensorId storage = uses_.storage(tensor);
    if (uses_.kept(storage) || program_.node(id).traits.op_class == OpClass::update) return true;
    const int kernel = kernels_.of_node[id];
    const List<NodeId>& readers = uses_.readers(storage);
    if (readers.empty()) return true;
    return std::ranges::any_of(readers, [&](NodeId reader) { return kernels_.of_node[reader] != kernel; });
  }

  // Arguments and constants for as long as the program runs; else from the node that makes a value to its last reader.
  void memory() {
    for (const TensorId t : program_.arguments) result_.arguments += program_.type(t).bytes();
    std::map<std::size_t, double> change;
    List<std::size_t> loop_end(program_.loops.size(), 0);
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      for (int loop = program_.nodes[n].loop; loop >= 0; loop = program_.loop(loop).parent) {
        loop_end[loop] = n;
      }
    }
    // From a node of a loop to the value's last reader.
    const auto lives = [&](TensorId t, std::size_t from, int home) {
      std::size_t last = from;
      if (uses_.kept(t) && home >= 0) last = loop_end[home];
      if (uses_.returned(t)) last = program_.nodes.size() - 1;
      for (const NodeId reader : uses_.readers(t)) {
        // Readers in a loop that the value comes into from outside need it until the loop ends.
        std::size_t until = static_cast<std::size_t>(reader);
        for (int loop = program_.node(reader).loop; loop >= 0 && loop != home; loop = program_.loop(loop).parent) {
          until = std::max(until, loop_end[loop]);
        }
        last = std::max(last, until);
      }
      const double bytes = program_.type(t).bytes().value;
      change[from] += bytes;
      change[last + 1] -= bytes;
    };
    for (const Copy& copy : uses_.copies()) {
      // The copies of updates are their results.
      if (copy.first != copy.node) lives(copy.changed, static_cast<std::size_t>(copy.first), copy.loop);
    }
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      const Node& node = program_.nodes[n];
      for (const TensorId t : node.results) {
        if (uses_.storage(t) != t || kernels_.repeated[n]) continue;
        const bool constant = node.instruction->op() == "constant";
        if (constant && !filled(static_cast<NodeId>(n))) {
          if (!is_splat(program_, t)) result_.constants += program_.type(t).bytes();
          continue;
        }
        const bool stays_inside = kernels_.of_node[n] != kNone && !leaves(static_cast<NodeId>(n), t);
        if ((constant || node.traits.op_class != OpClass::free) && !stays_inside) lives(t, n, node.loop);
      }
    }
    double alive = 0;
    for (const auto& [node, bytes] : change) {
      alive += bytes;
      result_.intermediate = std::max(result_.intermediate, Bytes{alive});
    }
  }

  const Program& program_;
  const LowerOptions& options_;
  Uses uses_;
  Kernels kernels_;
  Lowered result_;
  std::map<TensorId, double> reads_;
  std::map<NodeId, double> needed_;  // of the kernel at hand
  List<bool> is_argument_;           // by tensor, until it is listed as copied
};

}  // namespace

Lowered lower(const Program& program, const LowerOptions& options) { return Lowerer(program, options).run(); }

}  // namespace llmperf::program
