// From a measured training step to a predicted one: the row becomes a request, and that is estimated under the profile
// it chooses, or under any other.
#pragma once

#include <memory>
#include <string>

#include "estimate/training.h"
#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "measure/training_row.h"
#include "request/resolve.h"
#include "request/sources.h"

namespace llmperf::measure {

struct TrainingRun {
  request::Request request;
  std::unique_ptr<request::Resolved> resolved;
  estimate::TrainingEstimate estimate;  // of resolved->profile
  double part = 1;  // that was measured of the step that is estimated, all of whose batches are whole

  Seconds time() const { return estimate.time * part; }
  const estimate::Setup& setup() const;
};

// Under `runtime`, the row's own where that is empty; `sources` has the device by its name. Throws Error(bad_input) for
// what no request can be.
TrainingRun resolve_run(const TrainingRow& row, const hardware::Device& device, const std::string& runtime,
                        request::Sources& sources);
// The same run under another one; "none" is the speed of light.
void resolve_again(TrainingRun& run, const std::string& runtime, request::Sources& sources);
// Estimates the run again, under `profile`, which is that of `device` at its full clock.
void estimate_under(TrainingRun& run, const hardware::RuntimeProfile& profile, const hardware::Device& device);

}  // namespace llmperf::measure
