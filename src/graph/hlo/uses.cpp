#include "graph/hlo/uses.h"

namespace llmperf::graph::hlo {
namespace {

// The operand that the n-th result of a node shares its storage with, or kNone.
TensorId shared(const Program& program, const Node& node, std::size_t n) {
  if (node.operands.empty()) return kNone;
  const bool same_place = node.results.size() == node.operands.size();
  const TensorId operand = node.operands[same_place ? n : 0];
  const Type& from = program.type(operand);
  const Type& to = program.type(node.results[n]);
  if (node.traits.op_class == OpClass::update) return operand;
  if (node.inserted && !node.inserted->kind) return operand;
  if (node.traits.op_class != OpClass::free || !from.tensor() || !to.tensor()) return kNone;
  const bool whole = from.bytes() == to.bytes();
  const bool boundary = program.tensor(node.results[n]).same == operand;  // shapes of one device, or of all
  return whole || boundary ? operand : kNone;
}

}  // namespace

Uses::Uses(const Program& program) {
  const std::size_t size = program.tensors.size();
  storage_.resize(size);
  readers_.resize(size);
  kept_.assign(size, false);
  for (std::size_t t = 0; t < size; ++t) storage_[t] = static_cast<TensorId>(t);
  for (const Loop& loop : program.loops) {
    // A loop's values take turns in the storage of the initial ones.
    for (const TensorId argument : loop.arguments) {
      const TensorId initial = program.tensor(argument).same;
      if (initial != kNone) storage_[static_cast<std::size_t>(argument)] = initial;
    }
  }
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const Node& node = program.nodes[n];
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      const TensorId other = shared(program, node, k);
      if (other != kNone) storage_[static_cast<std::size_t>(node.results[k])] = other;
    }
  }
  // Chains end at what points to itself; tensors are made after those that they share with.
  for (std::size_t t = 0; t < size; ++t) {
    TensorId at = static_cast<TensorId>(t);
    while (storage_[static_cast<std::size_t>(at)] != at) at = storage_[static_cast<std::size_t>(at)];
    storage_[t] = at;
  }
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const Node& node = program.nodes[n];
    if (node.traits.op_class == OpClass::free) continue;
    for (const TensorId operand : node.operands) {
      std::vector<NodeId>& readers = readers_[static_cast<std::size_t>(storage(operand))];
      if (readers.empty() || readers.back() != static_cast<NodeId>(n)) readers.push_back(static_cast<NodeId>(n));
    }
  }
  const auto keep = [&](TensorId tensor) { kept_[static_cast<std::size_t>(storage(tensor))] = true; };
  for (const TensorId result : program.results) keep(result);
  for (const Loop& loop : program.loops) {
    for (const TensorId value : loop.yielded) keep(value);
    for (const TensorId value : loop.arguments) keep(value);
  }
}

bool is_splat(const Program& program, TensorId tensor) {
  const NodeId node = program.tensor(tensor).node;
  if (node == kNone) return false;
  const Instruction& i = *program.node(node).instruction;
  if (i.op() != "constant") return false;
  const auto text = i.find("value") ? i.find("value") : i.unnamed();
  if (!text || !text->starts_with("dense<")) return false;
  const std::string_view head = text->substr(6, 1);
  return head != "[" && (head != "\"" || program.type(tensor).elements() == 1);
}

}  // namespace llmperf::graph::hlo
