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
#include <cmath>
#include <numeric>

#include "mapper/roofline/kernels.h"

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

double prefill_seconds(const KernelDevice& d, const ParameterValues& v, const KernelChoices& c,
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
double append_seconds(const KernelDevice& d, const ParameterValues& v, double tokens, double width, double bytes) {
  constexpr double kBlockElements = 512;  // four KV heads of 128
  constexpr double kOverlap = 4;
  const double start = v[index(append_token)] * tokens * std::min(width, kBlockElements) / kBlockElements / d.cores;
  return overlapped(start, bytes / (d.bandwidth * v[index(append_share)]), kOverlap);
}

// ---- One new token per sequence
//
// Attention of one new token per sequence as FlashAttention-2 computes it with a cache ("Flash-Decoding", pytorch.org
// blog, October 2023; FlashAttention's num_splits_heuristic). The query heads of a group share their K and V and are
// the rows of one thread block, those of every token of a step that verifies together, so blocks are sequences x KV
// heads. Where these do not fill the cores (two blocks each), the keys are divided among s blocks and another kernel
// joins their results; FlashAttention-2 does so for grouped heads only.
//
//   launch + p-norm(chain + s (w - 1), bytes / (share B)) + pack + copy + join
//
// chain: a block reads its keys step by step, each waiting for memory, and so no faster than a rate that it reaches
// alone; the first step is in the launch. w = ceil(blocks / cores) rounds of starting blocks, s seconds each. Grouped
// heads cost a kernel that packs them and, unless there is one sequence or one KV head, copies of queries and results.
// Of sequences of unequal lengths, whose bytes and rounds are those of the mean, the chain is no shorter than the
// longest one's. Keys and values that a measurement left in the cache (copies) come from there, at a share of their
// own. Latent attention, with a group of all heads, can be bound by its products instead of its bytes.

namespace {

constexpr double kBlocksPerCore = 2;
constexpr double kMaxSplits = 128;
constexpr double kFullEnough = 0.8;   // share of the slots from which keys are not divided
constexpr double kGoodEnough = 0.85;  // of the best filling of the last round
constexpr double kPartialBytes = 4;   // partial results are in 32-bit floating point

// In how many parts the keys are divided: the smallest number of those `allowed` that fills the last round of blocks
// nearly as well as the best one does.
template <typename Allowed>
double key_splits(double blocks, double slots, double most, const Allowed& allowed) {
  if (blocks >= kFullEnough * slots) return 1;
  const auto filled = [&](double n) { return allowed(n) ? blocks * n / slots / rounded_up(blocks * n / slots) : 0; };
  double best = 0;
  for (double n = 1; n <= most; ++n) best = std::max(best, filled(n));
  for (double n = 1; n <= most; ++n) {
    if (filled(n) >= kGoodEnough * best) return n;
  }
  return 1;
}
// Of a chain of so many steps, which every part shortens.
double flash2_splits(double blocks, double steps, double slots) {
  return key_splits(blocks, slots, std::min({kMaxSplits, slots, steps}),
                    [&](double n) { return n == 1 || rounded_up(steps / n) != rounded_up(steps / (n - 1)); });
}

}  // namespace

double regroup_seconds(const KernelDevice& d, const ParameterValues& v, const AttentionCall& a) {
  if (a.heads <= a.kv_heads || a.kv_heads <= 1 || a.sequences <= 1) return 0;
  const double moved = 2 * a.sequences * a.heads * a.queries * (a.qk_dim + a.v_dim) * a.element_bytes;
  return v[index(decode_copy)] + moved / (d.bandwidth * v[index(decode_copy_share)]);
}

double decode_seconds(const KernelDevice& d, const ParameterValues& v, const KernelChoices& c, const AttentionCall& a) {
  if (c.attention == hardware::AttentionKernels::xqa) return xqa_decode_seconds(d, v, a);
  if (!c.has_flash2_form()) return flash3_decode_seconds(d, v, c, a);
  const bool grouped = a.heads > a.kv_heads;
  const double group = a.heads / a.kv_heads * a.queries;
  const double keys = a.window > 0 ? std::min(a.keys(), a.window) : a.keys();
  const double width = keys_per_step(a);
  const double steps = rounded_up(keys / width);
  const double slots = kBlocksPerCore * d.cores;

  const double whole = a.sequences * a.kv_heads * rounded_up(group / static_cast<double>(c.query_rows));
  const double splits = grouped || c.split_ungrouped ? flash2_splits(whole, steps, slots) : 1;
  const double blocks = whole * splits;

  const double chain_keys = std::min(rounded_up(steps / splits) * width, keys);
  const double longest = a.window > 0 ? std::min(a.longest_keys(), a.window) : a.longest_keys();
  const double longest_chain = std::min(rounded_up(rounded_up(longest / width) / splits) * width, longest);
  const double chain = std::max(std::max(1.0, blocks / slots) * std::max(0.0, chain_keys - width),
                                std::max(0.0, longest_chain - width)) *
                       a.key_bytes() / v[index(decode_block_rate)];
  const double starts = v[index(decode_block)] * (rounded_up(blocks / d.cores) - 1);

  const double head_elements = a.sequences * a.heads * a.queries * (a.qk_dim + a.v_dim);
  const double cache = a.sequences * a.kv_heads * keys * a.key_bytes();
  const double resident = a.copies > 0 ? cache * d.resident(a.copies * cache) : 0;
  const double memory =
      (cache - resident + head_elements * a.element_bytes) / (d.bandwidth * v[index(decode_memory_share)]) +
      resident / (d.bandwidth * v[index(decode_resident_share)]);
  const double compute = 2 * head_elements * keys / (d.matrix * v[index(prefill_share)]);

  double seconds = v[index(decode_launch)] +
                   overlapped(chain + starts, std::max(memory, compute), v[index(decode_overlap)]) +
                   regroup_seconds(d, v, a);
  if (grouped) seconds += v[index(decode_pack)];
  if (splits > 1) {
    const double parts = splits * a.sequences * a.heads * a.queries * a.v_dim * kPartialBytes;
    seconds += v[index(decode_split)] + splits * v[index(decode_split_each)] +
               parts / (d.bandwidth * v[index(decode_memory_share)]);
  }
  return seconds;
}

// ---- FlashAttention-3
//
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
// Keys of 8 bits: queries are made as narrow before, values transposed on the way, and products reach a share of their
// own. Where a window masks keys, a step takes longer.
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
// Kernels for Blackwell (TensorRT-LLM, FlashInfer) keep heads of a group in blocks of their own, of 256 rows, and
// TensorRT-LLM's for Hopper in blocks of 128.

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
  double narrow_share;  // over keys of 8 bits; 0: no other than over others
};

// Few steps are not divided.
double flash3_splits(double blocks, double steps, double cores) {
  constexpr double kFewSteps = 4;
  constexpr double kMostParts = 32;
  if (steps <= kFewSteps) return 1;
  return key_splits(blocks, cores, std::min({kMostParts, cores, steps}), [](double) { return true; });
}

// Read and written by the kernel that joins partial results, which are in 32-bit floating point.
double joined_bytes(const AttentionCall& a, double parts) {
  constexpr double kBytes = 8;
  return parts * a.sequences * a.heads * a.queries * a.v_dim * kBytes;
}

double query_bytes(const AttentionCall& a) {
  return a.sequences * a.heads * a.queries * (a.qk_dim + a.v_dim) * a.element_bytes;
}

// Elements of a sequence are read wide and written as narrow as the cache. Where they are `scaled` before, by a kernel
// that reads and writes them wide, what was measured in 8 bits began with 16 as well.
double narrowing_seconds(const KernelDevice& d, const AttentionCall& a, double elements, double launch,
                         bool scaled = false) {
  if (!a.narrow() || (!a.widens() && !scaled)) return 0;
  const double wide = std::max(a.element_bytes, 2.0);
  return launch + a.sequences * elements * (wide * (scaled ? 3 : 1) + a.key_value_bytes) / d.bandwidth;
}
double query_elements(const AttentionCall& a) { return a.queries * a.heads * a.qk_dim; }

double prompt_seconds(const KernelDevice& d, const ParameterValues& v, const KernelChoices& choices,
                      const PromptKernel& kernel, const AttentionCall& a) {
  const bool packed = choices.attention == hardware::AttentionKernels::flash3;
  const bool blackwell = choices.attention == hardware::AttentionKernels::blackwell;
  Flash3Tile tile = flash3_tile(a);
  double again = 1;  // times that its products are computed
  if (!packed) {
    constexpr double kLargeTile = 256;
    constexpr double kAccumulated = 128;  // results of a row, of which two tiles fit into a core's own memory for them
    constexpr double kWhole = 256;        // … and with their scores; of wider ones each half meets all scores anew
    const bool large = blackwell && a.queries >= kLargeTile && a.v_dim <= kAccumulated;
    tile = {large ? kLargeTile : kLargeTile / 2, 128};
    if (blackwell && (!a.narrow() || a.shared_kv) && a.v_dim > kWhole)
      again = (2 * a.qk_dim + a.v_dim) / (a.qk_dim + a.v_dim);
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
  const double products = again * 2 * cells * (flash3_width(a.qk_dim) + flash3_width(a.v_dim)) * d.cores / d.matrix;
  const bool expanded = kernel.narrow_share <= 0;
  const double step =
      (products / (a.narrow() && !expanded ? kernel.narrow_share : kernel.share) + cells / kernel.exponential_rate) *
      (a.cuts() ? v[index(prefill_window)] : 1);
  const double whole = blocks * a.sequences * (packed ? a.kv_heads : a.heads);
  const double parts = packed ? flash3_splits(whole, longest, d.cores) : 1;
  const double each = (parts > 1 ? rounded_up(longest / parts) : longest) * step + kernel.block;
  const double work = (steps * step + blocks * parts * kernel.block) * (whole / blocks) / d.cores;
  const double fill = std::min(1.0, whole * parts / d.cores);
  const double compute = std::max(work + v[index(prefill_tail)] * each * fill, each);

  const double keys = std::min(a.keys(), a.window > 0 ? a.window + a.queries - 1 : a.keys());
  const double rate = d.bandwidth * v[index(prefill_memory_share)];
  const double memory = (query_bytes(a) + a.sequences * a.kv_heads * keys * a.key_bytes()) / rate;
  // Latents as they are become as wide as the queries; expanded keys and values as narrow as the cache, queries with
  // them.
  const double expansion = expanded ? a.kv_heads * a.keys() * (a.qk_dim + a.v_dim) : 0;
  const double narrowed = a.shared_kv ? a.keys() * a.qk_dim : query_elements(a) + expansion;
  return kernel.launch + overlapped(compute, memory, v[index(prefill_overlap)]) +
         narrowing_seconds(d, a, narrowed, v[index(prefill_quantise)], choices.queries_scaled && !expanded) +
         (parts > 1 ? joined_bytes(a, parts) / rate : 0);
}

}  // namespace

double flash3_prefill_seconds(const KernelDevice& d, const ParameterValues& v, const KernelChoices& c,
                              const AttentionCall& a) {
  const bool latent = a.qk_dim != a.v_dim;
  if (!latent) {
    return prompt_seconds(d, v, c,
                          {v[index(prefill_launch)], v[index(prefill_share)], v[index(prefill_block)],
                           v[index(prefill_exponential_rate)], v[index(prefill_narrow_share)]},
                          a);
  }
  const PromptKernel kernel{v[index(latent_prompt_launch)], v[index(latent_prompt_share)],
                            v[index(latent_prompt_block)], v[index(latent_prompt_exponential_rate)], 0};
  return prompt_seconds(d, v, c, kernel, a) + v[index(latent_token)] * a.sequences * a.queries / d.cores;
}

double flash3_decode_seconds(const KernelDevice& d, const ParameterValues& v, const KernelChoices& c,
                             const AttentionCall& a) {
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
                   narrowing_seconds(d, a, query_elements(a), v[index(decode_quantise)], c.queries_scaled);
  if (a.sequences <= kMostSorted) seconds += v[index(decode_sequence)] * a.sequences;
  if (parts > 1) {
    seconds += v[index(decode_split)] + parts * v[index(decode_split_each)] + joined_bytes(a, parts) / rate;
  }
  return seconds;
}

// ---- XQA
//
// One new token as TensorRT-LLM computes it on Hopper (cpp/kernels/xqa of its sources). A block takes the heads of a
// group and streams their keys, two to a core; keys of 8 bits have a launch and a block of their own. Where blocks do
// not fill the cores the keys are divided, and of a window the parts are those of the whole sequence, most of which
// find nothing to do: the more, the longer it is. Heads that share no keys, and groups of more heads than a tile has
// rows, run one by one ("masked multi-head attention"): each a block that reads its keys from the cache, as fast as a
// core widens and adds up their elements.

bool has_block_per_head(const AttentionCall& a) {
  constexpr double kMostGrouped = 32;
  return a.group() <= 1 || a.group() > kMostGrouped;
}

hardware::Parameter xqa_launch(const AttentionCall& a) {
  return a.narrow() && !has_block_per_head(a) ? decode_narrow_launch : decode_launch;
}

double xqa_decode_seconds(const KernelDevice& d, const ParameterValues& v, const AttentionCall& a) {
  constexpr double kStep = 64;  // keys
  constexpr double kUndivided = 256;
  constexpr double kShort = 32;  // keys of which a head's block takes part of its time
  constexpr double kUsualElements = 256;
  constexpr double kStartGrowth = 0.34;
  const bool alone = has_block_per_head(a);
  const bool narrow = a.narrow();
  const double elements = a.qk_dim + a.v_dim;
  const double keys = a.cuts() ? a.window : a.keys();
  const double slots = kBlocksPerCore * d.cores;
  const double whole = a.sequences * (alone ? a.heads * a.queries : a.kv_heads);
  const double most = std::min({kMaxSplits / 2, slots, rounded_up(keys / kStep)});
  const double parts = keys > kUndivided ? key_splits(whole, slots, most, [](double) { return true; }) : 1;

  const double wide = v[index(decode_block)];
  const double block = alone    ? v[index(decode_head_block)] * std::min(1.0, keys / kShort)
                       : narrow ? v[index(decode_narrow_block)]
                                : wide;
  const double grown = alone ? 1 : maths::pow(elements / kUsualElements, kStartGrowth);
  const double longest = a.cuts() ? a.window : a.longest_keys();
  const auto streamed = [&](double of) {
    return alone ? 0 : of / parts * elements * a.key_value_bytes / v[index(decode_block_rate)];
  };
  const double filled = whole * parts / slots;
  const double chain = filled * block * grown + std::max(std::max(1.0, filled) * streamed(keys), streamed(longest));
  double memory = (query_bytes(a) + a.sequences * a.kv_heads * keys * a.key_bytes()) /
                  (d.bandwidth * v[index(decode_memory_share)]);
  if (alone) {
    memory =
        std::max(memory, a.sequences * a.heads * a.queries * keys * elements / (d.cores * v[index(decode_head_rate)]));
  }
  double seconds = v[index(xqa_launch(a))] + overlapped(chain, memory, v[index(decode_overlap)]);
  if (parts > 1) seconds += v[index(decode_split)];
  if (a.cuts() && whole < slots) {
    const double each =
        narrow ? v[index(decode_window)] * v[index(decode_narrow_block)] / wide : v[index(decode_window)];
    seconds += each * std::log2(a.keys() / a.window);
  }
  return seconds;
}

// ---- Triton
//
// Attention by kernels in Triton (SGLang's extend_attention and decode_attention, vLLM's unified attention), which
// stacks fall back on for what their library has no kernel for. A prompt is dealt in blocks of 128 rows of a head, 64
// of a wide one and 32 of one wider than 256, which meet keys 64 at a time, in whole rounds over the cores, at one
// share of the peak; what a window hides is computed, unless the loop skips it. New tokens: a block takes up to 16
// heads of a group, keys are divided into at most 8 parts, and every core streams them at its own rate, widened on the
// way.

const hardware::AttentionCase* triton_case(const KernelChoices& c, const AttentionCall& a, bool prompts) {
  const auto fits = [&](const hardware::AttentionCase& of) {
    const auto open = [](const std::optional<bool>& said, bool is) { return !said || *said == is; };
    return (of.head == 0 || static_cast<double>(of.head) == a.qk_dim) && open(of.window, a.window > 0) &&
           (of.most_grouped == 0 || (a.group() > 1 && a.group() <= static_cast<double>(of.most_grouped))) &&
           open(of.narrow, a.widens()) && open(of.prompts, prompts);
  };
  const auto found = std::find_if(c.triton_attention.begin(), c.triton_attention.end(), fits);
  return found == c.triton_attention.end() ? nullptr : &*found;
}

double triton_prefill_seconds(const KernelDevice& d, const ParameterValues& v, const AttentionCall& a, bool skips) {
  constexpr double kUsualHead = 128;
  constexpr double kWideHead = 256;
  constexpr double kStep = 64;
  const double rows = a.qk_dim <= kUsualHead ? 128 : a.qk_dim <= kWideHead ? 64 : 32;
  const double blocks = rounded_up(a.queries / rows);
  const double keys = round_up(a.keys(), kStep);
  const double longest = skips && a.cuts() ? std::min(keys, 1.5 * a.window + rows) : keys;
  const double mean = std::min(longest, keys - (blocks - 1) * rows / 2);
  const double each =
      2 * rows * (a.qk_dim + a.v_dim) * d.cores / d.matrix / v[index(a.widens() ? triton_narrow_share : triton_share)];
  const double start = v[index(triton_block)];
  const double rounds = rounded_up(a.sequences * a.heads * blocks / d.cores);
  const double bytes = query_bytes(a) + a.sequences * a.kv_heads * a.keys() * a.key_bytes();
  return v[index(triton_launch)] + std::max(rounds * (mean * each + start), longest * each + start) +
         bytes / (d.bandwidth * v[index(triton_memory_share)]);
}

double triton_decode_seconds(const KernelDevice& d, const ParameterValues& v, const AttentionCall& a) {
  constexpr double kHeads = 16;
  constexpr double kParts = 8;
  constexpr double kStep = 64;
  constexpr double kWide = 2;  // B
  const double keys = a.cuts() ? a.window : a.keys();
  const double whole = a.sequences * a.kv_heads * rounded_up(a.group() * a.queries / kHeads);
  const double parts = std::clamp(std::min(rounded_up(keys / kStep), rounded_up(2 * d.cores / whole)), 1.0, kParts);
  const double chain =
      std::max(1.0, whole * parts / d.cores) * keys / parts * (a.qk_dim + a.v_dim) * kWide / v[index(triton_rate)];
  const double bytes = query_bytes(a) + a.sequences * a.kv_heads * keys * a.key_bytes();
  return v[index(triton_launch)] + std::max(chain, bytes / d.bandwidth);
}

// ---- Latents
//
// Attention of new tokens on latents (the absorbed form of DeepSeek-V2, arXiv:2405.04434, section 2.1) as FlashMLA
// computes it (github.com/deepseek-ai/FlashMLA). All heads share keys, whose first elements are the values. A block
// takes 64 rows, heads of one sequence, and walks over its keys 64 at a time, each step costing
//
//   tau = 2 64 64 (qk + v) / (share F / cores)
//
// The tiles of all blocks are dealt evenly to the cores, so that a sequence may end up in several (not where whole ones
// take no more than five tiles longer); another kernel joins its parts. The heads of one sequence read its latents
// once, as far as memory is concerned:
//
//   launch + block max(1, blocks / cores) +
//     p-norm( ceil(steps of all blocks / cores) tau, bytes of latents / (share B) )
//     + bytes of queries and results / (query share B) + join

double latent_seconds(const KernelDevice& d, const ParameterValues& v, const AttentionCall& a) {
  constexpr double kRows = 64;
  constexpr double kKeys = 64;
  constexpr double kSlack = 5;
  constexpr double kResultBytes = 8;  // of a partial result in 32 bits, written and read
  const double rows = a.heads * a.queries;
  const double blocks = a.sequences * rounded_up(rows / kRows);
  const double steps = rounded_up(a.keys() / kKeys);
  const double head = a.qk_dim + a.v_dim;

  const double step = 2 * kRows * kKeys * head * d.cores / (d.matrix * v[index(latent_share)]);
  // The scheduler adds kSlack steps to what each core's share is, so that sequences that nearly fill the cores stay
  // whole.
  const bool whole = blocks < d.cores && blocks * (steps + kSlack) >= d.cores * steps;
  const double compute = (whole ? steps : rounded_up(blocks * steps / d.cores)) * step;
  const double memory =
      a.sequences * a.kv_heads * a.keys() * a.key_bytes() / (d.bandwidth * v[index(latent_memory_share)]);
  const double queries = a.sequences * rows * head * a.element_bytes / (d.bandwidth * v[index(latent_query_share)]);
  double seconds = v[index(latent_launch)] + v[index(latent_block)] * std::max(1.0, blocks / d.cores) +
                   overlapped(compute, memory, v[index(latent_overlap)]) + queries;
  if (blocks < d.cores && steps > 1 && !whole) {
    const double parts = std::min(blocks * steps, blocks + d.cores);
    seconds += v[index(latent_split)] + parts * std::min(rows, kRows) * a.v_dim * kResultBytes / d.bandwidth;
  }
  return seconds;
}

}  // namespace llmperf::mapper
