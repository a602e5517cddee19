// Attention as FlashAttention-3 computes it on Hopper (arXiv:2407.08608; its sources: hopper/tile_size.h, heuristics.h,
// flash_prepare_scheduler.cu). The query heads of a group and the tokens of a sequence together are the rows of one
// product ("packed"), of which a block takes R. It walks over the keys that its last row sees, n at a time, each step
// costing
//
//   tau = 2 R n (qk + v) / (share F / cores) + R n / exponential rate
//
// since exponentials, 16 in a clock, do not hide behind the products: that is why wide heads get nearer to the peak
// than narrow ones. R and n are read off tile_size.h. A scheduler deals blocks to cores as these get free, so that
// there are no whole rounds; the last blocks end late by a share of the longest one. s seconds start a block, and where
// blocks do not fill the cores their keys are divided into parts, which another kernel joins:
//
//   launch + p-norm( max(sum of blocks / cores + tail longest fill, longest), bytes / (share B) ) + join
//
// Keys of 8 bits: queries are made as narrow before, values transposed on the way, and what is left of the rate of
// narrow products then is a share of its own with the exponentials in it.
//
// Latent attention over a prompt is the same on expanded keys of 192 and values of 128, by another kernel's numbers.
// Where these are made narrow like the queries before, its products are no faster for it.
//
// One new token: a block takes the heads of a group (64 rows) and streams its keys; a part of the keys is
//
//   start (elements / 256)^(3/8) + (keys - n) elements / rate
//
// (of sequences of unequal lengths the rounds are those of the mean, and no shorter than a part of the longest one)
// with the first step in the start, which grows slower than a head, and a time more where a window masks keys. Keys of
// 8 bits arrive as slow as others of as many elements. Rounds of it add up, as a p-norm with the bytes. A kernel that
// sorts sequences by their length (of at most 992) takes a time per sequence.
//
// Kernels for Blackwell (TensorRT-LLM, FlashInfer) keep heads of a group in blocks of their own, of 256 rows.
#include <cmath>
#include <cstdint>

#include "base/maths.h"
#include "mapper/roofline/attention_kernel.h"
#include "mapper/roofline/kernel_norm.h"

namespace llmperf::mapper {

using enum hardware::Parameter;

namespace {

struct Flash3Tile {
  double rows;
  double keys;
};
Flash3Tile flash3_tile(const AttentionCall& a) {
  constexpr double kNarrowHead = 96;
  constexpr double kUsualHead = 128;
  constexpr double kWideHead = 192;
  if (a.qk_dim <= kNarrowHead) return {192, 128};
  if (a.qk_dim <= kUsualHead) return {128, 128};
  if (a.qk_dim <= kWideHead) return {128, a.v_dim <= kUsualHead ? 128.0 : 96.0};
  return {128, 80};
}

// Heads are computed as the next width there is a kernel for.
double flash3_width(double elements) {
  for (const double width : {64.0, 96.0, 128.0}) {
    if (elements <= width) return width;
  }
  return round_up(elements, 64);
}

// What prompts and latent attention over prompts have each for themselves.
struct PromptKernel {
  double launch;
  double share;
  double block;
  double exponential_rate;
  double narrow_share;  // over keys of 8 bits, with exponentials; 0: no other than over others
};

// In how many parts the keys are divided: the smallest number that fills the last round nearly as well as the best one
// does.
double flash3_splits(double blocks, double steps, double cores) {
  constexpr double kFull = 0.8;    // share of the cores from which keys are not divided
  constexpr double kGood = 0.85;   // of the best filling of the last round
  constexpr double kFewSteps = 4;  // that are not divided
  constexpr double kMostParts = 32;
  if (blocks >= kFull * cores || steps <= kFewSteps) return 1;
  const double most = std::min({kMostParts, cores, steps});
  const auto filled = [&](double parts) { return blocks * parts / cores / rounded_up(blocks * parts / cores); };
  double best = 0;
  for (double parts = 1; parts <= most; ++parts) best = std::max(best, filled(parts));
  double parts = 1;
  while (filled(parts) < kGood * best) ++parts;
  return parts;
}

// Read and written by the kernel that joins partial results, which are in 32-bit floating point.
double joined_bytes(const AttentionCall& a, double parts) {
  constexpr double kBytes = 8;
  return parts * a.sequences * a.heads * a.queries * a.v_dim * kBytes;
}

double query_bytes(const AttentionCall& a) {
  return a.sequences * a.heads * a.queries * (a.qk_dim + a.v_dim) * a.element_bytes;
}

// Elements of a sequence are read wide and written as narrow as the cache.
double narrowing_seconds(const KernelDevice& d, const AttentionCall& a, double elements, double launch) {
  if (!a.narrow()) return 0;
  return launch + a.sequences * elements * (a.element_bytes + a.key_value_bytes) / d.bandwidth;
}
double query_elements(const AttentionCall& a) { return a.queries * a.heads * a.qk_dim; }

double prompt_seconds(const KernelDevice& d, const hardware::ParameterValues& v, const PromptKernel& kernel,
                      const AttentionCall& a, bool packed) {
  Flash3Tile tile = flash3_tile(a);
  if (!packed) {
    constexpr double kLargeTile = 256;
    tile = {a.queries >= kLargeTile ? kLargeTile : kLargeTile / 2, 128};
  }
  const double group = packed ? a.heads / a.kv_heads : 1;
  const double context = std::max(0.0, a.context);
  const double blocks = rounded_up(a.queries * group / tile.rows);

  // Row r of a sequence is that of token ceil(r / group), so that block i sees ceil((context + i R / group) / n) steps,
  // and the last one all of them. Of a window, which starts anywhere in a step, a block sees what its first and its
  // last row see together.
  double longest = rounded_up(a.keys() / tile.keys);
  double steps = blocks * longest;
  if (a.all_keys <= 0) {
    double growing = blocks - 1;
    if (a.cuts()) {
      const double seen = a.window + std::min(rounded_up(tile.rows / group), a.queries) - 1;
      longest = std::min(longest, (seen - 1) / tile.keys + 1);
      growing = std::clamp(std::floor((seen - context) * group / tile.rows), 0.0, growing);
    }
    steps = steps_until(context * group, static_cast<std::int64_t>(tile.rows),
                        static_cast<std::int64_t>(tile.keys * group), growing) +
            (blocks - growing) * longest;
  }

  const double cells = tile.rows * tile.keys;
  const double products = 2 * cells * (flash3_width(a.qk_dim) + flash3_width(a.v_dim)) * d.cores / d.matrix;
  const bool expanded = kernel.narrow_share <= 0;
  const double step = a.narrow() && !expanded ? products / kernel.narrow_share
                                              : products / kernel.share + cells / kernel.exponential_rate;
  const double whole = blocks * a.sequences * (packed ? a.kv_heads : a.heads);
  const double parts = flash3_splits(whole, longest, d.cores);
  const double each = (parts > 1 ? rounded_up(longest / parts) : longest) * step + kernel.block;
  const double work = (steps * step + blocks * parts * kernel.block) * (whole / blocks) / d.cores;
  const double fill = std::min(1.0, whole * parts / d.cores);
  const double compute = std::max(work + v[index(prefill_tail)] * each * fill, each);

  const double keys = std::min(a.keys(), a.window > 0 ? a.window + a.queries - 1 : a.keys());
  const double rate = d.bandwidth * v[index(prefill_memory_share)];
  const double memory = (query_bytes(a) + a.sequences * a.kv_heads * keys * a.key_bytes()) / rate;
  const double narrowed = query_elements(a) + (expanded ? a.kv_heads * a.keys() * (a.qk_dim + a.v_dim) : 0);
  return kernel.launch + overlapped(compute, memory, v[index(prefill_overlap)]) +
         narrowing_seconds(d, a, narrowed, v[index(prefill_quantise)]) +
         (parts > 1 ? joined_bytes(a, parts) / rate : 0);
}

}  // namespace

double flash3_prefill_seconds(const KernelDevice& d, const hardware::ParameterValues& v,
                              const hardware::KernelChoices& c, const AttentionCall& a) {
  const bool packed = c.attention == hardware::AttentionKernels::flash3;
  const bool latent = a.qk_dim != a.v_dim;
  if (!latent) {
    return prompt_seconds(d, v,
                          {v[index(prefill_launch)], v[index(prefill_share)], v[index(prefill_block)],
                           v[index(prefill_exponential_rate)], v[index(prefill_narrow_share)]},
                          a, packed);
  }
  const PromptKernel kernel{v[index(latent_prompt_launch)], v[index(latent_prompt_share)],
                            v[index(latent_prompt_block)], v[index(latent_prompt_exponential_rate)], 0};
  return prompt_seconds(d, v, kernel, a, packed) + v[index(latent_token)] * a.sequences * a.queries / d.cores;
}

double flash3_decode_seconds(const KernelDevice& d, const hardware::ParameterValues& v, const AttentionCall& a) {
  constexpr double kRows = 64;
  constexpr double kUsualElements = 256;  // of a key and its value
  constexpr double kStartGrowth = 0.375;
  constexpr double kMostSorted = 992;
  const double elements = a.qk_dim + a.v_dim;
  const double width = flash3_tile(a).keys;
  const double keys = a.cuts() ? a.window : a.keys();
  const double steps = rounded_up(keys / width);
  const double whole = a.sequences * a.kv_heads * rounded_up(a.queries * a.heads / a.kv_heads / kRows);
  const double parts = flash3_splits(whole, steps, d.cores);

  const auto part = [&](double of) {
    const double streamed = std::max(0.0, std::min(rounded_up(rounded_up(of / width) / parts) * width, of) - width);
    return v[index(decode_block)] * maths::pow(elements / kUsualElements, kStartGrowth) +
           streamed * elements * a.element_bytes / v[index(decode_block_rate)] +
           (a.cuts() ? v[index(decode_window)] : 0);
  };
  const double longest = a.cuts() ? a.window : a.longest_keys();  // of unequal sequences, which the others run beside
  const double rounds = rounded_up(whole * parts / d.cores);
  const double rate = d.bandwidth * v[index(decode_memory_share)];
  const double memory = (query_bytes(a) + a.sequences * a.kv_heads * keys * a.key_bytes()) / rate;

  double seconds = v[index(decode_launch)] +
                   overlapped(std::max(rounds * part(keys), part(longest)), memory, v[index(decode_overlap)]) +
                   narrowing_seconds(d, a, query_elements(a), v[index(decode_quantise)]);
  if (a.sequences <= kMostSorted) seconds += v[index(decode_sequence)] * a.sequences;
  if (parts > 1) {
    seconds += v[index(decode_split)] + parts * v[index(decode_split_each)] + joined_bytes(a, parts) / rate;
  }
  return seconds;
}

}  // namespace llmperf::mapper
