// Attention of new tokens on latents (the absorbed form of DeepSeek-V2, arXiv:2405.04434, section 2.1) as FlashMLA
// computes it (github.com/deepseek-ai/FlashMLA). All heads share keys, whose first elements are the values. A block
// takes 64 rows, heads of one sequence, and walks over its keys 64 at a time, each step costing
//
//   tau = 2 64 64 (qk + v) / (share F / cores)
//
// The tiles of all blocks are dealt evenly to the cores, so that a sequence may end up in several; another kernel joins
// its parts. The heads of one sequence read its latents once, as far as memory is concerned:
//
//   launch + block max(1, blocks / cores) +
//     p-norm( ceil(steps of all blocks / cores) tau, bytes of latents / (share B) )
//     + bytes of queries and results / (query share B) + join
#include "mapper/roofline/attention_kernel.h"
#include "mapper/roofline/kernel_norm.h"

namespace llmperf::mapper {

using enum hardware::Parameter;

double latent_seconds(const KernelDevice& d, const hardware::ParameterValues& v, const AttentionCall& a) {
  constexpr double kRows = 64;
  constexpr double kKeys = 64;
  constexpr double kResultBytes = 8;  // of a partial result in 32 bits, written and read
  const double rows = a.heads * a.queries;
  const double blocks = a.sequences * rounded_up(rows / kRows);
  const double steps = rounded_up(a.keys() / kKeys);
  const double head = a.qk_dim + a.v_dim;

  const double step = 2 * kRows * kKeys * head * d.cores / (d.matrix * v[index(latent_share)]);
  const double compute = rounded_up(blocks * steps / d.cores) * step;
  const double memory =
      a.sequences * a.kv_heads * a.keys() * a.key_bytes() / (d.bandwidth * v[index(latent_memory_share)]);
  const double queries = a.sequences * rows * head * a.element_bytes / (d.bandwidth * v[index(latent_query_share)]);
  double seconds = v[index(latent_launch)] + v[index(latent_block)] * std::max(1.0, blocks / d.cores) +
                   overlapped(compute, memory, v[index(latent_overlap)]) + queries;
  if (blocks < d.cores && steps > 1) {
    const double parts = std::min(blocks * steps, blocks + d.cores);
    seconds += v[index(latent_split)] + parts * std::min(rows, kRows) * a.v_dim * kResultBytes / d.bandwidth;
  }
  return seconds;
}

}  // namespace llmperf::mapper
