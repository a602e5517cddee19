// The tensors of a decoder as llama.cpp's converter writes them to a GGUF file: names, order, shapes and which are
// fused, but not yet the types. One list serves the quantisation rules, the reading of files and
// the cost of an op (weight_layout.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/decoder.h"
#include "model/gguf/file.h"
#include "model/parameters.h"

namespace llmperf::model {

// One tensor [count, n, k]; ggml writes the shape innermost first: ne = {k, n, count}, {k, n} or, for vectors, {n} and
// {n, count}.
struct GgufTensor {
  std::string_view stem;  // of static storage: "token_embd.weight", or within a layer "attn_q.weight"
  Role role = Role::vector;
  int layer = -1;  // -1: outside the layers
  std::int64_t n = 0;
  std::int64_t k = 1;      // 1 for vectors
  std::int64_t count = 1;  // experts
  GgmlType type = GgmlType::f32;

  bool is_vector() const { return role == Role::vector; }
  std::int64_t elements() const { return n * k * count; }
  Bytes bytes() const;       // of the data, as stored
  std::string name() const;  // "token_embd.weight", "blk.3.attn_q.weight"
};

struct GgufTensorOptions {
  // Since April 2025 the converter writes kv_b of latent attention as attn_k_b (transposed) and attn_v_b, one matrix
  // per head; both have Role::kv_b.
  bool split_kv_b = false;
  // Until early 2026 it wrote the inputs of a gated delta net and their gate as one matrix, ssm_in.
  bool joined_delta_net = false;
  // Layers that predict further tokens, behind the others, where it keeps them in the file. They are not loaded.
  bool next_token_layers = false;
};

// In file order: token_embd, the layers in order, output_norm, output. Vectors, routers and position tables are F32
// (they are never quantised), every other type is left at F16. A tied lm_head has a tensor of its own (output.weight)
// only where the published checkpoint repeats it (Decoder::checkpoint_repeats_lm_head). Frequency tables of scaled
// rotary embeddings (rope_freqs.weight of Llama 3.1, rope_factors_*.weight of Phi-3; a few hundred bytes) are left out,
// as a Decoder does not say how positions are scaled; so is the pooler of an encoder, which the converter drops.
std::vector<GgufTensor> gguf_tensors(const Decoder& model, GgufTensorOptions options = {});

// Bytes of all tensors' data, padding left out.
Bytes tensor_bytes(std::span<const GgufTensor> tensors);

// Size of a file with these tensors: header, metadata (key-value pairs) and tensor descriptions, and every tensor's
// data, each padded to 32 bytes.
Bytes file_bytes(std::span<const GgufTensor> tensors, std::int64_t metadata_bytes);

// An estimate of the metadata, nearly all of which is the vocabulary: the strings themselves are not known here.
std::int64_t estimated_metadata_bytes(const Decoder& model);

// ---- Which type llama.cpp's quantiser gives each tensor: the rules behind names such as Q4_K_M (mix.cpp)

// Versions of llama.cpp whose rules differ. v2024_02 ends on 2024-02-19 (PR #5590: other types for
// rows that are not divisible by 256), v2024 in April 2025 (PR #12801: the kv_b matrix of latent attention is split),
// v2025 in March 2026 (PR #19770: fused q, k, v matrices follow the rules of v).
enum class GgufEra : unsigned char { v2024_02, v2024, v2025, v2026 };
std::span<const GgufEra> gguf_eras();
std::string_view name(GgufEra era);  // "2024-02", "2024", "2025", "2026"
// Throws Error(bad_input) with the known ones.
GgufEra parse_gguf_era(std::string_view text);

// The values are llama.cpp's ids of them (general.file_type).
// clang-format off
enum class GgufFtype : unsigned char {
  f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q8_0 = 7, q5_0 = 8, q5_1 = 9, q2_k = 10, q3_k_s = 11, q3_k_m = 12, q3_k_l = 13,
  q4_k_s = 14, q4_k_m = 15, q5_k_s = 16, q5_k_m = 17, q6_k = 18, iq2_xxs = 19, iq2_xs = 20, q2_k_s = 21, iq3_xs = 22,
  iq3_xxs = 23, iq1_s = 24, iq4_nl = 25, iq3_s = 26, iq3_m = 27, iq2_s = 28, iq2_m = 29, iq4_xs = 30, iq1_m = 31,
  bf16 = 32, tq1_0 = 36, tq2_0 = 37, mxfp4_moe = 38
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

// ---- What llama.cpp knows the model as

// general.architecture that llama.cpp's converter gives the model; empty: none is known.
std::string_view gguf_architecture_name(const Decoder& model);
// Throws Error(bad_input) where the model's family is known and none of llama.cpp's architectures is. What no family
// has is taken for one of usual names.
void require_gguf_architecture(const Decoder& model);
// Whether llama.cpp runs the model with its sliding or chunked windows.
bool gguf_keeps_windows(const Decoder& model);

// ---- From the header of a file to the model it holds (decoder.cpp)

// The decoder that the metadata and the tensors of the file describe. Dimensions come from the architecture's keys,
// biases, tied embeddings, experts and fused matrices from which tensors there are. The architecture is named as in
// Hugging Face's files ("qwen2_moe", where the file says qwen2moe); what only llama.cpp tells apart is lost: Mistral
// and Yi are "llama". Throws Error(bad_input) with the problems found, each with its place in the file: an architecture
// llmperf does not know (with the nearest), a missing, absurd or contradictory key.
Decoder parse_gguf_decoder(const GgufFile& file);

// gguf_tensors(model) with the types of the file. Throws Error(bad_input) for every tensor that the file lacks, has in
// another shape, or has beyond those. Other forms of the same weights are accepted: experts one by one or with gate and
// up fused, kv_b of latent attention whole or in two halves (with both, the whole counts and the halves are left out).
// Position tables such as rope_freqs.weight are known and listed at the end of the result, with role vector and layer
// as in the file.
std::vector<GgufTensor> match_tensors(const Decoder& model, const GgufFile& file);

}  // namespace llmperf::model
