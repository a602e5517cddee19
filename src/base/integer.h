// Arithmetic of counts.
#pragma once

#include <cstdint>
#include <utility>

namespace llmperf {

// Parts of size `by` that `x` is cut in, the last one smaller; both positive.
constexpr std::int64_t divide_up(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }

// A count as a factor of a formula over real numbers: short, because formulas are full of it.
constexpr double d(std::int64_t count) { return static_cast<double>(count); }

// The numbers from `low` on that `holds` says yes to, and those up to `high` that it does not, are one behind the
// other: the last of the first ones, and the first of the others.
template <class Holds>
std::pair<std::int64_t, std::int64_t> bisect(std::int64_t low, std::int64_t high, Holds&& holds) {
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return {low, high};
}

}  // namespace llmperf
