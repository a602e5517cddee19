// Ways to multiply with weights that are stored in fewer bits (Marlin, arXiv:2408.11743; AWQ, arXiv:2306.00978;
// ggml-cuda's mmvq and mmq kernels):
//  * a kernel that unpacks on the way: the p-norm of FLOPs / (share F) and bytes / (share B), weights as they are
//  packed;
//  * beside it, where a library has one, a kernel for few rows with a share and an exponent of its own;
//  * Marlin deals the work out in stripes across columns; what stripes share is added up through a workspace, which
//  costs
//    every product as much;
//  * from some number of rows on, a kernel that writes the weights in 16 bits and then a dense product. Where the cache
//    can hold that copy, only part of it crosses the memory bus, each time.
// Which one runs is the library's choice and known (KernelChoices); shares are of the 16-bit peak, and more than 1
// where a kernel multiplies in 8 bits.
#include "mapper/roofline/weight_kernel.h"

#include <cmath>

#include "mapper/roofline/kernel_norm.h"

namespace llmperf::mapper {

using hardware::FormatParameter;
using enum hardware::Parameter;

namespace {

constexpr double kWideBytes = 2;
constexpr double kVectorRows = 8;  // up to these no kernel rounds the rows up
// A copy that is a larger part of the cache than this is partly evicted before it is read: everything else in the step
// passes through the same cache.
constexpr double kCacheKept = 0.4;

// The part of a copy of the weights that crosses the memory bus.
double spilled(const KernelDevice& d, double cached, double bytes) {
  if (d.cache <= 0) return 1;
  const double beyond = std::clamp((bytes / d.cache - kCacheKept) / (1 - kCacheKept), 0.0, 1.0);
  return cached + (1 - cached) * beyond;
}

ProductTime unpacked_time(const KernelDevice& d, const hardware::ParameterValues& v, const hardware::KernelChoices& c,
                          const GemmCall& g) {
  const double matrix = kWideBytes * g.n * g.k;
  const double copy = matrix * g.batch * spilled(d, v[index(dequantise_cached)], matrix);
  GemmCall dense = g;
  dense.second_bytes = copy;
  const double unpacking = (g.second_bytes + copy) / (d.bandwidth * v[index(dequantise_share)]);
  KernelDevice wide = d;
  wide.matrix = d.unpacked;
  ProductTime t = gemm_time(wide, v, c, dense);
  t.seconds += v[index(gemm_launch)] + unpacking;
  t.memory += unpacking;
  return t;
}

// AWQ's own kernel deals blocks of 16 x 128 results to the cores, and on the mean the last of a core's turns is half
// idle. Marlin divides the work in equal stripes whatever the shape, and so leaves no core idle.
double idle_share(const KernelDevice& d, FormatKernel format, double rows, const GemmCall& g) {
  constexpr double kBlockRows = 16;
  constexpr double kBlockColumns = 128;
  if (format != FormatKernel::awq) return 0;
  return 0.5 * d.cores / (std::ceil(rows / kBlockRows) * std::ceil(g.n / kBlockColumns) * g.batch);
}

}  // namespace

ProductTime weight_time(const KernelDevice& d, const hardware::ParameterValues& v, const hardware::KernelChoices& c,
                        FormatKernel format, const GemmCall& g) {
  const auto unpack_rows = static_cast<double>(c.dequantise_rows[static_cast<std::size_t>(format)]);
  if (unpack_rows > 0 && g.m >= unpack_rows) return unpacked_time(d, v, c, g);

  const bool has_small = c.small_rows > 0;
  const bool small = has_small && g.m <= static_cast<double>(c.small_rows);
  const double rows = g.m <= kVectorRows ? g.m : round_up(g.m, static_cast<double>(c.format_granule));
  const double share = v[index(format, small ? FormatParameter::small_share : FormatParameter::share)];
  const double compute = 2 * rows * g.n * g.k * g.batch / (d.matrix * share) * (1 + idle_share(d, format, rows, g));
  const double bytes = g.second_bytes + g.first_bytes + g.result_bytes;
  const double memory = bytes / (d.bandwidth * v[index(format, FormatParameter::memory_share)]);
  const bool serial = c.serial[static_cast<std::size_t>(format)];
  const double overlap = serial ? 1 : v[index(has_small && !small ? format_small_overlap : format_overlap)];
  const double launch = v[index(gemm_launch)] + (in_stripes(format) ? v[index(format, FormatParameter::reduce)] : 0);
  return {launch + overlapped(compute, memory, overlap), compute, memory, 0, launch};
}

}  // namespace llmperf::mapper
