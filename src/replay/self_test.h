// Whether a backend computes what it should: small ops of every kind, whose results are compared with another
// backend's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/backend.h"

namespace llmperf::replay {

struct SelfTestResult {
  enum class Outcome : unsigned char { passed, failed, unavailable };
  std::string op;  // describe(row)
  Outcome outcome = Outcome::unavailable;
  // Norm of the difference over the norm of the reference's result, and what its type's rounding allows; nothing where
  // nothing was compared.
  std::optional<double> error = {};
  std::optional<double> tolerance = {};
  std::string reason = {};  // why not available, or what failed
};
std::string_view name(SelfTestResult::Outcome outcome);

// A fixed list of small ops of every kind that operands.h lists. Types that the reference does not have it computes in
// fp32. What goes wrong on a device fails the op, and those after it are not run.
std::vector<SelfTestResult> self_test(Backend& tested, Backend& reference);

// Whether any op failed.
bool failed(const std::vector<SelfTestResult>& results);

}  // namespace llmperf::replay
