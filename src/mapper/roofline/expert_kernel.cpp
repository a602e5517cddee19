// Experts get different numbers of rows, and one kernel multiplies all of them (grouped products: Triton's fused_moe,
// CUTLASS). Rows of an expert are cut into tiles of b = 16, 32, 64 or 128, the last of which is not full, columns into
// tiles of 128. With T_b tiles of rows over all experts (graph::ExpertLoad) a core works through
//
//   w = ceil(T_b ceil(N / 128) / cores)   tiles of   tau_b = 2 b 128 K / (share_b F / cores) + start,
//
// and the library takes the b for which w tau_b is least. Meanwhile the weights of every expert that gets rows are read
// once, the rows come in, and results go out:
//
//   launch + p-norm( min over b of w tau_b, (weights of active experts + rows) / (share B) )
//
// Where rows of weights are no multiple of 16 elements (a width of 1856 over eight ranks) the compiler cannot load them
// in vectors, and both take a multiple of that time.
//
// Around the two products the stack routes, sorts, copies rows, activates and adds up: half a dozen kernels, whose
// launches are in those of the products, for every backend has others, and whose traffic streams at a share of its own
// (efficiency.cpp).
#include "mapper/roofline/expert_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mapper/roofline/kernel_norm.h"

namespace llmperf::mapper {

using hardware::ExpertParameter;

bool is_aligned(double elements) {
  constexpr double kVector = 16;
  return std::fmod(elements, kVector) == 0;
}

ProductTime expert_time(const KernelDevice& d, const hardware::ParameterValues& v, std::optional<FormatKernel> format,
                        const GemmCall& g, const std::array<double, graph::kTileRows.size()>& row_tiles) {
  constexpr double kColumns = 128;
  const auto of = [&](ExpertParameter p, std::size_t i = 0) { return v[index(format, p) + i]; };
  const double across = rounded_up(g.n / kColumns);
  double compute = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < row_tiles.size(); ++i) {
    const double multiply =
        2 * graph::kTileRows[i] * kColumns * g.k * d.cores / (d.matrix * of(ExpertParameter::share, i));
    compute = std::min(compute, rounded_up(row_tiles[i] * across / d.cores) * (multiply + of(ExpertParameter::start)));
  }
  const double rows = g.narrow_bytes > 0 ? g.m * g.k * g.narrow_bytes : g.first_bytes;
  double memory = (rows + g.second_bytes + g.result_bytes) / (d.bandwidth * of(ExpertParameter::memory_share));
  if (!is_aligned(g.k)) {
    const double share = v[index(hardware::Parameter::experts_unaligned_share)];
    compute /= share;
    memory /= share;
  }
  const double launch = of(ExpertParameter::launch);
  return {launch + overlapped(compute, memory, of(ExpertParameter::overlap)), compute, memory, 0, launch};
}

}  // namespace llmperf::mapper
