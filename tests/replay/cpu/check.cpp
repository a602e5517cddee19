#include "check.h"

#include <cmath>

#include "catch.h"
#include "reference.h"

namespace llmperf::replay::cpu {

std::unique_ptr<Prepared> prepared(Backend& backend, const measure::OpRow& op, std::int64_t copies) {
  auto made = backend.prepare(op, copies);
  if (const auto* reason = std::get_if<Unavailable>(&made)) FAIL(measure::describe(op) << ": " << reason->reason);
  return std::get<std::unique_ptr<Prepared>>(std::move(made));
}

void check_op(Backend& backend, const measure::OpRow& op) {
  INFO(op.op << ' ' << measure::describe(op));
  const auto ready = prepared(backend, op);
  const std::vector<float> result = backend.result(*ready);
  const std::vector<double> expected = reference(op);
  REQUIRE(result.size() == expected.size());
  const double tolerance = op.dtype == Dtype::fp32 ? 2e-5 : 8e-3;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double error = std::abs(static_cast<double>(result[i]) - expected[i]);
    if (!(error <= tolerance * std::max(1.0, std::abs(expected[i]))) && wrong++ == 0) {
      CAPTURE(i);
      CHECK(static_cast<double>(result[i]) == expected[i]);
    }
  }
  CHECK(wrong == 0);
}

void check_unavailable(Backend& backend, const measure::OpRow& op, const std::string& text) {
  INFO(op.op << ' ' << measure::describe(op));
  const auto made = backend.prepare(op, 1);
  const auto* reason = std::get_if<Unavailable>(&made);
  REQUIRE(reason != nullptr);
  CHECK_THAT(reason->reason, Catch::Contains(text));
}

}  // namespace llmperf::replay::cpu
