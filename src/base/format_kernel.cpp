#include "base/format_kernel.h"

namespace llmperf {

std::string_view name(FormatKernel kernel) {
  constexpr std::string_view names[kFormatKernels] = {"fp8",   "fp8_block", "int8", "w8a8", "w4a8", "gptq", "awq",
                                                      "mxfp4", "nvfp4",     "q2_k", "q3_k", "q4_k", "q5_k", "q6_k",
                                                      "q4_0",  "q4_1",      "q5_0", "q5_1", "q8_0", "iq",   "wide"};
  return names[static_cast<std::size_t>(kernel)];
}

}  // namespace llmperf
