// How long something takes on a device that is also disturbed: samples of many executions each, until they agree.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/units.h"

namespace llmperf::replay {

struct TimingOptions {
  Seconds sample{5e-3};  // a sample is as many passes as take that long
  Seconds budget{0.4};   // no more samples after that, once there are `fewest`
  std::int64_t fewest = 5;
  std::int64_t most = 31;
  std::function<bool()> go_on = {};  // asked between samples; false: one is enough
};

// Of one pass.
struct Timing {
  Seconds median;
  Seconds minimum;
  Seconds spread;  // between the quartiles: half of the samples lie in a range that wide
  std::int64_t samples = 0;
  std::int64_t passes = 0;  // in all samples together
};

// `run(passes)` executes so many passes and returns the seconds of all.
Timing time_passes(const std::function<Seconds(std::int64_t passes)>& run, const TimingOptions& options = {});

}  // namespace llmperf::replay
