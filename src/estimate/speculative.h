// Speculative decoding: a draft proposes k tokens one by one, the target checks them in one step of k + 1 tokens and
// keeps the longest accepted run plus one token of its own. speculative.cpp has the formulas.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "estimate/estimate.h"

namespace llmperf::estimate {

struct SpeculativeScenario {
  std::int64_t batch = 1;      // sequences that draft and verify in lockstep
  std::int64_t context = 512;  // tokens of each already in both caches; at least 1
};

// One round with draft length k = `length`.
struct SpeculativeRound {
  std::int64_t length = 0;
  double expected_tokens = 1;  // per sequence
  Seconds draft;               // k steps of the draft
  Seconds verify;              // one target step of k + 1 tokens per sequence
  double speedup = 1;          // over plain decoding with the target
  Seconds time() const { return draft + verify; }
  Seconds time_per_token() const { return time() / expected_tokens; }
};

// The fastest of them, or null where none is faster than plain decoding.
const SpeculativeRound* best_round(std::span<const SpeculativeRound> rounds);

struct Speculation {
  SpeculativeScenario scenario;
  Acceptance acceptance;
  Seconds target_step;                   // plain decoding: one token per sequence
  std::vector<SpeculativeRound> rounds;  // k = 1, 2, …, kMaxDraftLength
  std::int64_t best_length = 0;          // 0: do not speculate, no length is faster than plain decoding
  double best_speedup = 1;

  // Both models, their caches and the longest round's activations on one device. The times assume that they fit.
  Bytes memory;
  Bytes capacity;
  bool fits = false;
  const SpeculativeRound* best() const { return best_round(rounds); }
};

// Rounds of length 1, 2, … from step times: drafts[i] is what i + 1 steps of the draft take, verifies[i] the target's
// step of i + 2 tokens. Both spans are equally long.
std::vector<SpeculativeRound> speculative_rounds(const Acceptance& acceptance, Seconds target_step,
                                                 std::span<const Seconds> drafts, std::span<const Seconds> verifies);

// With the modelled times of every step at one context. The setup has a draft. Throws Error(bad_input) for a batch or a
// context out of range.
Speculation speculate(const Setup& setup, const SpeculativeScenario& scenario);

// The mean rounds of a scenario's generation, of length 1, 2, …, `most`, against the same without a draft; none where
// it decodes nothing. The setup has a draft, and the longest one fits.
std::vector<SpeculativeRound> rounds_of(const Setup& setup, const Scenario& scenario, std::int64_t most);

}  // namespace llmperf::estimate
