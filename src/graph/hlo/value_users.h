// Who uses the values of a program. Used by partition.cpp only.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/hlo/annotations.h"
#include "graph/hlo/program.h"

namespace llmperf::graph::hlo {

// Extents are written otherwise, elements stay as they are.
bool rearranges(const Node& node);

class ValueUsers {
 public:
  ValueUsers(const Program& program, const ProgramAnnotations& annotations);

  std::int64_t count(TensorId t) const { return users_[static_cast<std::size_t>(t)].count; }
  // Whether the only use of a value, in this loop (-1: outside of loops), is a constraint, maybe after it was
  // rearranged: there its summands are added up.
  bool constrained_next(TensorId t, int loop) const;

 private:
  struct Users {
    std::int64_t count = 0;
    NodeId last = kNone;
  };
  const Program& program_;
  const ProgramAnnotations& annotations_;
  std::vector<Users> users_;  // by tensor
};

}  // namespace llmperf::graph::hlo
