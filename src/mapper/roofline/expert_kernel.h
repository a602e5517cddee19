// Time of the routed experts of a layer by grouped kernels; the derivation is in expert_kernel.cpp.
#pragma once

#include <array>
#include <optional>

#include "base/format_kernel.h"
#include "graph/expert_load.h"
#include "hardware/runtime_profile.h"
#include "mapper/roofline/gemm_kernel.h"
#include "mapper/roofline/kernel_device.h"

namespace llmperf::mapper {

// Rows of all experts, m of them, times the matrices of those that get any: `call` as of one product of all rows.
// `format`: of weights in fewer than 16 bits; device.matrix is the rate of the type that is multiplied in.
ProductTime expert_time(const KernelDevice& device, const hardware::ParameterValues& values,
                        std::optional<FormatKernel> format, const GemmCall& call,
                        const std::array<double, graph::kTileRows.size()>& row_tiles);
// Whether rows of weights of that many elements are loaded in whole vectors.
bool is_aligned(double elements);

}  // namespace llmperf::mapper
