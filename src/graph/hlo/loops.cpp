#include "graph/hlo/loops.h"

#include <algorithm>

namespace llmperf::graph::hlo {
namespace {

using Direction = Counters::Direction;

// LT of `compare LT, …`, #stablehlo<comparison_direction LT> or "LT".
Direction direction_of(const Instruction& i) {
  const auto named = i.find("comparison_direction");
  const std::string_view text = named ? *named : i.unnamed().value_or(std::string_view{});
  const auto has = [&](std::string_view word) {
    const std::size_t at = text.rfind(word);
    return at != std::string_view::npos;
  };
  if (has("LT")) return Direction::lt;
  if (has("LE")) return Direction::le;
  if (has("GT")) return Direction::gt;
  if (has("GE")) return Direction::ge;
  if (has("NE")) return Direction::ne;
  if (has("EQ")) return Direction::eq;
  return Direction::other;
}

Direction swapped(Direction d) {
  switch (d) {
    case Direction::lt: return Direction::gt;
    case Direction::le: return Direction::ge;
    case Direction::gt: return Direction::lt;
    case Direction::ge: return Direction::le;
    default: return d;
  }
}

Direction opposite(Direction d) {
  switch (d) {
    case Direction::lt: return Direction::ge;
    case Direction::le: return Direction::gt;
    case Direction::gt: return Direction::le;
    case Direction::ge: return Direction::lt;
    case Direction::ne: return Direction::eq;
    case Direction::eq: return Direction::ne;
    default: return d;
  }
}

constexpr std::int64_t kMost = std::int64_t{1} << 50;

// Passes until start + n step is no longer `direction` limit.
std::optional<std::int64_t> count(std::int64_t start, std::int64_t step, Direction direction, std::int64_t limit) {
  if (std::max({start, step, limit}) > kMost || std::min({start, step, limit}) < -kMost) return std::nullopt;
  if (direction == Direction::gt || direction == Direction::ge) {
    // Counting down is counting up with the signs changed.
    start = -start;
    step = -step;
    limit = -limit;
    direction = direction == Direction::gt ? Direction::lt : Direction::le;
  }
  if (direction == Direction::le) {
    ++limit;
    direction = Direction::lt;
  }
  const std::int64_t distance = limit - start;
  if (direction == Direction::lt) {
    if (distance <= 0) return 0;
    if (step <= 0) return std::nullopt;
    return (distance + step - 1) / step;
  }
  if (direction == Direction::ne && step != 0 && distance % step == 0 && distance / step >= 0) return distance / step;
  return std::nullopt;
}

}  // namespace

Counters::Moved Counters::moved(TensorId value) const {
  const auto found = moved_.find(value);
  return found == moved_.end() ? Moved{value, 0} : found->second;
}

void Counters::note(const Instruction& i, TensorId result, const std::vector<TensorId>& operands,
                    const Program& program) {
  if (operands.empty()) return;
  const std::string_view op = i.op();
  const auto scalar = [&](TensorId id) {
    const Type& type = program.type(id);
    return type.tensor() && type.element.kind == ElementClass::integer && type.elements() == 1;
  };
  if (!scalar(operands[0])) return;
  if (op == "convert" || op == "reshape" || op == "copy") {
    moved_[result] = moved(operands[0]);
    return;
  }
  if (operands.size() != 2 || (op != "add" && op != "subtract")) return;
  const auto value = [&](TensorId id) -> std::optional<std::int64_t> {
    const std::vector<std::int64_t>& integers = program.tensor(id).integers;
    return integers.size() == 1 && integers[0] < kMost && integers[0] > -kMost ? std::optional(integers[0])
                                                                               : std::nullopt;
  };
  const auto put = [&](TensorId base, std::int64_t by) {
    Moved m = moved(base);
    if (m.offset > kMost || m.offset < -kMost) return;
    m.offset += by;
    moved_[result] = m;
  };
  if (const auto by = value(operands[1])) {
    put(operands[0], op == "add" ? *by : -*by);
  } else if (const auto first = value(operands[0]); first && op == "add") {
    put(operands[1], *first);
  }
}

std::optional<std::int64_t> Counters::fixed(const Program& program, const Loop& loop,
                                            const std::vector<TensorId>& inits, TensorId value) const {
  const Moved m = moved(value);
  const auto single = [&](TensorId id) -> std::optional<std::int64_t> {
    const std::vector<std::int64_t>& integers = program.tensor(id).integers;
    return integers.size() == 1 ? std::optional(integers[0]) : std::nullopt;
  };
  if (const auto known = single(value)) return known;
  std::optional<std::int64_t> base = single(m.base);
  for (std::size_t n = 0; n < loop.arguments.size() && !base; ++n) {
    const bool kept =
        loop.arguments[n] == m.base && moved(loop.yielded[n]).base == m.base && moved(loop.yielded[n]).offset == 0;
    if (kept) base = single(inits[n]);
  }
  if (!base || *base > kMost || *base < -kMost) return std::nullopt;
  return *base + m.offset;
}

std::optional<Counters::Trips> Counters::trips(const Program& program, const Loop& loop,
                                               const std::vector<TensorId>& inits, TensorId condition, bool negated,
                                               int depth) const {
  constexpr int kMaxDepth = 8;
  const Tensor& tensor = program.tensor(condition);
  if (tensor.integers.size() == 1 && (tensor.integers[0] == 0) != negated) return Trips{0, true};
  if (tensor.node == kNone || depth == kMaxDepth) return std::nullopt;
  const Node& node = program.node(tensor.node);
  const std::string_view op = node.instruction->op();
  if (op == "not" && node.operands.size() == 1) {
    return trips(program, loop, inits, node.operands[0], !negated, depth + 1);
  }
  if (node.operands.size() != 2) return std::nullopt;
  if (op == (negated ? "or" : "and")) {
    // It ends with the first of two.
    std::optional<Trips> least;
    bool both = true;
    for (const TensorId operand : node.operands) {
      const std::vector<std::int64_t>& integers = program.tensor(operand).integers;
      if (integers.size() == 1 && (integers[0] != 0) != negated) continue;  // never ends it
      const auto one = trips(program, loop, inits, operand, negated, depth + 1);
      both = both && one && one->exact;
      if (one && (!least || one->number < least->number)) least = one;
    }
    if (least) least->exact = both || (least->exact && least->number == 0);
    return least;
  }
  if (op != "compare") return std::nullopt;
  const Direction found = direction_of(*node.instruction);
  const auto number = compared(program, loop, inits, node, negated ? opposite(found) : found);
  return number ? std::optional(Trips{*number, true}) : std::nullopt;
}

std::optional<std::int64_t> Counters::compared(const Program& program, const Loop& loop,
                                               const std::vector<TensorId>& inits, const Node& compare,
                                               Direction direction) const {
  for (int side = 0; side < 2; ++side) {
    const Moved counter = moved(compare.operands[static_cast<std::size_t>(side)]);
    const auto limit = fixed(program, loop, inits, compare.operands[static_cast<std::size_t>(1 - side)]);
    if (!limit) continue;
    for (std::size_t n = 0; n < loop.arguments.size(); ++n) {
      if (loop.arguments[n] != counter.base) continue;
      const Moved next = moved(loop.yielded[n]);
      const std::vector<std::int64_t>& initial = program.tensor(inits[n]).integers;
      if (next.base != counter.base || initial.size() != 1 || initial[0] > kMost || initial[0] < -kMost) continue;
      return count(initial[0] + counter.offset, next.offset, side == 0 ? direction : swapped(direction), *limit);
    }
  }
  return std::nullopt;
}

}  // namespace llmperf::graph::hlo
