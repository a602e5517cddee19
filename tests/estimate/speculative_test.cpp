#include "estimate/speculative.h"

#include <cmath>
#include <memory>
#include <string>

#include "base/error.h"
#include "catch.h"

namespace llmperf::speculative_test {

using namespace llmperf::estimate;

namespace {

// Each draft step costs `draft`; a check of k + 1 tokens costs `verify` and `more` per draft token.
std::vector<SpeculativeRound> rounds(double acceptance, double draft, double verify, double more = 0) {
  std::vector<Seconds> drafts, checks;
  for (std::int64_t k = 1; k <= kMaxDraftLength; ++k) {
    drafts.emplace_back(draft * static_cast<double>(k));
    checks.emplace_back(verify + more * static_cast<double>(k));
  }
  return speculative_rounds(acceptance, Seconds{10}, drafts, checks);
}

struct Case {
  model::Decoder target = model::load_decoder("qwen1.5-72b");
  hardware::Device device = hardware::load_device("h100-sxm");
  Setup setup(const model::Decoder& model, const std::string& weights, const Acceptance& acceptance = {},
              const std::string& draft = {}) const {
    Choices choices;
    choices.weights = weights;
    if (!draft.empty()) {
      choices.draft =
          Draft{.file = std::make_shared<model::ModelFile>(model::load_model(draft)), .acceptance = acceptance};
    }
    return make_setup(model, device, choices);
  }
  Speculation speculation(const Acceptance& acceptance, const SpeculativeScenario& scenario) const {
    return speculate(setup(target, "w4a16", acceptance, "qwen1.5-0.5b"), scenario);
  }
};

}  // namespace

TEST_CASE("a round yields the accepted run and one token more", "[speculative]") {
  CHECK(expected_tokens(0, 5) == 1);
  CHECK(expected_tokens(0.8, 0) == 1);
  CHECK(expected_tokens(0.8, 1) == Approx(1.8));
  CHECK(expected_tokens(0.8, 2) == Approx(2.44));
  CHECK(expected_tokens(0.5, 3) == 1.875);
  for (const std::int64_t k : {1, 4, 17}) {
    CHECK(expected_tokens(0.7, k) == Approx((1 - std::pow(0.7, static_cast<double>(k) + 1)) / 0.3));
  }
  // No more than k + 1 tokens, even when nearly everything is accepted.
  CHECK(expected_tokens(1 - 1e-12, 4) == Approx(5));
}

TEST_CASE("with free drafts and free checks the speed-up tends to 1 / (1 - p)", "[speculative]") {
  const auto table = rounds(0.8, 0, 10);
  REQUIRE(table.size() == 32);
  for (const SpeculativeRound& round : table) CHECK(round.speedup == Approx(round.expected_tokens));
  CHECK(table.back().speedup == Approx(5).margin(0.005));  // 5 (1 - 0.8^33) = 4.997
  CHECK(table.back().speedup < 5);
}

TEST_CASE("a draft that costs a tenth of a target step is best six tokens long at 80 % acceptance", "[speculative]") {
  // E(k) 10 / (10 + k): 2.44 / 1.2, 3.68928 / 1.5, 3.951424 / 1.6, 4.1611392 / 1.7.
  const auto table = rounds(0.8, 1, 10);
  CHECK(table[1].speedup == Approx(2.44 / 1.2));
  CHECK(table[4].speedup == Approx(2.459520));
  CHECK(table[5].speedup == Approx(2.469640));
  CHECK(table[6].speedup == Approx(2.447729));
  for (const SpeculativeRound& round : table) {
    CHECK(round.speedup <= table[5].speedup);
    CHECK(round.draft == Seconds{static_cast<double>(round.length)});
    CHECK(round.time().value == round.draft.value + round.verify.value);
    CHECK(round.time_per_token().value * round.speedup == Approx(10));
  }
}

TEST_CASE("nothing is gained when nothing is accepted or a check costs as much as decoding its tokens",
          "[speculative]") {
  for (const SpeculativeRound& round : rounds(0, 0, 10)) CHECK(round.speedup == 1);
  for (const SpeculativeRound& round : rounds(0, 1, 10)) CHECK(round.speedup < 1);
  // A compute-bound target: k + 1 tokens cost k + 1 steps.
  for (const SpeculativeRound& round : rounds(0.9, 0, 10, 10)) CHECK(round.speedup < 1);
}

TEST_CASE("a round is its drafts and its check", "[speculative]") {
  const Seconds draft[] = {Seconds{1}, Seconds{3}, Seconds{6}};
  const Seconds verify[] = {Seconds{10}, Seconds{11}, Seconds{12}};
  const auto table = speculative_rounds(0.5, Seconds{10}, draft, verify);
  REQUIRE(table.size() == 3);
  CHECK(table[2].length == 3);
  CHECK(table[2].draft == Seconds{6});
  CHECK(table[2].verify == Seconds{12});
  CHECK(table[2].speedup == Approx(1.875 * 10 / 18));
}

TEST_CASE("steps cost what the estimator says, the check with the logits of all its tokens", "[speculative]") {
  const Case c;
  const Speculation s = c.speculation(0.8, {.batch = 4, .context = 1000});
  Estimator target(c.setup(c.target, "w4a16"));
  const model::Decoder small = model::load_decoder("qwen1.5-0.5b");
  Estimator draft(c.setup(small, "w4a16"));
  const auto time = [](Estimator& estimator, graph::SequenceGroup group) {
    return estimator.step_time({&group, 1}).value;
  };
  CHECK(s.target_step.value == Approx(time(target, {4, 1, 1000})));
  REQUIRE(s.rounds.size() == 32);
  CHECK(s.rounds[0].draft.value == Approx(time(draft, {4, 1, 1000})));
  CHECK(s.rounds[2].draft.value ==
        Approx(time(draft, {4, 1, 1000}) + time(draft, {4, 1, 1001}) + time(draft, {4, 1, 1002})));
  CHECK(s.rounds[2].verify.value == Approx(time(target, {4, 4, 1000, true})));
  CHECK(time(target, {4, 4, 1000, true}) > time(target, {4, 4, 1000}));
}

TEST_CASE("a 72B target on an H100 gains from a 0.5B draft at batch 1 and less at a large batch", "[speculative]") {
  const Case c;
  const Speculation one = c.speculation(0.8, {.batch = 1, .context = 512});
  REQUIRE(one.best());
  CHECK(one.best()->speedup == one.best_speedup);
  CHECK(one.best_speedup > 2);
  CHECK(one.best_speedup < 5);  // 1 / (1 - p)
  // Memory bound: five tokens are checked for little more than one is decoded.
  CHECK(one.rounds[3].verify >= one.target_step);
  CHECK(one.rounds[3].verify < one.target_step * 1.05);
  for (const SpeculativeRound& round : one.rounds) CHECK(round.speedup <= one.best_speedup);

  const Speculation many = c.speculation(0.8, {.batch = 96, .context = 64});
  REQUIRE(many.fits);
  CHECK(many.best_speedup < one.best_speedup);
  CHECK(many.best_length < one.best_length);

  const Speculation never = c.speculation(0, {.batch = 1, .context = 512});
  CHECK(never.best_length == 0);
  CHECK(never.best_speedup == 1);
  CHECK(!never.best());

  const Speculation likely = c.speculation(0.95, {.batch = 1, .context = 512});
  CHECK(likely.best_speedup > one.best_speedup);
  CHECK(likely.best_length > one.best_length);
}

TEST_CASE("a model cannot be its own draft", "[speculative]") {
  // k + 1 tokens at most for k + 1 target steps.
  const Case c;
  const Setup setup = c.setup(c.target, "w4a16", 0.99, "qwen1.5-72b");
  CHECK(speculate(setup, {.batch = 1, .context = 512}).best_length == 0);
}

TEST_CASE("target and draft have to fit together, and should share a vocabulary", "[speculative]") {
  const Case c;
  const SpeculativeScenario scenario{.batch = 1, .context = 512};
  const Setup setup = c.setup(c.target, "w4a16", 0.8, "qwen1.5-0.5b");
  const Speculation small = speculate(setup, scenario);
  CHECK(small.fits);
  const Scenario whole{1, 512, 1 + kMaxDraftLength};
  const model::Decoder half = model::load_decoder("qwen1.5-0.5b");
  const Estimator target(c.setup(c.target, "w4a16"));
  const Estimator draft(c.setup(half, "w4a16"));
  const cost::Memory a = target.memory(whole);
  const cost::Memory b = draft.memory(whole);
  CHECK(small.memory >= a.weights + a.kv_cache + a.reserve + b.weights + b.kv_cache);
  CHECK(small.memory < a.total() + b.total());  // one reserve, one step at a time
  CHECK(small.capacity == target.capacity());
  // 144 GB of weights in 80 GB.
  CHECK(!speculate(c.setup(c.target, "bf16", 0.8, "qwen1.5-0.5b"), scenario).fits);
  // 152064 and 151936 entries.
  REQUIRE(setup.notes.size() == 1);
  CHECK(setup.notes.front().find("151936") != std::string::npos);
  const model::Decoder seven = model::load_decoder("qwen1.5-7b");
  CHECK(c.setup(seven, "bf16", 0.8, "qwen1.5-0.5b").notes.empty());
}

TEST_CASE("batches and contexts out of range are errors", "[speculative]") {
  const Case c;
  CHECK_THROWS_AS(c.speculation(0.8, {.batch = 0, .context = 512}), Error);
  CHECK_THROWS_AS(c.speculation(0.8, {.batch = 1, .context = 0}), Error);
  CHECK_THROWS_AS(c.speculation(0.8, {.batch = 1, .context = kMaxTokens + 1}), Error);
}

}  // namespace llmperf::speculative_test
