// Time of a dense matrix product by a GPU's library; the derivation is in gemm_kernel.cpp.
#pragma once

#include "hardware/runtime_profile.h"
#include "mapper/roofline/kernel_device.h"

namespace llmperf::mapper {

// [m, k] x [k, n], `batch` times, with the bytes that each of these reads and writes.
struct GemmCall {
  double m = 0;
  double n = 0;
  double k = 0;
  double batch = 1;
  double first_bytes = 0;  // of all batches together
  double second_bytes = 0;
  double result_bytes = 0;
};

// Seconds of a dense product.
double gemm_seconds(const KernelDevice& device, const hardware::ParameterValues& values,
                    const hardware::KernelChoices& choices, const GemmCall& call);

// Seconds of a convolution of `flops` operations that moves `bytes`: one share of the peak, beside the memory's.
double convolution_seconds(const KernelDevice& device, const hardware::ParameterValues& values, double flops,
                           double bytes);

}  // namespace llmperf::mapper
