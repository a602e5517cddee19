// Time of products of two narrow operands (fp8, int8), by kernels with few tiles; the derivation is in
// narrow_kernel.cpp.
#pragma once

#include "hardware/runtime_profile.h"
#include "mapper/roofline/gemm_kernel.h"
#include "mapper/roofline/kernel_device.h"

namespace llmperf::mapper {

// The product, launch included, and before it the kernel that makes activations narrow. `device.matrix` is the rate of
// the narrow type; call.first_bytes: of the activations before they are made narrow.
ProductTime narrow_time(const KernelDevice& device, const hardware::ParameterValues& values,
                        const hardware::KernelChoices& choices, FormatKernel format, const GemmCall& call);

// Rows and columns of the results that a block computes, and the rounds of blocks over the cores.
struct NarrowTile {
  double rows = 0;
  double columns = 0;
  double rounds = 0;
};
// Whether the tile of a rule has 64 rows, else 128; those of a cube are all of one share.
bool has_small_rows(hardware::ProductTiles rule, double m);
// By the number of rows, as CUTLASS' kernels in vLLM and SGLang; and the tile of the fewest rounds, as DeepGEMM.
NarrowTile tile_by_rows(double m, double n, double batch, double cores);
NarrowTile tile_of_fewest_rounds(double m, double n, double batch, double cores);
NarrowTile tile_of_cube(const GemmCall& call, double cores);

}  // namespace llmperf::mapper
