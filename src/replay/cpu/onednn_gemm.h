// Products of fp32, bf16 and int8 by oneDNN, which is loaded when the first is asked for.
#pragma once

#include <memory>
#include <string>

#include "replay/cpu/gemm_operation.h"

namespace llmperf::replay::cpu {

// "oneDNN 2.6.3 (libdnnl.so.2)"; empty with the reason in `why_not` where there is none.
std::string onednn_name(std::string& why_not);

// Null with the reason in `why_not` where this cannot be.
std::unique_ptr<Operation> make_onednn_gemm(const Workshop& shop, const GemmPlan& plan, std::string& why_not);

}  // namespace llmperf::replay::cpu
