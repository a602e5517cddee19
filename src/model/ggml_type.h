// The tensor types of ggml, as GGUF files name them: how many elements share a block and how many bytes a block takes,
// scales included. Source: the block structs and the type enumeration of ggml (ggml-common.h, ggml.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/units.h"
#include "model/quantization.h"

namespace llmperf::model {

// The values are ggml's own ids, as stored in files. Ids that ggml has removed are absent.
// clang-format off
enum class GgmlType : std::uint32_t {
  f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q5_0 = 6, q5_1 = 7, q8_0 = 8, q8_1 = 9, q2_k = 10, q3_k = 11, q4_k = 12,
  q5_k = 13, q6_k = 14, q8_k = 15, iq2_xxs = 16, iq2_xs = 17, iq3_xxs = 18, iq1_s = 19, iq4_nl = 20, iq3_s = 21,
  iq2_s = 22, iq4_xs = 23, i8 = 24, i16 = 25, i32 = 26, i64 = 27, f64 = 28, iq1_m = 29, bf16 = 30, tq1_0 = 34,
  tq2_0 = 35, mxfp4 = 39, nvfp4 = 40, q1_0 = 41, q2_0 = 42
};
// clang-format on

struct GgmlTypeInfo {
  GgmlType type;
  std::string_view name;   // "Q4_K", as llama.cpp prints it
  std::int64_t block = 1;  // elements along the inputs (ne[0]) that share a block
  std::int64_t block_bytes = 4;
  FormatKernel kernel = FormatKernel::iq;  // of a matrix product with it, where elements share blocks
  bool weights = true;  // holds the weights of a matrix product (integers and activation types do not)

  double bits() const { return 8 * static_cast<double>(block_bytes) / static_cast<double>(block); }
};

// Every type, by id.
std::span<const GgmlTypeInfo> ggml_types();
// The type with that id, or null: unknown, or removed from ggml.
const GgmlTypeInfo* find_ggml_type(std::uint32_t id);
const GgmlTypeInfo& info(GgmlType type);

// Bytes of an [n, k] matrix (n rows of k inputs each). k must be divisible by the block.
Bytes ggml_bytes(GgmlType type, std::int64_t n, std::int64_t k);

// How the cost model sees a tensor of that type. Quantised types are brought to fp16 before they are multiplied, which
// takes two vector operations per element (scale, offset or table look-up); floating-point types are used as stored.
StoredFormat stored_format(GgmlType type);

}  // namespace llmperf::model
