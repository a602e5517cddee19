#include "model/ggml_type.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace llmperf::model {
namespace {

constexpr std::array<GgmlTypeInfo, 35> kTypes = {{
    {GgmlType::f32, "F32", 1, 4},
    {GgmlType::f16, "F16", 1, 2},
    {GgmlType::q4_0, "Q4_0", 32, 18},         // fp16 scale, 32 x 4 bits
    {GgmlType::q4_1, "Q4_1", 32, 20},         // fp16 scale and minimum
    {GgmlType::q5_0, "Q5_0", 32, 22},         // fp16 scale, 32 fifth bits, 32 x 4 bits
    {GgmlType::q5_1, "Q5_1", 32, 24},         //
    {GgmlType::q8_0, "Q8_0", 32, 34},         // fp16 scale, 32 bytes
    {GgmlType::q8_1, "Q8_1", 32, 36, false},  // activations only
    {GgmlType::q2_k, "Q2_K", 256, 84},        // 16 4-bit scales and minima, 256 x 2 bits, two fp16
    {GgmlType::q3_k, "Q3_K", 256, 110},       // 256 high bits, 256 x 2 bits, 16 6-bit scales, fp16
    {GgmlType::q4_k, "Q4_K", 256, 144},       // 8 6-bit scales and minima, two fp16
    {GgmlType::q5_k, "Q5_K", 256, 176},       //
    {GgmlType::q6_k, "Q6_K", 256, 210},       // 16 8-bit scales, fp16
    {GgmlType::q8_k, "Q8_K", 256, 292, false},
    {GgmlType::iq2_xxs, "IQ2_XXS", 256, 66},
    {GgmlType::iq2_xs, "IQ2_XS", 256, 74},
    {GgmlType::iq3_xxs, "IQ3_XXS", 256, 98},
    {GgmlType::iq1_s, "IQ1_S", 256, 50},
    {GgmlType::iq4_nl, "IQ4_NL", 32, 18},
    {GgmlType::iq3_s, "IQ3_S", 256, 110},
    {GgmlType::iq2_s, "IQ2_S", 256, 82},
    {GgmlType::iq4_xs, "IQ4_XS", 256, 136},
    {GgmlType::i8, "I8", 1, 1, false},
    {GgmlType::i16, "I16", 1, 2, false},
    {GgmlType::i32, "I32", 1, 4, false},
    {GgmlType::i64, "I64", 1, 8, false},
    {GgmlType::f64, "F64", 1, 8, false},
    {GgmlType::iq1_m, "IQ1_M", 256, 56},
    {GgmlType::bf16, "BF16", 1, 2},
    {GgmlType::tq1_0, "TQ1_0", 256, 54},
    {GgmlType::tq2_0, "TQ2_0", 256, 66},
    {GgmlType::mxfp4, "MXFP4", 32, 17},  // 8-bit exponent, 32 x 4 bits
    {GgmlType::nvfp4, "NVFP4", 64, 36},  // four 8-bit scales, 64 x 4 bits
    {GgmlType::q1_0, "Q1_0", 128, 18},
    {GgmlType::q2_0, "Q2_0", 64, 18},
}};

}  // namespace

std::span<const GgmlTypeInfo> ggml_types() { return kTypes; }

const GgmlTypeInfo* find_ggml_type(std::uint32_t id) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(),
                                  [id](const GgmlTypeInfo& t) { return static_cast<std::uint32_t>(t.type) == id; });
  return found == kTypes.end() ? nullptr : &*found;
}

const GgmlTypeInfo& info(GgmlType type) {
  const GgmlTypeInfo* found = find_ggml_type(static_cast<std::uint32_t>(type));
  if (found == nullptr) throw std::logic_error("internal error: a ggml type without a row in the table");
  return *found;
}

Bytes ggml_bytes(GgmlType type, std::int64_t n, std::int64_t k) {
  const GgmlTypeInfo& t = info(type);
  const std::int64_t row = k / t.block * t.block_bytes;
  return Bytes{static_cast<double>(n) * static_cast<double>(row)};
}

namespace {

FormatKernel kernel_of(GgmlType type) {
  switch (type) {
    case GgmlType::q2_k: return FormatKernel::q2_k;
    case GgmlType::q3_k: return FormatKernel::q3_k;
    case GgmlType::q4_k: return FormatKernel::q4_k;
    case GgmlType::q5_k: return FormatKernel::q5_k;
    case GgmlType::q6_k: return FormatKernel::q6_k;
    case GgmlType::q4_0: return FormatKernel::q4_0;
    case GgmlType::q4_1: return FormatKernel::q4_1;
    case GgmlType::q5_0: return FormatKernel::q5_0;
    case GgmlType::q5_1: return FormatKernel::q5_1;
    case GgmlType::q8_0:
    case GgmlType::q8_1:
    case GgmlType::q8_k: return FormatKernel::q8_0;
    case GgmlType::mxfp4:
    case GgmlType::nvfp4: return FormatKernel::mxfp4;
    default: return FormatKernel::iq;
  }
}

}  // namespace

StoredFormat stored_format(GgmlType type) {
  const GgmlTypeInfo& t = info(type);
  StoredFormat format{.name = t.name, .bits = t.bits(), .compute = Dtype::fp16, .dequant_flops = 2};
  if (type == GgmlType::f32) format.compute = Dtype::fp32;
  if (type == GgmlType::bf16) format.compute = Dtype::bf16;
  if (t.block == 1) format.dequant_flops = 0;
  if (t.block > 1) format.kernel = kernel_of(type);
  return format;
}

}  // namespace llmperf::model
