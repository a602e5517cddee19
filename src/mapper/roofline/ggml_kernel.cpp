// ggml multiplies in three ways (github.com/ggml-org/llama.cpp, ggml-cuda's mmvq, mmq and cuBLAS paths; those of its
// other backends are built alike):
//
//  * Of few rows, kernels on the vector units unpack weights for each row anew. A core unpacks u elements of a format a
//    cycle, whatever its tensor units do, so that cards with much bandwidth per core wait for unpacking:
//
//      p-norm( bytes of weights / (share B), m n k / (cores clock u) )
//
//  * Of more rows, a kernel loads weights as they are packed, unpacks them for many rows at once, and then multiplies
//    them by activations in 8 bits, or in 16 where a backend has no such kernel. Unpacking goes through the cores' own
//    memory, at whose barriers they wait: it takes as long as the vector kernel does for some r rows. What more tiles
//    of rows unpack again is part of the share. Rows are rounded up to what a matrix instruction multiplies; those of
//    experts are a mean, and on the mean the share of experts holds that, too:
//
//      q-norm( p-norm( bytes / (share B), r n k / (cores clock u) ), 2 round(m) n k / (share F) )
//
//    So the two kernels meet about where the first hands over to the second, on every device alike. Where a backend
//    has a vector kernel for several rows of 16-bit weights, its product of more rows loads them in the same way; a
//    vendor's library takes no less for them than the vector kernel of one row does.
//
//  * Weights of 16 bits, and packed ones that were unpacked before, go to the vendor's library. A product of m rows is
//    m / (m + m0) as fast as a long one, and a long one no faster than the power limit: chips of one architecture do as
//    many FLOPs with a joule, whatever their peak:
//
//      1 / rate = (1 + m0 / m) 4-norm( 1 / (share F), 1 / (power E) )
//
// Without flash attention scores are 32-bit numbers in memory: two products with the cache over the whole rectangle of
// a micro-batch and all keys, and a softmax between them. With it one kernel does the same work without that traffic.
// Either sees the cache in whole blocks of keys.
#include <cmath>

#include "mapper/roofline/kernels.h"

namespace llmperf::mapper {

using hardware::FormatParameter;
using enum hardware::Parameter;

namespace {

constexpr double kKeyBlock = 256;  // that flash attention's cache is padded to

double elements(const GemmCall& g) { return g.m * g.n * g.k * g.batch; }

// Reading weights and unpacking them for `rows` rows by the vector kernel, or as long as that takes.
struct Loading {
  double memory;
  double unpacking;
  double seconds;
};
Loading loading(const KernelDevice& d, const ParameterValues& v, FormatKernel format, const GemmCall& g, double rows) {
  const double memory = g.second_bytes / (d.bandwidth * v[index(gemm_memory_share)]);
  const double rate = d.cores * d.clock * v[index(format, FormatParameter::unpack_rate)];
  const double unpacking = rows * g.n * g.k * g.batch / rate;
  return {memory, unpacking, overlapped(memory, unpacking, v[index(format_small_overlap)])};
}

double wide_seconds(const KernelDevice& d, const ParameterValues& v, const GemmCall& g) {
  constexpr double kPowerNorm = 4;
  const double all = 2 * elements(g);
  const double peak = all / (d.unpacked * v[index(gemm_share)]);
  const double power = d.power > 0 ? all / (d.power * v[index(per_watt)]) : 0;
  return (1 + v[index(product_rows)] / g.m) * overlapped(peak, power, kPowerNorm);
}

}  // namespace

GgmlProduct ggml_product(const KernelChoices& c, FormatKernel format, double rows) {
  const auto f = static_cast<std::size_t>(format);
  if (rows <= static_cast<double>(c.few_rows[f])) return GgmlProduct::few_rows;
  const bool unpacks = c.dequantise_rows[f] > 0 && rows >= static_cast<double>(c.dequantise_rows[f]);
  return unpacks || format == FormatKernel::wide ? GgmlProduct::wide : GgmlProduct::packed;
}

bool has_own_wide(const KernelChoices& c) { return c.few_rows[static_cast<std::size_t>(FormatKernel::wide)] > 1; }

ProductTime ggml_time(const KernelDevice& d, const ParameterValues& v, const KernelChoices& c, FormatKernel format,
                      const GemmCall& g, bool experts) {
  const double launch = v[index(gemm_launch)];
  if (!(g.m > 0 && g.n > 0 && g.k > 0 && g.batch > 0)) return {launch, 0, 0, 0, launch};
  const double reached = experts ? v[index(product_experts)] : 1;
  const GgmlProduct kernel = ggml_product(c, format, g.m);
  if (kernel == GgmlProduct::few_rows) {
    const Loading all = loading(d, v, format, g, g.m);
    return {launch + all.seconds, all.unpacking, all.memory, 0, launch};
  }
  const bool packed = kernel == GgmlProduct::packed;
  double compute = 0;
  if (packed) {
    const double peak = c.integer_products ? d.integer : d.matrix;
    const double share = v[index(format, FormatParameter::share)] * reached;
    const double rows = experts ? g.m : round_up(g.m, static_cast<double>(c.format_granule));
    compute = 2 * rows * g.n * g.k * g.batch / (peak * share);
  } else {
    compute = wide_seconds(d, v, g) / reached;
  }
  if (!packed && format != FormatKernel::wide) {  // unpacked to memory, and then a library's product
    constexpr double kUnpackedBytes = 2;
    const double copy = kUnpackedBytes * g.n * g.k * g.batch;
    const double unpacking = copy / (d.bandwidth * v[index(dequantise_share)]);
    const double read = copy / (d.bandwidth * v[index(gemm_memory_share)]);
    return {2 * launch + unpacking + overlapped(read, compute, v[index(gemm_overlap)]), compute, unpacking + read, 0,
            2 * launch};
  }
  const Loading loaded = loading(d, v, format, g, packed || has_own_wide(c) ? v[index(product_unpack)] : 1);
  const double overlap = v[index(packed ? format_overlap : gemm_overlap)];
  return {launch + overlapped(loaded.seconds, compute, overlap), loaded.unpacking + compute, loaded.memory, 0, launch};
}

ProductTime scores_time(const KernelDevice& d, const ParameterValues& v, const KernelChoices& c, const GemmCall& g) {
  constexpr double kOverlap = 2;
  constexpr double kGroupRows = 16;  // the heads of a group, of one token; more rows multiply in tiles
  const double reads = c.head_keys && g.m <= kGroupRows ? g.m : 1;
  const double launch = v[index(gemm_launch)];
  const double compute = 2 * elements(g) / (d.unpacked * v[index(scores_share)]);
  const double memory = reads * g.second_bytes / (d.bandwidth * v[index(scores_memory_share)]);
  return {launch + overlapped(compute, memory, kOverlap), compute, memory, 0, launch};
}

double ggml_attention_seconds(const KernelDevice& d, const ParameterValues& v, const AttentionCall& a, double tile) {
  constexpr double kOverlap = 2;
  const double rows = tile > 0 ? std::min(tile, a.queries) : a.queries;
  const double context = std::max(0.0, a.context);
  double pairs = 0;
  double read = 0;
  for (double done = 0; done < a.queries; done += rows) {
    const double some = std::min(rows, a.queries - done);
    const double seen = a.all_keys > 0 ? a.all_keys : context + done + some;
    const double kept = a.window > 0 ? std::min(seen, a.window + some) : seen;
    const double keys = round_up(kept, kKeyBlock);
    pairs += some * keys;
    read += keys;
  }
  const double share = v[index(prefill_share)] * (a.small_heads() ? v[index(small_heads_share)] : 1) *
                       (a.by_eights() ? v[index(eights_share)] : 1);
  const double compute = 2 * a.sequences * a.heads * (a.qk_dim + a.v_dim) * pairs / (d.unpacked * share);
  const double memory = a.sequences * a.kv_heads * read * a.key_bytes() / (d.bandwidth * v[index(decode_memory_share)]);
  return v[index(decode_launch)] + overlapped(compute, memory, kOverlap);
}

}  // namespace llmperf::mapper
