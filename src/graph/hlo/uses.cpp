#include "graph/hlo/uses.h"

namespace llmperf::graph::hlo {

Uses::Uses(const Program& program) : copies_(copies_of(program)) {
  const std::size_t size = program.tensors.size();
  storage_.resize(size);
  readers_.resize(size);
  kept_.assign(size, false);
  returned_.assign(size, false);
  for (std::size_t t = 0; t < size; ++t) storage_[t] = static_cast<TensorId>(t);
  std::vector<bool> copied(size, false);
  for (const Copy& copy : copies_) copied[static_cast<std::size_t>(copy.changed)] = true;
  for (const Loop& loop : program.loops) {
    // A loop's values take turns in the storage of the initial ones.
    for (const TensorId argument : loop.arguments) {
      const TensorId initial = program.tensor(argument).same;
      if (initial != kNone && !copied[static_cast<std::size_t>(argument)]) {
        storage_[static_cast<std::size_t>(argument)] = initial;
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
  for (const TensorId result : program.results) {
    keep(result);
    returned_[static_cast<std::size_t>(storage(result))] = true;
  }
  for (const Loop& loop : program.loops) {
    for (const TensorId value : loop.yielded) keep(value);
    for (const TensorId value : loop.arguments) keep(value);
  }
}

}  // namespace llmperf::graph::hlo
