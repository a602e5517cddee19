#include "estimate/context_curve.h"

#include <algorithm>
#include <set>

namespace llmperf::estimate {
namespace {

constexpr int kPowers = 16;

std::set<std::int64_t> contexts(const Estimator& estimator, const Estimate& e) {
  const std::int64_t own = estimator.tokens(e.scenario);
  const std::int64_t trained = estimator.setup().execution.model->max_position.value_or(0);
  // What fits far beyond the length that the model is made for is of no use, where that length is known.
  const std::int64_t fitting = trained > 0 ? std::min(4 * trained, e.longest_context) : e.longest_context;
  const std::int64_t last = std::max({own, trained, fitting});
  std::set<std::int64_t> points = {own, last};
  if (fitting > 0) points.insert(fitting);
  std::int64_t power = 1;
  while (power <= last / 2) power *= 2;
  for (int i = 0; i < kPowers && power >= estimator.prompt_unit(); ++i, power /= 2) points.insert(power);
  return points;
}

// Prompts that a plan cuts are multiples of a unit; of a shorter context nothing is left to cut.
Scenario scenario_of(const Estimator& estimator, const Scenario& s, std::int64_t context) {
  const std::int64_t unit = estimator.prompt_unit();
  const std::int64_t generate = estimator.tokens(s) - s.prompt;  // and what was cached before
  const std::int64_t prompt = std::max(unit, (context - std::min(generate, context)) / unit * unit);
  Scenario other = s;
  other.prompt = prompt;
  other.generate = std::max<std::int64_t>(context - prompt, 0);
  other.depth = 0;
  return other;
}

}  // namespace

std::vector<ContextPoint> context_curve(Estimator& estimator, const Estimate& estimate) {
  std::vector<ContextPoint> curve;
  Phase step;
  for (const std::int64_t context : contexts(estimator, estimate)) {
    const Scenario s = scenario_of(estimator, estimate.scenario, context);
    ContextPoint point{context, estimator.memory(s).kv_cache, estimator.fits(s), {}};
    if (point.fits && estimator.setup().serving.decodes()) {
      estimator.decode_step(s, context, step);
      point.decode_step = step.time;
    }
    curve.push_back(point);
  }
  return curve;
}

}  // namespace llmperf::estimate
