// Attention over prompts as FlashAttention-2 computes it (arXiv:2307.08691): a thread block takes R rows of Q of one
// head and walks over the keys that they see, `n` at a time, each step costing
//
//   tau = 2 R n (qk + v) / (share F / cores)
//
// whether all rows and keys are there or not. Block i of a sequence with c cached tokens sees ceil((c + i R) / n)
// steps, so that blocks grow with i (causal mask), and are started in that order: the longest ones last. With w =
// ceil(blocks / cores) rounds, a mean of b and a longest of l seconds per block, and s to start one,
//
//   max(l + s, w (b + s) + tail (l - b)).
//
// A chunk of a prompt with a long past has blocks of nearly one length, and whole rounds; without a mask all blocks are
// alike. All this overlaps, as a p-norm, with reading Q, K and V and writing the result. Heads are computed as the next
// width there is a kernel for, a multiple of 32 (FlashAttention: 32, 64, 96, 128 and so on).
//
// CANN's kernel (FusedInferAttentionScore) multiplies beside the softmax of the keys before. The first have none: 128
// rows of a block take `fill` for every 128 of its first 512 keys. Blocks are twice as tall where every head has keys
// of its own, and the last one computes the rows it has, rounded up to 16.
#include <cstdint>
#include <numeric>

#include "mapper/roofline/attention_kernel.h"
#include "mapper/roofline/kernel_norm.h"

namespace llmperf::mapper {

using enum hardware::Parameter;

// The residues of i rows repeat after `period` blocks, so this is that many arithmetic series.
double steps_until(double context, std::int64_t rows, std::int64_t width, double blocks) {
  const auto common = static_cast<double>(std::gcd(rows, width));
  const double period = static_cast<double>(width) / common;
  const double growth = static_cast<double>(rows) / common;  // steps that a period adds
  double sum = 0;
  for (double first = 1; first <= std::min(period, blocks); ++first) {
    const double terms = std::floor((blocks - first) / period) + 1;
    const double steps = rounded_up((context + first * static_cast<double>(rows)) / static_cast<double>(width));
    sum += terms * steps + growth * terms * (terms - 1) / 2;
  }
  return sum;
}

double keys_per_step(const AttentionCall& a) {
  const double elements = a.qk_dim + a.v_dim;
  return elements <= 128 ? 256 : elements <= 256 ? 128 : 64;
}

double prefill_seconds(const KernelDevice& d, const hardware::ParameterValues& v, const hardware::KernelChoices& c,
                       const AttentionCall& a) {
  if (!c.has_flash2_form()) return flash3_prefill_seconds(d, v, c, a);
  constexpr double kFilling = 512;
  constexpr double kFillingUnit = 128;  // rows, and keys
  const bool cann = c.attention == hardware::AttentionKernels::cann;
  const bool regrouped = a.queries == 1 && a.heads > a.kv_heads;  // the heads of a group are the rows of a block
  const double rows = static_cast<double>(c.query_rows) * (cann && a.heads <= a.kv_heads ? 2 : 1);
  const double width = keys_per_step(a);
  const double context = std::max(0.0, a.context);
  const double group = a.heads / a.kv_heads;
  const double blocks = rounded_up((regrouped ? group : a.queries) / rows);
  const double all_blocks = blocks * (regrouped ? a.kv_heads : a.heads) * a.sequences;

  // Of a window, a block sees what its first and its last row see together.
  const double seen = a.all_keys > 0 ? a.all_keys
                      : a.window > 0 ? a.window + std::min(rows, a.queries) - 1
                                     : context + a.queries;
  double longest = rounded_up(std::min(a.keys(), seen) / width);
  const auto filling = [&](double steps) { return cann ? std::min(steps * width, kFilling) / kFillingUnit : 0; };
  double mean = longest;
  double full = filling(longest);
  double fill = full;
  if (!regrouped && blocks > 1 && a.all_keys == 0) {
    const double growing = std::clamp(std::floor((seen - context) / rows), 0.0, blocks - 1);
    const double steps =
        steps_until(context, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width), growing) +
        (blocks - growing) * longest;
    mean = steps / blocks;
    double missing = 0;  // of the blocks that do not see as many keys
    for (double i = 1; i <= growing; ++i) {
      const double less = full - filling(rounded_up((context + i * rows) / width));
      if (less <= 0) break;
      missing += less;
    }
    fill -= missing / blocks;
  }

  if (cann) {
    constexpr double kRowGranule = 16;
    const double last = (regrouped ? group : a.queries) - (blocks - 1) * rows;
    const double missing = 1 - std::min(1.0, round_up(last, kRowGranule) / rows);
    mean -= missing * longest / blocks;
    fill -= missing * full / blocks;
    if (blocks == 1) {
      longest = mean;
      full = fill;
    }
  }

  constexpr double kHeadGranule = 32;
  const double head = round_up(a.qk_dim, kHeadGranule) + round_up(a.v_dim, kHeadGranule);
  const double step = 2 * rows * width * head * d.cores / (d.matrix * v[index(prefill_share)]);
  const double start = v[index(prefill_block)];
  const double rounds = rounded_up(all_blocks / d.cores);
  const double each = v[index(prefill_fill)] * rows / kFillingUnit;
  const double compute =
      std::max(longest * step + start + full * each,
               rounds * (mean * step + start + fill * each) + v[index(prefill_tail)] * (longest - mean) * step);

  const double keys = std::min(a.keys(), a.window > 0 ? a.window + a.queries - 1 : a.keys());
  const double bytes =
      a.sequences * (a.heads * a.queries * (a.qk_dim + a.v_dim) * a.element_bytes + a.kv_heads * keys * a.key_bytes());
  const double memory = bytes / (d.bandwidth * v[index(prefill_memory_share)]);
  return v[index(prefill_launch)] + overlapped(compute, memory, v[index(prefill_overlap)]) +
         (regrouped ? regroup_seconds(d, v, a) : 0);
}

// A thread block per token handles up to 512 elements of a row at a time; more heads hide behind each other.
double append_seconds(const KernelDevice& d, const hardware::ParameterValues& v, double tokens, double width,
                      double bytes) {
  constexpr double kBlockElements = 512;  // four KV heads of 128
  constexpr double kOverlap = 4;
  const double start = v[index(append_token)] * tokens * std::min(width, kBlockElements) / kBlockElements / d.cores;
  return overlapped(start, bytes / (d.bandwidth * v[index(append_share)]), kOverlap);
}

}  // namespace llmperf::mapper
