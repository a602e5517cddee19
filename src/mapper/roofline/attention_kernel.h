// Time of fused attention kernels; derivations in prefill_kernel.cpp and decode_kernel.cpp (FlashAttention-2),
// flash3_kernel.cpp (FlashAttention-3) and latent_kernel.cpp (FlashMLA).
#pragma once

#include <cstdint>

#include "hardware/runtime_profile.h"
#include "mapper/roofline/kernel_device.h"

namespace llmperf::mapper {

struct AttentionCall {
  double sequences = 1;
  double queries = 1;  // per sequence, after `context` cached tokens
  double context = 0;
  double longest = 0;   // context of the longest sequence, where `context` is the mean of unequal ones
  double window = 0;    // keys that a query sees at most; 0: all
  double all_keys = 0;  // > 0: every query sees that many, and nothing is masked
  double heads = 1;
  double kv_heads = 1;
  double qk_dim = 128;
  double v_dim = 128;
  bool shared_kv = false;      // values are the first v_dim elements of the keys
  double element_bytes = 2;    // of queries and results
  double key_value_bytes = 2;  // of cached elements
  double copies = 0;           // caches that take turns in a measurement; 0: they come from memory

  double keys() const { return all_keys > 0 ? all_keys : context + queries; }
  double longest_keys() const { return longest > context && all_keys <= 0 ? longest + queries : keys(); }
  bool cuts() const { return window > 0 && window < keys(); }      // some keys are outside of the window
  bool narrow() const { return key_value_bytes < element_bytes; }  // cached elements are fewer bits than queries
  double key_bytes() const { return (qk_dim + (shared_kv ? 0 : v_dim)) * key_value_bytes; }  // with its value, per head
};

// Seconds of attention over new tokens of prompts (causal, or without a mask), and of one new token per sequence.
double prefill_seconds(const KernelDevice& device, const hardware::ParameterValues& values,
                       const hardware::KernelChoices& choices, const AttentionCall& call);
double decode_seconds(const KernelDevice& device, const hardware::ParameterValues& values,
                      const hardware::KernelChoices& choices, const AttentionCall& call);
// The same where the profile's kernels are not FlashAttention-2's, and of new tokens on latents (shared_kv).
double flash3_prefill_seconds(const KernelDevice& device, const hardware::ParameterValues& values,
                              const hardware::KernelChoices& choices, const AttentionCall& call);
double flash3_decode_seconds(const KernelDevice& device, const hardware::ParameterValues& values,
                             const AttentionCall& call);
double latent_seconds(const KernelDevice& device, const hardware::ParameterValues& values, const AttentionCall& call);
// Writing the keys and values of `tokens` tokens to the cache, `width` elements of each, without a launch; bytes: read
// and written together.
double append_seconds(const KernelDevice& device, const hardware::ParameterValues& values, double tokens, double width,
                      double bytes);

// For both kinds: keys (with their values) that a block works on at a time, as many as the shared memory of a core
// holds at that head size.
double keys_per_step(const AttentionCall& call);
// Sum over i = 1 … blocks of ceil((context + i rows) / width): steps of blocks under a causal mask.
double steps_until(double context, std::int64_t rows, std::int64_t width, double blocks);
// The copies of queries and results, by which the heads of a group become the rows of one block, where they move
// anything: grouped heads of several KV heads and several sequences.
double regroup_seconds(const KernelDevice& device, const hardware::ParameterValues& values, const AttentionCall& call);

}  // namespace llmperf::mapper
