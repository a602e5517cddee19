// The operators of PyTorch, and of libraries that vLLM and others register there, by the arguments that its profiler
// records with record_shapes: tensors with shapes and types, and scalars as text. Results are not recorded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/mapped.h"

namespace llmperf::import {

struct TorchOp {
  std::string name;                   // "aten::mm"
  std::vector<Tensor> inputs;         // by argument; empty for what is no tensor
  std::vector<std::string> concrete;  // by argument, as text: "True", "[4096]"; of tensors empty
};
Mapped torch_row(const TorchOp& op);

}  // namespace llmperf::import
