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
#include "mapper/roofline/attention_kernel.h"
#include "mapper/roofline/kernel_norm.h"

namespace llmperf::mapper {

using enum hardware::Parameter;

namespace {

constexpr double kBlocksPerCore = 2;
constexpr double kMaxSplits = 128;
constexpr double kFullEnough = 0.8;   // share of the slots from which keys are not divided
constexpr double kGoodEnough = 0.85;  // of the best filling of the last round
constexpr double kPartialBytes = 4;   // partial results are in 32-bit floating point

// In how many parts the keys are divided: the smallest number that fills the last round of blocks nearly as well as the
// best one does. `steps` is the length of the whole chain.
double key_splits(double blocks, double steps, double slots) {
  if (blocks >= kFullEnough * slots) return 1;
  const double most = std::min({kMaxSplits, slots, steps});
  const auto filled = [&](double n) {
    const bool shortens = n == 1 || rounded_up(steps / n) != rounded_up(steps / (n - 1));
    return shortens ? blocks * n / slots / rounded_up(blocks * n / slots) : 0;
  };
  double best = 0;
  for (double n = 1; n <= most; ++n) best = std::max(best, filled(n));
  for (double n = 1; n <= most; ++n) {
    if (filled(n) >= kGoodEnough * best) return n;
  }
  return 1;
}

}  // namespace

double regroup_seconds(const KernelDevice& d, const hardware::ParameterValues& v, const AttentionCall& a) {
  if (a.heads <= a.kv_heads || a.kv_heads <= 1 || a.sequences <= 1) return 0;
  const double moved = 2 * a.sequences * a.heads * a.queries * (a.qk_dim + a.v_dim) * a.element_bytes;
  return v[index(decode_copy)] + moved / (d.bandwidth * v[index(decode_copy_share)]);
}

double decode_seconds(const KernelDevice& d, const hardware::ParameterValues& v, const hardware::KernelChoices& c,
                      const AttentionCall& a) {
  if (!c.has_flash2_form()) return flash3_decode_seconds(d, v, a);
  const bool grouped = a.heads > a.kv_heads;
  const double group = a.heads / a.kv_heads * a.queries;
  const double keys = a.window > 0 ? std::min(a.keys(), a.window) : a.keys();
  const double width = keys_per_step(a);
  const double steps = rounded_up(keys / width);
  const double slots = kBlocksPerCore * d.cores;

  const double whole = a.sequences * a.kv_heads * rounded_up(group / static_cast<double>(c.query_rows));
  const double splits = grouped || c.split_ungrouped ? key_splits(whole, steps, slots) : 1;
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

}  // namespace llmperf::mapper
