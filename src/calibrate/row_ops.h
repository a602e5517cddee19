// The ops that a measured kernel row stands for, and the batch that a step row really ran.
#pragma once

#include <cstdint>
#include <vector>

#include "calibrate/measurements.h"
#include "estimate/estimate.h"
#include "graph/op.h"
#include "hardware/device.h"
#include "hardware/runtime_profile.h"

namespace llmperf::calibrate {

// One op, or two where what was measured does two things (attention that appends to the cache, a product that is summed
// over ranks). Throws
// Error(bad_input) for layers whose shape is not known.
std::vector<graph::Op> ops_of(const OpRow& row, const hardware::RuntimeProfile& profile);

// Sequences that run together when weights and cache may take the profile's share of the device's memory; the others
// wait. At least one, at most the group's.
std::int64_t running_batch(const estimate::Estimator& estimator, const hardware::RuntimeProfile& profile,
                           const graph::SequenceGroup& group);

}  // namespace llmperf::calibrate
