#include "graph/hlo/value_users.h"

namespace llmperf::graph::hlo {
namespace {

constexpr NodeId kResult = -2;  // "user" of a result whose sharding is given

}  // namespace

bool rearranges(const Node& node) {
  return node.instruction->op() == "reshape" || node.instruction->op() == "transpose";
}

ValueUsers::ValueUsers(const Program& program, const ProgramAnnotations& annotations)
    : program_(program), annotations_(annotations), users_(program.tensors.size()) {
  const auto use = [&](TensorId t, NodeId by) {
    ++users_[static_cast<std::size_t>(t)].count;
    users_[static_cast<std::size_t>(t)].last = by;
  };
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    for (const TensorId t : program.nodes[n].operands) use(t, static_cast<NodeId>(n));
  }
  for (const Loop& loop : program.loops) {
    for (const TensorId t : loop.yielded) use(t, kNone);
  }
  for (std::size_t n = 0; n < program.results.size(); ++n) {
    const auto& given = annotations.results();
    use(program.results[n], n < given.size() && given[n].form == Sharding::Form::tiled ? kResult : kNone);
  }
}

bool ValueUsers::constrained_next(TensorId t, int loop) const {
  constexpr int kMaxSteps = 16;
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    const auto& [count, user] = users_[static_cast<std::size_t>(t)];
    if (count != 1 || user == kNone) return false;
    if (user == kResult) return loop < 0;
    const Node& node = program_.node(user);
    if (node.loop != loop || node.results.size() != 1) return false;
    if (is_constraint(*node.instruction)) return !annotations_.of(*node.instruction).empty();
    if (!rearranges(node)) return false;
    t = node.results[0];
  }
  return false;
}

}  // namespace llmperf::graph::hlo
