// How often a while loop runs, where its text says it: a counter that starts at a constant, is stepped by one and is
// compared with another constant.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "graph/hlo/program.h"

namespace llmperf::graph::hlo {

class Counters {
 public:
  // Takes note of an instruction whose (first) result is `result`, when it moves a counter.
  void note(const Instruction& i, TensorId result, const std::vector<TensorId>& operands, const Program& program);

  struct Trips {
    std::int64_t number = 0;
    bool exact = true;  // else the most: something that is not known may end the loop before
  };
  // Passes of a loop whose values are `inits` at first and whose condition returns `condition`.
  std::optional<Trips> trips(const Program& program, const Loop& loop, const std::vector<TensorId>& inits,
                             TensorId condition) const {
    return trips(program, loop, inits, condition, false, 0);
  }

  enum class Direction : unsigned char { lt, le, gt, ge, ne, eq, other };

 private:
  std::optional<Trips> trips(const Program& program, const Loop& loop, const std::vector<TensorId>& inits,
                             TensorId condition, bool negated, int depth) const;
  std::optional<std::int64_t> compared(const Program& program, const Loop& loop, const std::vector<TensorId>& inits,
                                       const Node& compare, Direction direction) const;
  struct Moved {  // base + offset
    TensorId base = kNone;
    std::int64_t offset = 0;
  };
  Moved moved(TensorId value) const;
  // The value if it is the same in every pass.
  std::optional<std::int64_t> fixed(const Program& program, const Loop& loop, const std::vector<TensorId>& inits,
                                    TensorId value) const;

  std::unordered_map<TensorId, Moved> moved_;
};

}  // namespace llmperf::graph::hlo
