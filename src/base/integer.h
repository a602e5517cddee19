// Arithmetic of counts.
#pragma once

#include <cstdint>

namespace llmperf {

// Parts of size `by` that `x` is cut in, the last one smaller; both positive.
constexpr std::int64_t divide_up(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }

// A count as a factor of a formula over real numbers: short, because formulas are full of it.
constexpr double d(std::int64_t count) { return static_cast<double>(count); }

}  // namespace llmperf
