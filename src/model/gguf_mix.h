// Which type llama.cpp's quantiser gives each tensor: the rules behind names such as Q4_K_M.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/decoder.h"
#include "model/gguf_tensors.h"

namespace llmperf::model {

// Versions of llama.cpp whose rules differ. v2024_02 ends on 2024-02-19 (PR #5590: other types for
// rows that are not divisible by 256), v2024 in April 2025 (PR #12801: the kv_b matrix of latent attention is split),
// v2025 in March 2026 (PR #19770: fused q, k, v matrices follow the rules of v).
enum class GgufEra : unsigned char { v2024_02, v2024, v2025, v2026 };
std::span<const GgufEra> gguf_eras();
std::string_view name(GgufEra era);  // "2024-02", "2024", "2025", "2026"
// Throws Error(bad_input) with the known ones.
GgufEra parse_gguf_era(std::string_view text);

// clang-format off
enum class GgufFtype : unsigned char {
  f32, f16, bf16, q8_0, q6_k, q5_1, q5_k_m, q5_0, q5_k_s, q4_1, q4_k_m, iq4_nl, q4_k_s, q4_0, iq4_xs, mxfp4_moe, q3_k_l,
  q3_k_m, iq3_m, iq3_s, q3_k_s, iq3_xs, iq3_xxs, q2_k, q2_k_s, iq2_m, iq2_s, iq2_xs, tq2_0, iq2_xxs, tq1_0, iq1_m, iq1_s
};
// clang-format on

// A file type.
struct GgufFileType {
  GgufFtype id;
  std::string_view name;              // of static storage, lower case: "q4_k_m"
  GgmlType type;                      // what most tensors get
  bool imatrix = false;               // made with an importance matrix: where llama.cpp refuses to work without one
  GgufEra since = GgufEra::v2024_02;  // the first era with it
};
// Every file type, from the widest to the narrowest (for a model like Llama 3 8B): f32, f16, bf16, q8_0, q6_k, …
std::span<const GgufFileType> gguf_file_types();
// The one of that name in either case ("Q4_K_M"), or null.
const GgufFileType* find_gguf_file_type(std::string_view name);

// The tensors of the model with the types the quantiser would choose; a caller may copy a file type and set `imatrix`.
// Throws Error(bad_input) when no architecture of llama.cpp is known for the model, or the era the file type, or when
// rows are no multiple of a block of 32 and llama.cpp refuses them. 2-bit and 3-bit i-quants of early 2024 changed from
// week to week and are not in v2024_02.
std::vector<GgufTensor> quantised_tensors(const Decoder& model, const GgufFileType& type, GgufEra era);

}  // namespace llmperf::model
