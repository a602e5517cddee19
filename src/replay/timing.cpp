#include "replay/timing.h"

#include <algorithm>
#include <cmath>

#include "calibrate/statistics.h"

namespace llmperf::replay {

Timing time_passes(const std::function<Seconds(std::int64_t)>& run, const TimingOptions& options) {
  constexpr std::int64_t kMostPasses = 1'000'000;
  // A first look with one pass, a second with as many as that suggests: a single short pass is mostly overhead.
  double pass = std::max(run(1).value, 1e-9);
  const auto passes_for = [&](double seconds) {
    return static_cast<std::int64_t>(std::clamp(std::ceil(seconds / pass), 1.0, static_cast<double>(kMostPasses)));
  };
  if (pass < options.sample.value) {
    const std::int64_t probe = passes_for(options.sample.value / 4);
    pass = std::max(run(probe).value / static_cast<double>(probe), 1e-9);
  }
  const std::int64_t passes = passes_for(options.sample.value);

  std::vector<double> samples;
  double spent = 0;
  while (static_cast<std::int64_t>(samples.size()) < options.most &&
         (static_cast<std::int64_t>(samples.size()) < options.fewest || spent < options.budget.value)) {
    const double seconds = run(passes).value;
    spent += seconds;
    samples.push_back(seconds / static_cast<double>(passes));
  }
  const auto count = static_cast<std::int64_t>(samples.size());
  return {.median = Seconds{calibrate::quantile(samples, 0.5)},
          .minimum = Seconds{*std::min_element(samples.begin(), samples.end())},
          .spread = Seconds{calibrate::quantile(samples, 0.75) - calibrate::quantile(samples, 0.25)},
          .samples = count,
          .passes = count * passes};
}

}  // namespace llmperf::replay
