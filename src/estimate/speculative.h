// Speculative decoding: a small draft model proposes k tokens one by one, the target checks them in one step of k + 1
// tokens and keeps the longest accepted run plus one token of its own. speculative.cpp has the formulas.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "estimate/estimate.h"

namespace llmperf::estimate {

inline constexpr std::int64_t kMaxDraftLength = 32;

struct SpeculativeScenario {
  double acceptance = 0.8;     // chance that the target keeps a draft token whose predecessors it kept; in [0, 1)
  std::int64_t batch = 1;      // sequences that draft and verify in lockstep
  std::int64_t context = 512;  // tokens of each already in both caches; at least 1
};

// One round with draft length k = `length`.
struct SpeculativeRound {
  std::int64_t length = 0;
  double expected_tokens = 1;  // per sequence
  Seconds draft;               // k decode steps of the draft model
  Seconds verify;              // one target step of k + 1 tokens per sequence
  double speedup = 1;          // over plain decoding with the target
  Seconds time() const { return draft + verify; }
  Seconds time_per_token() const { return time() / expected_tokens; }
};

struct Speculation {
  SpeculativeScenario scenario;
  Seconds target_step;                   // plain decoding: one token per sequence
  std::vector<SpeculativeRound> rounds;  // k = 1, 2, …, kMaxDraftLength
  std::int64_t best_length = 0;          // 0: do not speculate, no length is faster than plain decoding
  double best_speedup = 1;

  // Both models, their caches and the longest round's activations on one device. The times assume that they fit.
  Bytes memory;
  Bytes capacity;
  bool fits = false;
  std::vector<std::string> notes;
  const SpeculativeRound* best() const {
    return best_length > 0 ? &rounds[static_cast<std::size_t>(best_length - 1)] : nullptr;
  }
};

// 1 + p + … + p^k = (1 - p^(k+1)) / (1 - p): tokens a round of draft length k is expected to yield.
double expected_tokens(double acceptance, std::int64_t length);

// Rounds of length 1, 2, … from step times: draft_steps[i] is the draft model's (i + 1)-th step of a round,
// verify_steps[i] the target's step of i + 2 tokens. Both spans are equally long.
std::vector<SpeculativeRound> speculative_rounds(double acceptance, Seconds target_step,
                                                 std::span<const Seconds> draft_steps,
                                                 std::span<const Seconds> verify_steps);

// With the modelled times of every step. Both setups are for the same device. Throws Error(bad_input) for an acceptance
// rate outside [0, 1), or a batch or context out of range.
Speculation speculate(const Setup& target, const Setup& draft, const SpeculativeScenario& scenario);

}  // namespace llmperf::estimate
