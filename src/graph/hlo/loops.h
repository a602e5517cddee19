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

  // Passes of a loop whose values are `inits` at first and whose condition returns `condition`.
  std::optional<std::int64_t> trips(const Program& program, const Loop& loop, const std::vector<TensorId>& inits,
                                    TensorId condition) const;

 private:
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
