// The kernels of Ascend NPUs: what a type ("MatMulV2", "hcom_allReduce_") is, and what its tensors say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/import.h"
#include "import/kernels.h"

namespace llmperf::import {

// `core`: the column Task Type, Accelerator Core or Core Type ("AI_CORE", "MIX_AIC", "AI_CPU", "HCCL", "N/A").
Class ascend_class(std::string_view core, std::string_view type);

struct AscendKernel {
  std::string_view type;
  std::vector<Tensor> inputs;  // by slot: an absent one is empty
  std::vector<Tensor> outputs;
};
Mapped ascend_row(const AscendKernel& kernel);

}  // namespace llmperf::import
