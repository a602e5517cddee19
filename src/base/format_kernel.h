// Families of kernels that multiply with weights stored in fewer than 16 bits: what a runtime's speed on them hangs on.
#pragma once

#include <cstddef>
#include <string_view>

namespace llmperf {

// fp8_block: with a scale per block of weights and per run of activations, which the products are multiplied with on
// the way. nvfp4: both operands, where the device multiplies in 4 bits. ggml's types have kernels of their own; iq: its
// codebooks of eight weights an entry (1, 2 bits), iq3: of four, iq4: its tables of one; wide: its types of 16 and 32
// bits, which other stacks multiply as they do activations.
// clang-format off
enum class FormatKernel : unsigned char {
  fp8, fp8_block, int8, w8a8, w4a8, gptq, awq, mxfp4, nvfp4, q2_k, q3_k, q4_k, q5_k, q6_k, q4_0, q4_1, q5_0, q5_1, q8_0, iq, iq3, iq4, wide, count
};
// clang-format on
inline constexpr std::size_t kFormatKernels = static_cast<std::size_t>(FormatKernel::count);
std::string_view name(FormatKernel kernel);
// Whether activations are brought to 8 bits too, where the device multiplies in these.
constexpr bool multiplies_in_8_bits(FormatKernel kernel) {
  return kernel == FormatKernel::fp8 || kernel == FormatKernel::fp8_block || kernel == FormatKernel::w8a8 ||
         kernel == FormatKernel::w4a8;
}

}  // namespace llmperf
