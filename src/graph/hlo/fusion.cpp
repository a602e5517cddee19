#include "graph/hlo/fusion.h"

#include <algorithm>
#include <map>
#include <utility>

namespace llmperf::graph::hlo {
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
bool joins_readers(const Node& node) {
  switch (node.traits.op_class) {
    case OpClass::elementwise:
    case OpClass::broadcast:
    case OpClass::slice: return true;
    // A transposition ends a kernel: its elements are written in another order than they come.
    case OpClass::movement: return node.instruction->op() != "transpose";
    default: return false;
  }
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
    const std::vector<NodeId>& readers = uses_.readers(storage);
    return std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
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
        const int its = kernels_.of_node[static_cast<std::size_t>(reader)];
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
      const std::vector<NodeId> readers = uses_.readers(uses_.storage(result));
      for (const NodeId reader : readers) {
        const int other = kernels_.of_node[static_cast<std::size_t>(reader)];
        if (other == kNone || other == kernel) continue;
        const auto found = members_.find(other);
        if (found == members_.end() || !ends_in_reduction(found->second) || !reads_before(found->second, id)) continue;
        if (!alike(node, program_.node(reader))) continue;
        for (const NodeId member : found->second) {
          kernels_.of_node[static_cast<std::size_t>(member)] = kernel;
          members_[kernel].push_back(member);
        }
        members_.erase(other);
      }
    }
  }

  bool ends_in_reduction(const std::vector<NodeId>& members) const {
    const NodeId last = *std::max_element(members.begin(), members.end());
    return program_.node(last).traits.op_class == OpClass::reduce;
  }

  // Whether all that the kernel reads was there before the node, or is its result.
  bool reads_before(const std::vector<NodeId>& members, NodeId id) const {
    return std::all_of(members.begin(), members.end(),
                       [&](NodeId member) { return reads_before(member, members, id, 0); });
  }
  bool reads_before(NodeId node, const std::vector<NodeId>& members, NodeId id, int depth) const {
    constexpr int kMaxRepeated = 20;  // broadcasts of broadcasts
    for (const TensorId operand : program_.node(node).operands) {
      const NodeId maker = program_.tensor(uses_.storage(operand)).node;
      if (maker <= id || std::find(members.begin(), members.end(), maker) != members.end()) continue;
      if (program_.node(maker).instruction->op() == "constant") continue;
      if (!kernels_.repeated[static_cast<std::size_t>(maker)] || depth == kMaxRepeated) return false;
      if (!reads_before(maker, members, id, depth + 1)) return false;
    }
    return true;
  }

  const Program& program_;
  const Uses& uses_;
  Kernels kernels_;
  std::map<int, std::vector<NodeId>> members_;
};

}  // namespace

std::optional<Fusion> parse_fusion(std::string_view name) {
  if (name == "none") return Fusion::none;
  if (name == "elementwise") return Fusion::elementwise;
  return std::nullopt;
}

Kernels kernels_of(const Program& program, const Uses& uses, Fusion fusion) { return Fuser(program, uses).run(fusion); }

}  // namespace llmperf::graph::hlo
