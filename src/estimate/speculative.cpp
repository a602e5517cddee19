// After Leviathan, Kalman, Matias, "Fast inference from transformers via speculative decoding" (ICML 2023, arXiv
// 2211.17192). If every draft token is accepted with chance p given that those before it were, a round of draft length
// k yields
//   E(k) = 1 + p + … + p^k = (1 - p^(k+1)) / (1 - p)
// tokens: token i of the draft survives with p^i, and the target always adds one of its own. The paper's speed-up
// E(k) / (1 + c k), c being the cost of a draft step in target steps, takes the check of k + 1 tokens for as cheap as a
// decode step. That is so while the step is bound by reading weights and not for large batches, therefore each step is
// modelled:
//   speedup(k) = E(k) t_target(1 token) / (t_draft(context) + … + t_draft(context + k - 1) + t_target(k + 1 tokens)).
// The check needs the logits of all its tokens. Left out: sampling and comparing the two distributions, and the token
// by which the draft's cache lags behind after a fully accepted round.
#include "estimate/speculative.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cost/memory.h"

namespace llmperf::estimate {
namespace {

using graph::SequenceGroup;

void check_scenario(const SpeculativeScenario& s) {
  if (!(s.acceptance >= 0 && s.acceptance < 1)) {
    throw Error::bad_input(fmt::format("the acceptance rate has to be at least 0 and below 1, not {}", s.acceptance));
  }
  if (s.batch < 1 || s.batch > kMaxBatch) {
    throw Error::bad_input(fmt::format("the batch has to be between 1 and {}, not {}", kMaxBatch, s.batch));
  }
  if (s.context < 1 || s.context > kMaxTokens) {
    throw Error::bad_input(fmt::format("the context has to be between 1 and {} tokens, not {}", kMaxTokens, s.context));
  }
}

// A check samples from the target's distribution after every draft token.
Setup with_all_logits(Setup setup) {
  setup.execution.runtime.last_token_logits = false;
  return setup;
}

// One step runs at a time: activations are shared, and so is what the runtime reserves.
Bytes memory_of(const Estimator& target, const Estimator& draft, const Estimator& verifier,
                const SpeculativeScenario& s) {
  const Scenario whole{s.batch, s.context, kMaxDraftLength + 1};
  const cost::Memory a = target.memory(whole);
  const cost::Memory b = draft.memory(whole);
  const SequenceGroup longest{s.batch, kMaxDraftLength + 1, s.context};
  const Bytes check = cost::activation_peak(verifier.setup().execution, longest);
  return a.weights + a.kv_cache + b.weights + b.kv_cache + std::max({a.activation, b.activation, check}) +
         std::max(a.reserve, b.reserve);
}

}  // namespace

double expected_tokens(double acceptance, std::int64_t length) {
  double sum = 1;
  for (std::int64_t i = 0; i < length; ++i) sum = 1 + acceptance * sum;
  return sum;
}

std::vector<SpeculativeRound> speculative_rounds(double acceptance, Seconds target_step,
                                                 std::span<const Seconds> draft_steps,
                                                 std::span<const Seconds> verify_steps) {
  std::vector<SpeculativeRound> rounds;
  rounds.reserve(draft_steps.size());
  Seconds drafted;
  for (std::size_t i = 0; i < draft_steps.size(); ++i) {
    drafted += draft_steps[i];
    SpeculativeRound round;
    round.length = static_cast<std::int64_t>(i) + 1;
    round.expected_tokens = expected_tokens(acceptance, round.length);
    round.draft = drafted;
    round.verify = verify_steps[i];
    round.speedup = target_step / round.time_per_token();
    rounds.push_back(round);
  }
  return rounds;
}

Speculation speculate(const Setup& target_setup, const Setup& draft_setup, const SpeculativeScenario& scenario) {
  check_scenario(scenario);
  Estimator target(target_setup);
  Estimator verifier(with_all_logits(target_setup));
  Estimator draft(draft_setup);
  const auto step_time = [&](Estimator& estimator, std::int64_t new_tokens, std::int64_t context) {
    const SequenceGroup group{scenario.batch, new_tokens, context};
    return estimator.step_time({&group, 1});
  };

  Speculation result;
  result.scenario = scenario;
  result.target_step = step_time(target, 1, scenario.context);
  std::vector<Seconds> draft_steps, verify_steps;
  for (std::int64_t k = 1; k <= kMaxDraftLength; ++k) {
    draft_steps.push_back(step_time(draft, 1, scenario.context + k - 1));
    verify_steps.push_back(step_time(verifier, k + 1, scenario.context));
  }
  result.rounds = speculative_rounds(scenario.acceptance, result.target_step, draft_steps, verify_steps);
  for (const SpeculativeRound& round : result.rounds) {
    if (round.speedup > result.best_speedup) {
      result.best_speedup = round.speedup;
      result.best_length = round.length;
    }
  }

  result.memory = memory_of(target, draft, verifier, scenario);
  result.capacity = target.capacity();
  result.fits = result.memory <= result.capacity;
  const model::Decoder& a = *target_setup.execution.model;
  const model::Decoder& b = *draft_setup.execution.model;
  if (a.vocab != b.vocab) {
    result.notes.push_back(fmt::format(
        "{} has a vocabulary of {} and {} one of {}: drafting needs the same tokens (padding of the table may differ)",
        a.name, a.vocab, b.name, b.vocab));
  }
  return result;
}

}  // namespace llmperf::estimate
