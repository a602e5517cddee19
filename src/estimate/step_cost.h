// What one step of continuous batching takes: sequences that decode, pieces of prompts, or both. The time is the sum of
// what a step is made of, each from a table that is filled the first time it is asked for:
//
//   rows(rows that products compute) + head(rows whose logits are made) + attention(decodes, their contexts)
//   + sum over chunks of attention(new tokens, context) + what the runtime takes beside the kernels
//
// The tables hold what Estimator takes for the same ops, so that a step of one group is the estimate's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/units.h"
#include "estimate/setup.h"

namespace llmperf::estimate {

// A piece of one prompt, before which `context` of its tokens are cached.
struct Chunk {
  std::int64_t tokens = 0;
  std::int64_t context = 0;
};

struct StepShape {
  std::int64_t decodes = 0;      // sequences that get a token, or with a draft verify some
  std::int64_t context_sum = 0;  // tokens that they have cached, together
  std::int64_t context_max = 0;  // … and the longest of them
  std::span<const Chunk> chunks = {};
};

struct StepTime {
  Seconds latency;   // until the results of the step are there
  Seconds interval;  // until the next may begin: less where pipeline stages work on several steps
};

// Thread-safe: tables fill up once, whoever asks.
class StepCost {
 public:
  // What the setup points to must outlive it. With a draft a step of decodes is that of the target, which verifies, and
  // the draft's steps before it.
  explicit StepCost(Setup setup);
  ~StepCost();
  StepCost(const StepCost&) = delete;
  StepCost& operator=(const StepCost&) = delete;

  StepTime operator()(const StepShape& shape) const;
  const Setup& setup() const;

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace llmperf::estimate
