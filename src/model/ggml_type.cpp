#include "model/ggml_type.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace llmperf::model {
namespace {

using T = GgmlType;
using K = FormatKernel;
constexpr GgmlTypeInfo kGgmlTypes[] = {
    {T::f32, "F32", 1, 4},
    {T::f16, "F16", 1, 2},
    {T::q4_0, "Q4_0", 32, 18, K::q4_0},         // fp16 scale, 32 x 4 bits
    {T::q4_1, "Q4_1", 32, 20, K::q4_1},         // fp16 scale and minimum
    {T::q5_0, "Q5_0", 32, 22, K::q5_0},         // fp16 scale, 32 fifth bits, 32 x 4 bits
    {T::q5_1, "Q5_1", 32, 24, K::q5_1},         //
    {T::q8_0, "Q8_0", 32, 34, K::q8_0},         // fp16 scale, 32 bytes
    {T::q8_1, "Q8_1", 32, 36, K::q8_0, false},  // activations only
    {T::q2_k, "Q2_K", 256, 84, K::q2_k},        // 16 4-bit scales and minima, 256 x 2 bits, two fp16
    {T::q3_k, "Q3_K", 256, 110, K::q3_k},       // 256 high bits, 256 x 2 bits, 16 6-bit scales, fp16
    {T::q4_k, "Q4_K", 256, 144, K::q4_k},       // 8 6-bit scales and minima, two fp16
    {T::q5_k, "Q5_K", 256, 176, K::q5_k},       //
    {T::q6_k, "Q6_K", 256, 210, K::q6_k},       // 16 8-bit scales, fp16
    {T::q8_k, "Q8_K", 256, 292, K::q8_0, false},
    {T::iq2_xxs, "IQ2_XXS", 256, 66},
    {T::iq2_xs, "IQ2_XS", 256, 74},
    {T::iq3_xxs, "IQ3_XXS", 256, 98},
    {T::iq1_s, "IQ1_S", 256, 50},
    {T::iq4_nl, "IQ4_NL", 32, 18},
    {T::iq3_s, "IQ3_S", 256, 110},
    {T::iq2_s, "IQ2_S", 256, 82},
    {T::iq4_xs, "IQ4_XS", 256, 136},
    {T::i8, "I8", 1, 1, K::iq, false},
    {T::i16, "I16", 1, 2, K::iq, false},
    {T::i32, "I32", 1, 4, K::iq, false},
    {T::i64, "I64", 1, 8, K::iq, false},
    {T::f64, "F64", 1, 8, K::iq, false},
    {T::iq1_m, "IQ1_M", 256, 56},
    {T::bf16, "BF16", 1, 2},
    {T::tq1_0, "TQ1_0", 256, 54},
    {T::tq2_0, "TQ2_0", 256, 66},
    {T::mxfp4, "MXFP4", 32, 17, K::mxfp4},  // 8-bit exponent, 32 x 4 bits
    {T::nvfp4, "NVFP4", 64, 36, K::mxfp4},  // four 8-bit scales, 64 x 4 bits
    {T::q1_0, "Q1_0", 128, 18},
    {T::q2_0, "Q2_0", 64, 18},
};

}  // namespace

std::span<const GgmlTypeInfo> ggml_types() { return kGgmlTypes; }

const GgmlTypeInfo* find_ggml_type(std::uint32_t id) {
  const auto* found = std::ranges::find(kGgmlTypes, static_cast<GgmlType>(id), &GgmlTypeInfo::type);
  return found == std::end(kGgmlTypes) ? nullptr : found;
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

StoredFormat stored_format(GgmlType type) {
  const GgmlTypeInfo& t = info(type);
  StoredFormat format{.name = t.name, .bits = t.bits(), .compute = Dtype::fp16, .dequant_flops = 2};
  if (type == GgmlType::f32) format.compute = Dtype::fp32;
  if (type == GgmlType::bf16) format.compute = Dtype::bf16;
  if (t.block == 1) format.dequant_flops = 0;
  if (t.block > 1) format.kernel = t.kernel;
  return format;
}

}  // namespace llmperf::model
