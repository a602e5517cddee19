// The KV cache and a decode step over the context.
#include "estimate/context_curve.h"

#include <algorithm>

#include "builtin.h"
#include "catch.h"

namespace llmperf::context_curve_test {

using estimate::ContextPoint;

namespace {

struct Curve {
  estimate::Estimate estimate;
  std::vector<ContextPoint> points;
  const ContextPoint& at(std::int64_t context) const {
    const auto found =
        std::find_if(points.begin(), points.end(), [&](const ContextPoint& p) { return p.context == context; });
    REQUIRE(found != points.end());
    return *found;
  }
};

Curve curve_of(const char* hardware, const estimate::Scenario& scenario, const estimate::Choices& choices = {}) {
  estimate::Estimator estimator(estimate::make_setup(test::decoder("qwen-7b"), test::device(hardware), choices));
  Curve curve;
  curve.estimate = estimator.run(scenario);
  curve.points = estimate::context_curve(estimator, curve.estimate);
  return curve;
}

}  // namespace

TEST_CASE("the cache grows by the bytes of a token, a step is that of the estimate", "[context]") {
  const Curve curve = curve_of("rtx4090", {1, 512, 128});
  // 2 halves x 32 layers x 4096 elements x 2 bytes
  for (const ContextPoint& p : curve.points) CHECK(p.kv_cache.value == 524288.0 * static_cast<double>(p.context));
  CHECK(curve.at(640).kv_cache == curve.estimate.memory.kv_cache);
  CHECK(curve.at(512).decode_step == curve.estimate.tpot_first);
  CHECK(std::is_sorted(curve.points.begin(), curve.points.end(), [](const auto& a, const auto& b) {
    return a.decode_step <= b.decode_step && a.context < b.context;
  }));
}

TEST_CASE("the curve has the request, what fits at most and what the model is made for", "[context]") {
  const Curve curve = curve_of("rtx4090", {1, 512, 128});
  CHECK(curve.at(8192).fits);  // qwen-7b's own length
  CHECK(curve.at(curve.estimate.longest_context).fits);
  CHECK(curve.points.back().context == curve.estimate.longest_context);
  CHECK(curve.points.size() <= 19);

  const Curve tight = curve_of("rtx4090", {4, 512, 128});  // a fourth of the context
  const std::int64_t longest = tight.estimate.longest_context;
  CHECK(longest < 8192);
  for (const ContextPoint& p : tight.points) {
    CHECK(p.fits == (p.context <= longest));
    CHECK(p.decode_step.has_value() == p.fits);
  }
  CHECK(tight.points.back().context == 8192);
}

TEST_CASE("what fits nowhere has a cache and no times", "[context]") {
  const Curve curve = curve_of("rtx4090", {1000000, 512, 128});
  CHECK(curve.at(640).kv_cache.value == 1e6 * 640 * 524288);
  CHECK(std::none_of(curve.points.begin(), curve.points.end(),
                     [](const ContextPoint& p) { return p.decode_step.has_value(); }));
}

}  // namespace llmperf::context_curve_test
