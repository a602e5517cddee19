// What CANN's codes mean.
#pragma once

#include <string_view>

#include "replay/ascend/cann_types.h"

namespace llmperf::replay::ascend::cann {

// The code's name in CANN's headers and what it says, by the function that returned it (codes of HCCL start from 1
// like others'). "unknown code" for those that no table has.
std::string_view meaning(Status status, std::string_view function);

// The first phase of an op did not take its arguments, or the op's kernels are not installed: nothing is broken, the op
// cannot be run here.
bool is_refusal(Status status);
bool is_out_of_memory(Status status);

}  // namespace llmperf::replay::ascend::cann
