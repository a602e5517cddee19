#include "program/uses.h"

#include <algorithm>
#include <set>
#include <utility>

namespace llmperf::program {
namespace {

class CopyFinder {
 public:
  explicit CopyFinder(const Program& program)
      : program_(program), value_(program.tensors.size()), uses_(program.tensors.size()) {
    same_values();
    places();
    for (const TensorId argument : program.arguments) {
      if (!program.tensor(argument).donated) use(argument).fixed = true;
    }
    for (std::size_t n = 0; n < program.nodes.size(); ++n) see(static_cast<NodeId>(n));
    for (const TensorId result : program.results) use(value(result)).fixed = true;
    for (std::size_t l = 0; l < program.loops.size(); ++l) {
      const Loop& loop = program.loops[l];
      for (std::size_t k = 0; k < carried(loop); ++k) {
        const TensorId yielded = value(loop.yielded[k]);
        if (changes(loop, k) && !argument_of(yielded, static_cast<int>(l))) {
          use(yielded).yielded_by = static_cast<int>(l);
        }
      }
    }
  }

  std::vector<Copy> run() {
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) updates(static_cast<NodeId>(n));
    for (std::size_t l = 0; l < program_.loops.size(); ++l) loop_values(static_cast<int>(l));
    std::ranges::stable_sort(copies_, [](const Copy& a, const Copy& b) { return a.first < b.first; });
    return std::move(copies_);
  }

 private:
  struct Use {
    int loop = -1;            // that the value belongs to
    bool fixed = false;       // never changed in place: arguments that are not donated, constants, results
    int yielded_by = -1;      // the loop whose next pass begins with it
    NodeId last = kNone;      // the last node that reads it
    NodeId entry = kNone;     // the first node of the last loop that begins with it and changes it
    std::int64_t begins = 0;  // values that this loop begins with it
  };

  static std::size_t carried(const Loop& loop) { return std::min(loop.arguments.size(), loop.yielded.size()); }
  TensorId value(TensorId t) const { return value_[t]; }
  Use& use(TensorId t) { return uses_[t]; }
  // Whether a pass leaves another value than it found.
  bool changes(const Loop& loop, std::size_t k) const {
    return program_.tensor(loop.arguments[k]).same != kNone && value(loop.yielded[k]) != value(loop.arguments[k]);
  }

  TensorId last_of_chain(TensorId t) {
    TensorId end = t;
    while (value_[end] != end) end = value_[end];
    while (t != end) t = std::exchange(value_[t], end);
    return end;
  }
  // Values that are other forms of others, and those that loops hand on as they are.
  void same_values() {
    for (std::size_t t = 0; t < value_.size(); ++t) value_[t] = static_cast<TensorId>(t);
    for (const Node& node : program_.nodes) {
      for (std::size_t k = 0; k < node.results.size(); ++k) {
        const TensorId from = reshaped_operand(program_, node, k);
        if (from != kNone) value_[node.results[k]] = from;
      }
    }
    for (std::size_t l = program_.loops.size(); l-- > 0;) {
      const Loop& loop = program_.loops[l];
      for (std::size_t k = 0; k < carried(loop); ++k) {
        const TensorId argument = loop.arguments[k];
        const TensorId initial = program_.tensor(argument).same;
        if (initial != kNone && last_of_chain(loop.yielded[k]) == argument) value_[argument] = initial;
      }
    }
    for (std::size_t t = 0; t < value_.size(); ++t) value_[t] = last_of_chain(static_cast<TensorId>(t));
  }

  // The loop of every value, the first node of every loop.
  void places() {
    for (std::size_t l = 0; l < program_.loops.size(); ++l) {
      for (const TensorId argument : program_.loops[l].arguments) use(argument).loop = static_cast<int>(l);
    }
    first_.assign(program_.loops.size(), kNone);
    for (std::size_t n = program_.nodes.size(); n-- > 0;) {
      for (int l = program_.nodes[n].loop; l >= 0; l = program_.loop(l).parent) {
        first_[l] = static_cast<NodeId>(n);
      }
    }
    for (std::size_t l = 0; l < program_.loops.size(); ++l) {
      const Loop& loop = program_.loops[l];
      for (std::size_t k = 0; k < carried(loop) && first_[l] != kNone; ++k) {
        if (!changes(loop, k)) continue;
        Use& u = use(value(program_.tensor(loop.arguments[k]).same));
        u.begins = u.entry == first_[l] ? u.begins + 1 : 1;
        u.entry = std::max(u.entry, first_[l]);
      }
    }
  }

  void see(NodeId id) {
    const Node& node = program_.node(id);
    for (const TensorId result : node.results) {
      use(result).loop = node.loop;
      const std::string_view op = node.instruction->op();
      const bool member = op == "get_tuple_element" && node.operands.size() == 1 && use(value(node.operands[0])).fixed;
      if (op == "constant" || member) use(result).fixed = true;
    }
    if (node.traits.op_class == OpClass::free) return;
    for (const TensorId operand : node.operands) use(value(operand)).last = id;
  }

  bool argument_of(TensorId t, int loop) { return program_.tensor(t).node == kNone && use(t).loop == loop; }
  // Whether the value is needed whatever reads it: every pass of a loop begins with what comes from outside of it.
  bool kept(TensorId t, int loop) {
    const Use& u = use(t);
    return u.fixed || (u.yielded_by >= 0 && program_.within(loop, u.yielded_by)) ||
           (u.loop != loop && program_.within(loop, u.loop));
  }

  void updates(NodeId id) {
    const Node& node = program_.node(id);
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      const TensorId operand = updated_operand(node, k);
      if (operand == kNone) continue;
      const TensorId old = value(operand);
      if (!kept(old, node.loop) && use(old).last <= id && use(old).entry <= id) continue;
      copies_.push_back({old, node.results[k], id, id, node.loop, node.count});
    }
  }

  void loop_values(int l) {
    const Loop& loop = program_.loop(l);
    const NodeId first = first_[l];
    if (first == kNone) return;
    const std::int64_t count = program_.passes(loop.parent);
    std::set<TensorId> handed_on;
    for (std::size_t k = 0; k < carried(loop); ++k) {
      if (!changes(loop, k)) continue;
      const TensorId yielded = value(loop.yielded[k]);
      const NodeId maker = program_.tensor(yielded).node == kNone ? first : program_.tensor(yielded).node;
      if (!handed_on.insert(yielded).second || argument_of(yielded, l)) {
        // Every pass, to another place than where it is, or to a second one.
        copies_.push_back({yielded, loop.arguments[k], first, maker, l, program_.passes(l)});
      }
      const TensorId old = value(program_.tensor(loop.arguments[k]).same);
      Use& u = use(old);
      const bool last_entry = u.entry == first;
      if (last_entry && u.begins > 1) {
        --u.begins;  // one of them takes the original
      } else if (last_entry && is_splat(program_, old)) {
        continue;  // written to where the loop has it
      } else if (!kept(old, loop.parent) && u.last < first && u.entry <= first) {
        continue;
      }
      copies_.push_back({old, loop.arguments[k], first, maker, loop.parent, count});
    }
  }

  const Program& program_;
  List<TensorId> value_;  // by tensor: the one that it is another form of
  List<Use> uses_;        // by tensor: of those that are forms of themselves
  List<NodeId> first_;    // by loop
  std::vector<Copy> copies_;
};

}  // namespace

std::vector<Copy> copies_of(const Program& program) { return CopyFinder(program).run(); }

TensorId reshaped_operand(const Program& program, const Node& node, std::size_t result) {
  if (node.operands.empty()) return kNone;
  const bool same_place = node.results.size() == node.operands.size();
  const TensorId operand = node.operands[same_place ? result : 0];
  if (node.inserted && !node.inserted->kind) return operand;
  const Type& from = program.type(operand);
  const Type& to = program.type(node.results[result]);
  if (node.traits.op_class != OpClass::free || !from.tensor() || !to.tensor()) return kNone;
  const bool whole = from.bytes() == to.bytes();
  const bool boundary = program.tensor(node.results[result]).same == operand;  // shapes of one device, or of all
  return whole || boundary ? operand : kNone;
}

TensorId updated_operand(const Node& node, std::size_t result) {
  return node.traits.op_class == OpClass::update && result < node.operands.size() ? node.operands[result] : kNone;
}

bool is_splat(const Program& program, TensorId tensor) {
  const NodeId node = program.tensor(tensor).node;
  if (node == kNone) return false;
  const Instruction& i = *program.node(node).instruction;
  if (i.op() != "constant") return false;
  const auto text = value_of(i);
  if (!text || !text->starts_with("dense<")) return false;
  const std::string_view head = text->substr(6, 1);
  return head != "[" && (head != "\"" || program.type(tensor).elements() == 1);
}

Uses::Uses(const Program& program) : copies_(copies_of(program)) {
  const std::size_t size = program.tensors.size();
  storage_.resize(size);
  readers_.resize(size);
  kept_.assign(size, false);
  returned_.assign(size, false);
  for (std::size_t t = 0; t < size; ++t) storage_[t] = static_cast<TensorId>(t);
  List<bool> copied(size, false);
  for (const Copy& copy : copies_) copied[copy.changed] = true;
  for (const Loop& loop : program.loops) {
    // A loop's values take turns in the storage of the initial ones.
    for (const TensorId argument : loop.arguments) {
      const TensorId initial = program.tensor(argument).same;
      if (initial != kNone && !copied[argument]) {
        storage_[argument] = initial;
      }
    }
  }
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const Node& node = program.nodes[n];
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      const auto result = static_cast<std::size_t>(node.results[k]);
      const TensorId reshaped = reshaped_operand(program, node, k);
      const TensorId updated = copied[result] ? kNone : updated_operand(node, k);
      if (reshaped != kNone || updated != kNone) storage_[result] = reshaped != kNone ? reshaped : updated;
    }
  }
  // Chains end at what points to itself; tensors are made after those that they share with.
  for (std::size_t t = 0; t < size; ++t) {
    TensorId at = static_cast<TensorId>(t);
    while (storage_[at] != at) at = storage_[at];
    storage_[t] = at;
  }
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const Node& node = program.nodes[n];
    if (node.traits.op_class == OpClass::free) continue;
    for (const TensorId operand : node.operands) {
      List<NodeId>& readers = readers_[storage(operand)];
      if (readers.empty() || readers.back() != static_cast<NodeId>(n)) readers.push_back(static_cast<NodeId>(n));
    }
  }
  const auto keep = [&](TensorId tensor) { kept_[storage(tensor)] = true; };
  for (const TensorId result : program.results) {
    keep(result);
    returned_[storage(result)] = true;
  }
  for (const Loop& loop : program.loops) {
    for (const TensorId value : loop.yielded) keep(value);
    for (const TensorId value : loop.arguments) keep(value);
  }
}

}  // namespace llmperf::program
