// Time of a collective library's exchange (NCCL, HCCL); the derivation is in collective_kernel.cpp.
#pragma once

#include "graph/op.h"
#include "hardware/runtime_profile.h"
#include "mapper/roofline/kernel_device.h"

namespace llmperf::mapper {

// Seconds of a collective among devices of one node; `bytes` as graph::Collective::bytes().
double collective_seconds(const KernelDevice& device, const hardware::ParameterValues& values,
                          graph::CollectiveKind kind, double ranks, double bytes);

}  // namespace llmperf::mapper
