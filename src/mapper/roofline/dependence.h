// Which parameters of a runtime profile the time of an op depends on.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/op.h"
#include "hardware/runtime_profile.h"

namespace llmperf::mapper {

// Sections of parameters ("gemm", "format", …) as bits.
enum Section : unsigned {
  kGemm = 1,
  kFormat = 2,
  kPrefill = 4,
  kDecode = 8,
  kVector = 16,
  kCollective = 32,
  kStep = 64,  // of the step as a whole, not of one op
  kAppend = 128,
  kConvolution = 256,
};
// Sections with a part in the op's time; 0 for ops of the host.
unsigned sections_of(const graph::Op& op);
// Whether the op's time can change with the parameter under a profile's kernel choices: of a product only the
// parameters of the kernel that runs.
bool depends(const graph::Op& op, unsigned sections, std::size_t parameter, const hardware::KernelChoices& choices);
// Whether the parameter is one of the step as a whole.
bool is_of_step(std::size_t parameter);
std::vector<std::size_t> parameters_of(const graph::Op& op, const hardware::KernelChoices& choices);

}  // namespace llmperf::mapper
