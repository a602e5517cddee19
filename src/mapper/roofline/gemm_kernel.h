// Time of a dense matrix product by a GPU's library; the derivation is in gemm_kernel.cpp.
#pragma once

#include <algorithm>
#include <array>

#include "hardware/runtime_profile.h"
#include "mapper/roofline/kernel_device.h"
#include "mapper/roofline/kernel_norm.h"

namespace llmperf::mapper {

// [m, k] x [k, n], `batch` times, with the bytes that each of these reads and writes.
struct GemmCall {
  double m = 0;
  double n = 0;
  double k = 0;
  double batch = 1;
  double first_bytes = 0;  // of all batches together
  double second_bytes = 0;
  double result_bytes = 0;
  double depth_seconds = 0;  // of a core per unit of k and tile, beside the matrix engine: scales of blocks
  double copies = 0;         // sets of weights that take turns in a measurement; 0: they come from memory
  double narrow_bytes = 0;   // of an element of both operands where a narrow product takes them
};

// A tile of results on a cube of CANN's products, of which 16 rows are multiplied at a time.
inline constexpr double kCubeRows = 128;
struct CubeTile {
  double rows;
  double columns;
  double count(const GemmCall& g) const { return rounded_up(g.m / rows) * rounded_up(g.n / columns) * g.batch; }
  double rows_of(double m) const { return std::min(rows, round_up(m, 16)); }
};
inline constexpr std::array<CubeTile, 2> kCubeTiles = {{{kCubeRows, 256}, {256, kCubeRows}}};

// What a product takes, launch included, and how long the kernel that runs needs of each thing that it does at the same
// time as the others.
struct ProductTime {
  double seconds = 0;
  double compute = 0;  // s of the cores, with rows, rounds and parts that are not full
  double memory = 0;   // s of the memory bus
  double feed = 0;     // s until the cores have got their operands from the cache; 0 where memory is what they wait for
  double launch = 0;   // s, of `seconds`
};

// A dense product; of narrow operands where `call` has their bytes, with device.matrix their rate.
ProductTime gemm_time(const KernelDevice& device, const hardware::ParameterValues& values,
                      const hardware::KernelChoices& choices, const GemmCall& call);
inline double gemm_seconds(const KernelDevice& device, const hardware::ParameterValues& values,
                           const hardware::KernelChoices& choices, const GemmCall& call) {
  return gemm_time(device, values, choices, call).seconds;
}

// Seconds of a convolution of `flops` operations that moves `bytes`: one share of the peak, beside the memory's.
double convolution_seconds(const KernelDevice& device, const hardware::ParameterValues& values, double flops,
                           double bytes);

}  // namespace llmperf::mapper
