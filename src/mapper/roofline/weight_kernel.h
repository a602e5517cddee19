// Time of products with quantised weights; the derivation is in weight_kernel.cpp.
#pragma once

#include "hardware/runtime_profile.h"
#include "mapper/roofline/gemm_kernel.h"
#include "mapper/roofline/kernel_device.h"

namespace llmperf::mapper {

// Formats whose numbers are those of Marlin, which stacks multiply AWQ's weights with as well (FormatKernels).
constexpr bool in_stripes(FormatKernel format) { return format == FormatKernel::gptq; }

// A product whose second operand is stored in a format of its own; call.second_bytes: as stored. `device.matrix` is the
// rate that dense products of the 16-bit activations have.
ProductTime weight_time(const KernelDevice& device, const hardware::ParameterValues& values,
                        const hardware::KernelChoices& choices, FormatKernel format, const GemmCall& call);
inline double weight_seconds(const KernelDevice& device, const hardware::ParameterValues& values,
                             const hardware::KernelChoices& choices, FormatKernel format, const GemmCall& call) {
  return weight_time(device, values, choices, format, call).seconds;
}

}  // namespace llmperf::mapper
