// Why an op is left out, from the depth of its preparation to prepare(), where it becomes an Unavailable.
#pragma once

#include <string>
#include <utility>

namespace llmperf::replay::ascend {

struct Refusal {
  std::string reason;
};

// The op needs what does not hold.
inline void require(bool holds, std::string reason) {
  if (!holds) throw Refusal{std::move(reason)};
}

}  // namespace llmperf::replay::ascend
