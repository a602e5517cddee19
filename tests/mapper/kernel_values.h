// A device of round numbers, and profile values of which a test names those that matter.
#pragma once

#include <initializer_list>
#include <utility>

#include "base/list.h"
#include "hardware/runtime_profile.h"
#include "mapper/roofline/efficiency.h"
#include "mapper/roofline/kernels.h"

namespace llmperf::mapper {

// 100 TFLOP/s, 1 TB/s, 10 MB of cache, 10 cores.
inline KernelDevice round_device() {
  return {.matrix = 1e14, .unpacked = 1e14, .bandwidth = 1e12, .cache = 1e7, .cores = 10};
}
// The same with memory that takes no time.
inline KernelDevice compute_device() {
  return {.matrix = 1e14, .unpacked = 1e14, .bandwidth = 1e30, .cache = 1e7, .cores = 10};
}

// Whether a fit is told that the op's time may change with the parameter.
inline bool depends(const graph::Op& op, std::size_t parameter, const hardware::KernelChoices& choices) {
  return contains(parameters_of(op, choices), parameter);
}

inline double gemm_seconds(const KernelDevice& device, const hardware::ParameterValues& values,
                           const hardware::KernelChoices& choices, const GemmCall& call) {
  return gemm_time(device, values, choices, call).seconds;
}
inline double weight_seconds(const KernelDevice& device, const hardware::ParameterValues& values,
                             const hardware::KernelChoices& choices, FormatKernel format, const GemmCall& call) {
  return weight_time(device, values, choices, format, call).seconds;
}

// Shares of 1, times of 0, rates beyond notice and sums for norms, except for `set`.
inline hardware::ParameterValues values_with(std::initializer_list<std::pair<hardware::Parameter, double>> set) {
  using enum hardware::Parameter;
  hardware::ParameterValues values;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = hardware::parameter_info(i).unit == "s" ? 0 : 1;
  for (const hardware::Parameter p :
       {gemm_cache_rate, gemm_store_rate, decode_block_rate, prefill_exponential_rate, latent_prompt_exponential_rate,
        decode_head_rate, triton_rate, vector_reduce_rate, vector_sampling_rate, per_watt}) {
    values[index(p)] = 1e30;
  }
  for (const auto& [p, value] : set) values[index(p)] = value;
  return values;
}

}  // namespace llmperf::mapper
