#include "base/dtype.h"

#include <algorithm>
#include <array>

#include "base/format_kernel.h"

namespace llmperf {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, 13> kNames = {"fp64", "fp32", "tf32", "fp16", "bf16",  "fp8", "int8",
                                                     "fp4",  "int4", "bfp8", "bfp4", "int32", "bool"};
static_assert(static_cast<std::size_t>(Dtype::boolean) + 1 == kNames.size());

}  // namespace

std::string_view name(Dtype dtype) { return kNames[static_cast<std::size_t>(dtype)]; }

std::optional<Dtype> parse_dtype(std::string_view text) {
  const auto found = std::find(kNames.begin(), kNames.end(), text);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Dtype>(found - kNames.begin());
}

std::span<const std::string_view> dtype_names() { return kNames; }

std::string_view name(FormatKernel kernel) {
  constexpr std::string_view names[kFormatKernels] = {
      "fp8",  "fp8_block", "int8", "w8a8", "w4a8", "gptq", "awq",  "mxfp4", "nvfp4", "q2_k", "q3_k", "q4_k",
      "q5_k", "q6_k",      "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq",    "iq3",   "iq4",  "wide"};
  return names[static_cast<std::size_t>(kernel)];
}

}  // namespace llmperf
