// The ops that a measured kernel row stands for, how a step row ran, and the batch that it really ran.
#pragma once

#include <cstdint>
#include <vector>

#include "estimate/estimate.h"
#include "graph/op.h"
#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "measure/measurements.h"
#include "model/decoder.h"

namespace llmperf::measure {

// One op, or two where what was measured does two things (attention that appends to the cache, a product that is summed
// over ranks). Throws
// Error(bad_input) for layers whose shape is not known.
std::vector<graph::Op> ops_of(const OpRow& row, const hardware::RuntimeProfile& profile);

// The setup of a step row under the profile, which must outlive it; without what is on a host. Throws Error(bad_input).
estimate::Choices step_choices(const StepRow& row, const hardware::RuntimeProfile& profile,
                               const model::Decoder& decoder);

// Sequences that run together when weights and cache may take the profile's share of the device's memory; the others
// wait. At least one, at most the group's.
std::int64_t running_batch(const estimate::Estimator& estimator, const hardware::RuntimeProfile& profile,
                           const graph::SequenceGroup& group);

}  // namespace llmperf::measure
