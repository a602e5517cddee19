// From the header of a GGUF file to the model it holds.
#pragma once

#include <vector>

#include "model/decoder.h"
#include "model/gguf_file.h"
#include "model/gguf_tensors.h"

namespace llmperf::model {

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
