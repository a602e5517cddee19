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

// The engine whose rules a runtime follows, as serving::choose_engine takes it: "vllm@0.15.1"; empty: none's.
std::string engine_followed(const ModelRow& row);

// Sequences of the row's group that run together: as many as the engine's cache holds, of a profile that caps its batch
// as weights and cache leave room for in its share of the device's memory. The others wait. At least one.
std::int64_t running_batch(const estimate::Estimator& estimator, const hardware::RuntimeProfile& profile,
                           const StepRow& row, const graph::SequenceGroup& group);

}  // namespace llmperf::measure
