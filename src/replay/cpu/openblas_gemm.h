// Products of fp32 by OpenBLAS, which is loaded when the first is asked for.
#pragma once

#include <memory>
#include <string>

#include "replay/cpu/gemm_operation.h"

namespace llmperf::replay::cpu {

// "OpenBLAS 0.3.21 (libopenblas.so.0, Haswell kernels)"; empty with the reason in `why_not` where there is none.
std::string openblas_name(std::string& why_not);

// Null with the reason in `why_not` where this cannot be.
std::unique_ptr<Operation> make_openblas_gemm(const Workshop& shop, const GemmPlan& plan, std::string& why_not);

}  // namespace llmperf::replay::cpu
