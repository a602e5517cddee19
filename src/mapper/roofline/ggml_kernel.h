// Time of ggml's products and attention (llama.cpp); the derivation is in ggml_kernel.cpp.
#pragma once

#include "base/format_kernel.h"
#include "hardware/runtime_profile.h"
#include "mapper/roofline/attention_kernel.h"
#include "mapper/roofline/gemm_kernel.h"
#include "mapper/roofline/kernel_device.h"

namespace llmperf::mapper {

// Which of ggml's products runs: of few rows on the vector units, of weights as they are packed, or of 16 bits.
enum class GgmlProduct : unsigned char { few_rows, packed, wide };
GgmlProduct ggml_product(const hardware::KernelChoices& choices, FormatKernel format, double rows);

// Whether products of 16-bit weights are the backend's own, and load them as packed ones, or a vendor's library.
bool has_own_wide(const hardware::KernelChoices& choices);

// A product with weights of the format; `experts`: of several that one kernel multiplies. call.second_bytes: as stored.
// device.unpacked: the rate of 16-bit products.
ProductTime ggml_time(const KernelDevice& device, const hardware::ParameterValues& values,
                      const hardware::KernelChoices& choices, FormatKernel format, const GemmCall& call, bool experts);
// A product with the cache where the scores are kept in memory; call.second_bytes: of the cache.
ProductTime scores_time(const KernelDevice& device, const hardware::ParameterValues& values, const GemmCall& call);
// Attention in one kernel, of `tile` rows of queries after one another (0: of all at once).
double ggml_attention_seconds(const KernelDevice& device, const hardware::ParameterValues& values,
                              const AttentionCall& call, double tile);

}  // namespace llmperf::mapper
