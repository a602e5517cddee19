#include "replay/timing.h"

#include <algorithm>
#include <cmath>

#include "calibrate/statistics.h"

namespace llmperf::replay {

Timing time_passes(const std::function<Seconds(std::int64_t)>& run, const TimingOptions& options) {
  constexpr std::int64_t kMostPasses = 1'000'000;
  // Looks until a sample is long enough: of four times as many passes each, but no more than the last suggests. A look
  // that something disturbed is followed by another, because it takes two in a row to end the search.
  std::int64_t passes = 1;
  for (int enough = 0; enough < 2 && passes < kMostPasses;) {
    const double seconds = std::max(run(passes).value, 1e-9);
    if (seconds >= options.sample.value) {
      enough += seconds >= 20 * options.sample.value ? 2 : 1;  // what is that long is not disturbed so much
      continue;
    }
    enough = 0;
    const double wanted = std::ceil(options.sample.value / seconds * static_cast<double>(passes));
    passes = static_cast<std::int64_t>(
        std::clamp(wanted, static_cast<double>(passes) + 1, std::min(4.0 * static_cast<double>(passes), 1e6)));
  }

  std::vector<double> samples;
  double spent = 0;
  while (static_cast<std::int64_t>(samples.size()) < options.most &&
         (static_cast<std::int64_t>(samples.size()) < options.fewest || spent < options.budget.value)) {
    if (options.go_on && !samples.empty() && !options.go_on()) break;
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
