// What a collective library (NCCL, HCCL) makes of the links between devices, in the numbers of a runtime profile.
#pragma once

#include "cost/collective.h"
#include "hardware/runtime_profile.h"

namespace llmperf::mapper {

// The links as a library drives them: its shares of the rates, its launches, and its steps, none of which is shorter
// than a latency that the device's file states. (One that is assumed gives way to the profile's.) Inside a node rings
// of chunks, and all-reduces by the stack's own kernels where it has them; between nodes every algorithm.
cost::Cluster driven(const cost::Cluster& cluster, const hardware::RuntimeProfile& profile);

}  // namespace llmperf::mapper
