// The tensors of a decoder as llama.cpp's converter writes them to a GGUF file: names, order, shapes and which are
// fused, but not yet the types. One list serves the quantisation rules (gguf_mix.h), the reading of files
// (gguf_decoder.h) and the cost of an op (weight_layout.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/decoder.h"
#include "model/ggml_type.h"
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

}  // namespace llmperf::model
