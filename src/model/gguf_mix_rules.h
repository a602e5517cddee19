// Internal to src/model: llama.cpp's rules for one tensor, one function per category of tensors.
#pragma once

#include <cstdint>

#include "model/gguf_mix.h"

namespace llmperf::model {

// What the rules ask about the file and the model.
struct Mix {
  GgufFtype file;
  GgmlType base;  // what a tensor gets when no rule says otherwise
  bool imatrix = false;
  GgufEra era;
  bool has_output = true;          // output.weight is there; otherwise token_embd.weight serves as it too
  bool is_70b = false;             // 80 layers of an architecture for which the loader calls that a 70B
  std::int64_t group = 1;          // query heads per key and value head
  std::int64_t experts = 0;        // of a mixture layer; 0: dense
  std::int64_t layers = 1;         // of the model
  std::int64_t ffn_down_seen = 0;  // down matrices before this tensor
};

// The type the mix wants for a tensor that may be quantised, whatever its shape.
GgmlType mixed_type(const Mix& mix, const GgufTensor& tensor);

// `wanted`, or what replaces it when rows of `columns` elements are no multiple of its block. Throws Error(bad_input)
// when nothing does.
GgmlType fitting_type(GgmlType wanted, std::int64_t columns, GgufEra era);

}  // namespace llmperf::model
