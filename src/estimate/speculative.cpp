// After Leviathan, Kalman, Matias, "Fast inference from transformers via speculative decoding" (ICML 2023, arXiv
// 2211.17192). If the i-th draft token is accepted with chance p_i given that those before it were, a round of draft
// length k yields
//   E(k) = 1 + p_1 + p_1 p_2 + … + p_1 … p_k, with all p_i = p: (1 - p^(k+1)) / (1 - p)
// tokens: the target always adds one of its own. The paper's speed-up E(k) / (1 + c k), c being the cost of a draft
// step in target steps, takes the check of k + 1 tokens for as cheap as a decode step. That is so while the step is
// bound by reading weights and not for large batches, therefore each step is modelled:
//   speedup(k) = E(k) t_target(1 token) / (k t_draft(context + (k - 1) / 2) + t_target(k + 1 tokens)).
// The check needs the logits of all its tokens. Left out: comparing the two distributions, the draft's pass over the
// prompt, and the tokens by which its cache lags behind after a round.
#include "estimate/speculative.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/node.h"

namespace llmperf::estimate {
namespace {

void check_scenario(const SpeculativeScenario& s) {
  if (s.batch < 1 || s.batch > kMaxBatch) {
    throw Error::bad_input(fmt::format("the batch has to be between 1 and {}, not {}", kMaxBatch, s.batch));
  }
  if (s.context < 1 || s.context > kMaxTokens) {
    throw Error::bad_input(fmt::format("the context has to be between 1 and {} tokens, not {}", kMaxTokens, s.context));
  }
}

Setup without_draft(Setup setup) {
  setup.draft.reset();
  setup.serving.verify = 1;
  setup.serving.accepted = 1;
  return setup;
}

// `setup` with a draft of a length of its own.
Setup of_length(Setup setup) {
  setup.draft->best = false;
  return setup;
}

}  // namespace

const SpeculativeRound* best_round(std::span<const SpeculativeRound> rounds) {
  const SpeculativeRound* best = nullptr;
  for (const SpeculativeRound& round : rounds) {
    if (round.speedup > (best != nullptr ? best->speedup : 1)) best = &round;
  }
  return best;
}

std::vector<SpeculativeRound> speculative_rounds(const Acceptance& acceptance, Seconds target_step,
                                                 std::span<const Seconds> drafts, std::span<const Seconds> verifies) {
  std::vector<SpeculativeRound> rounds;
  rounds.reserve(drafts.size());
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    SpeculativeRound round;
    round.length = static_cast<std::int64_t>(i) + 1;
    round.expected_tokens = expected_tokens(acceptance, round.length);
    round.draft = drafts[i];
    round.verify = verifies[i];
    round.speedup = target_step / round.time_per_token();
    rounds.push_back(round);
  }
  return rounds;
}

Speculation speculate(const Setup& setup, const SpeculativeScenario& scenario) {
  check_scenario(scenario);
  Estimator target(without_draft(setup));
  Estimator drafted(of_length(setup));
  const Scenario s{.batch = scenario.batch, .prompt = scenario.context, .generate = 1};
  Phase step;
  Speculation result;
  result.scenario = scenario;
  result.acceptance = setup.draft->acceptance;
  target.decode_step(s, scenario.context, step);
  result.target_step = step.time;
  std::vector<Seconds> drafts, verifies;
  for (std::int64_t k = 1; k <= kMaxDraftLength; ++k) {
    drafted.set_draft_tokens(k);
    drafted.draft_steps(s, scenario.context, step);
    drafts.push_back(step.time);
    drafted.decode_step(s, scenario.context, step);
    verifies.push_back(step.time);
  }
  result.rounds = speculative_rounds(result.acceptance, result.target_step, drafts, verifies);
  if (const SpeculativeRound* best = result.best()) {
    result.best_speedup = best->speedup;
    result.best_length = best->length;
  }
  result.memory = drafted.memory(s).total();
  result.capacity = drafted.capacity();
  result.fits = result.memory <= result.capacity;
  return result;
}

std::vector<SpeculativeRound> rounds_of(const Setup& setup, const Scenario& scenario, std::int64_t most) {
  const Estimate plain = Estimator(without_draft(setup)).run(scenario);
  if (!plain.fits || !plain.tpot) return {};
  Estimator drafted(of_length(setup));
  std::vector<Seconds> drafts, verifies;
  Estimate e;
  for (std::int64_t k = 1; k <= most; ++k) {
    drafted.set_draft_tokens(k);
    drafted.run(scenario, e);
    if (!e.fits) break;
    drafts.push_back(e.phase("draft")->time);
    verifies.push_back(e.phase("decode")->time);
  }
  return speculative_rounds(setup.draft->acceptance, *plain.tpot, drafts, verifies);
}

// ---- What a target keeps of a draft

namespace {

double rate_value(std::string_view text) {
  const std::optional<double> rate = parse_double(text);
  if (rate && *rate >= 0 && *rate <= 1) return *rate;
  throw Error::bad_input(fmt::format("`accept`: {} is not a chance between 0 and 1", quote(text)),
                         "0.8, or 0.85,0.7,0.6 for the first, second and later tokens, or a file of such numbers");
}

}  // namespace

double Acceptance::of(std::int64_t token) const {
  return rates[std::min(static_cast<std::size_t>(token), rates.size() - 1)];
}

std::string Acceptance::text() const {
  std::string text;
  for (const double rate : rates) text += fmt::format("{}{}", text.empty() ? "" : ", ", format_significant(rate));
  return text;
}

double expected_tokens(const Acceptance& acceptance, std::int64_t length) {
  double sum = 1;
  double kept = 1;
  for (std::int64_t i = 0; i < length; ++i) {
    kept *= acceptance.of(i);
    sum += kept;
  }
  return sum;
}

Acceptance parse_acceptance(const std::string& text) {
  std::string list = text;
  std::error_code none;
  if (!parse_double(text) && std::filesystem::is_regular_file(text, none)) {
    list = descriptor::read_text_file(text, 1 << 20);
    std::replace(list.begin(), list.end(), '\n', ',');
    while (list.ends_with(',')) list.pop_back();
  } else {
    std::replace(list.begin(), list.end(), '/', ',');
  }
  std::vector<double> rates;
  for (const std::string_view rate : split(list, ',')) rates.push_back(rate_value(trim(rate)));
  return Acceptance(std::move(rates));
}

}  // namespace llmperf::estimate
