// Speculative decoding in an estimate: cycles of drafting and verifying, what they keep, and what they hold.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "catch.h"
#include "estimate/explain.h"
#include "estimate/plan_cases.h"
#include "estimate/speculative.h"
#include "graph/random_decoder.h"
#include "model/decoder.h"

namespace llmperf::drafting_test {

using namespace llmperf::estimate;

namespace {

Draft draft_of(Draft::Kind kind, const model::Decoder& decoder, std::int64_t tokens, Acceptance acceptance) {
  auto file = std::make_shared<model::ModelFile>();
  file->decoder = decoder;
  return {.kind = kind, .file = file, .tokens = tokens, .acceptance = std::move(acceptance)};
}
Draft model_draft(const std::string& name, std::int64_t tokens, Acceptance acceptance) {
  return draft_of(Draft::Kind::model, test::decoder(name), tokens, std::move(acceptance));
}
Draft mtp(std::int64_t tokens, Acceptance acceptance) {
  return draft_of(Draft::Kind::next_token, model::next_token_draft(test::decoder("deepseek-v3")), tokens,
                  std::move(acceptance));
}
Draft eagle(const std::string& target, std::int64_t tokens, Acceptance acceptance) {
  return draft_of(Draft::Kind::eagle, model::eagle_draft(test::decoder(target)), tokens, std::move(acceptance));
}

Estimator drafted(const std::string& target, const std::optional<Draft>& draft, const graph::Plan& plan = {},
                  const char* device = "h200-sxm") {
  return test::estimator(target, device, plan, [&](Choices& c) { c.draft = draft; });
}

const OpEstimate& op(const Phase& phase, graph::Tag tag) {
  const auto found = std::ranges::find_if(phase.ops, [&](const OpEstimate& e) { return e.op.tag == tag; });
  REQUIRE(found != phase.ops.end());
  return *found;
}

}  // namespace

TEST_CASE("a cycle keeps the accepted run and one token more") {
  CHECK(expected_tokens(0.8, 3) == Approx(2.952));  // 1 + 0.8 + 0.64 + 0.512
  CHECK(expected_tokens(0.8, 3) == Approx((1 - std::pow(0.8, 4)) / 0.2));
  CHECK(expected_tokens(1, 5) == 6);
  CHECK(expected_tokens(0, 5) == 1);
  // 1 + 0.85 + 0.85 0.7 + 0.85 0.7 0.6, the last rate for tokens beyond the table.
  const Acceptance table({0.85, 0.7, 0.6});
  CHECK(expected_tokens(table, 1) == Approx(1.85));
  CHECK(expected_tokens(table, 3) == Approx(2.802));
  CHECK(expected_tokens(table, 4) == Approx(2.802 + 0.357 * 0.6));
}

TEST_CASE("acceptance is a chance, a list of them, or a file with one on each line") {
  CHECK(parse_acceptance("0.8").rates == std::vector{0.8});
  CHECK(parse_acceptance("0.85,0.7,0.6").rates == std::vector{0.85, 0.7, 0.6});
  CHECK(parse_acceptance("0.85/0.7/0.6").rates == std::vector{0.85, 0.7, 0.6});
  const auto path = std::filesystem::temp_directory_path() / "llmperf_acceptance_test.txt";
  std::ofstream(path) << "0.9\n 0.75\n0.5\n";
  CHECK(parse_acceptance(path.string()).rates == std::vector{0.9, 0.75, 0.5});
  std::filesystem::remove(path);
  for (const char* bad : {"1.1", "-0.1", "0.8,", "0.8,2", "nan", "", "no-such-file"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_acceptance(bad), Error);
  }
}

TEST_CASE("a token takes its share of a cycle: all draft steps, then a step that verifies them and one more") {
  const Scenario s{4, 1000, 2};  // one cycle, at 1000 cached tokens
  const Draft draft = model_draft("llama-3.2-1b", 3, 0.8);
  Estimator e = drafted("llama-3-70b", draft, {.tensor = 4});
  const Estimate result = e.run(s);
  REQUIRE(result.phases.size() == 3);
  const Phase& verify = result.phases[1];
  const Phase& drafts = result.phases[2];
  CHECK(verify.name == "decode");
  CHECK(verify.first.new_tokens == 4);
  CHECK(drafts.name == "draft");
  CHECK(drafts.steps == verify.steps);
  CHECK(result.tpot->value == Approx((drafts.time.value + verify.time.value) / 2.952).epsilon(1e-12));
  CHECK(result.tpot_first->value == Approx(result.tpot->value));
  CHECK(result.total.value == Approx(result.ttft->value + drafts.time.value + verify.time.value));
  // The draft alone, one token at a time, at the middle of the three contexts.
  Estimator alone = drafted("llama-3.2-1b", std::nullopt, {.tensor = 4});
  Phase one;
  alone.decode_step(s, 1001, one);
  CHECK(drafts.time.value == Approx(3 * one.time.value).epsilon(1e-12));
  CHECK(drafts.work.weights.value == Approx(3 * one.work.weights.value));
  // The step that verifies is the one of --verify.
  Estimator plain = test::estimator("llama-3-70b", "h200-sxm", {.tensor = 4}, [](Choices& c) {
    c.serving.verify = 4;
    c.serving.accepted = 2.952;
  });
  CHECK(plain.run(s).phases[1].time.value == verify.time.value);
}

TEST_CASE("nothing accepted is slower than no draft, all accepted is a token for each of N + 1, more is never slower") {
  const Scenario s{1, 1000, 100};
  const Estimate without = drafted("llama-3-8b", std::nullopt).run(s);
  double before = std::numeric_limits<double>::infinity();
  for (const double rate : {0.0, 0.3, 0.6, 0.9, 1.0}) {
    const Estimate e = drafted("llama-3-8b", eagle("llama-3-8b", 4, rate)).run(s);
    INFO(rate);
    CHECK(e.tpot->value < before);
    before = e.tpot->value;
    const double cycle = (e.phases[1].time + e.phases[2].time).value;
    if (rate == 0) CHECK(e.tpot->value > without.tpot->value);
    if (rate == 0) CHECK(e.tpot->value == Approx(cycle));
    if (rate == 1) CHECK(e.tpot->value == Approx(cycle / 5));
    if (rate == 1) CHECK(e.phases[1].steps == 20);  // 99 tokens, 5 at a time
  }
  CHECK(before < without.tpot->value);
}

TEST_CASE("an EAGLE head joins the target's states once, and reads the rest once per token") {
  const Estimate e = drafted("llama-3-8b", eagle("llama-3-8b", 4, 0.7)).run({2, 1000, 2});
  const Phase& drafts = *e.phase("draft");
  CHECK(op(drafts, graph::Tag::join_states).op.count == 1);
  CHECK(op(drafts, graph::Tag::qkv_proj).op.count == 4);
  const auto& join = std::get<graph::Gemm>(op(drafts, graph::Tag::join_states).op.body);
  CHECK(join.k == 3 * 4096);
  CHECK(std::get<graph::Gemm>(op(drafts, graph::Tag::qkv_proj).op.body).k == 2 * 4096);
  CHECK(std::get<graph::Gemm>(op(drafts, graph::Tag::lm_head).op.body).n == 32000);
  // All it holds but vectors, 2 bytes each: the join once, the rest four times.
  const double matrices = 2 * (424'689'664.0 - 4 * 4096 - 3.0 * 4096 * 4096);
  CHECK(drafts.work.weights.value == Approx(2 * 3.0 * 4096 * 4096 + 4 * matrices).epsilon(1e-4));
}

TEST_CASE("a layer for further tokens runs in its target's step, which begins once") {
  const Scenario s{8, 2000, 2};
  const Estimate e = drafted("deepseek-v3", mtp(3, 0.8), {.tensor = 8, .expert = 8}).run(s);
  const Phase& drafts = *e.phase("draft");
  CHECK(drafts.launches.steps == 0);
  CHECK(drafts.launches.sequences == 0);
  CHECK(drafts.launches.layers == 3);
  CHECK(op(drafts, graph::Tag::join_inputs).op.count == 3);
  CHECK(std::get<graph::Gemm>(op(drafts, graph::Tag::join_inputs).op.body).k == 2 * 7168);
  // A model of its own begins each.
  const Estimate other = drafted("llama-3-70b", model_draft("llama-3.2-1b", 3, 0.8), {.tensor = 4}).run(s);
  CHECK(other.phase("draft")->launches.steps == 3);
  CHECK(other.phase("draft")->launches.sequences == 24);
}

TEST_CASE("a draft's weights and cache are held beside its target's, and leave fewer sequences room") {
  const Scenario s{8, 2000, 101};
  const Estimate with = drafted("llama-3-8b", eagle("llama-3-8b", 3, 0.7)).run(s);
  const Estimate without = drafted("llama-3-8b", std::nullopt).run(s);
  CHECK(with.memory.draft.value == Approx(2 * 424'689'664.0));
  // Keys and values of 8 heads of 128 in 2 bytes: 4096 bytes for each of 2000 + 101 tokens and three guesses.
  CHECK(with.memory.draft_cache.value == 8 * 2104 * 4096.0);
  CHECK(with.memory.weights == without.memory.weights);
  CHECK(with.memory.kv_cache.value == Approx(without.memory.kv_cache.value * 2104 / 2101));
  CHECK(with.memory.total().value == Approx((with.memory.weights + with.memory.kv_cache + with.memory.draft +
                                             with.memory.draft_cache + with.memory.activation + with.memory.reserve)
                                                .value));
  CHECK(with.largest_batch < without.largest_batch);
  CHECK(without.memory.draft.value == 0);
  // A layer for further tokens has neither embedding nor head of its own, and is divided as the model is.
  const Estimate v3 = drafted("deepseek-v3", mtp(1, 0.85), {.tensor = 8, .expert = 8}).run({8, 100, 10});
  CHECK(v3.memory.draft.value < 11'610'068'224 * 1.05 / 8 + 2 * 3 * 7168 * 7168.0);
  CHECK(v3.memory.draft.value > 11'610'068'224 / 8.0);
}

TEST_CASE("with a pipeline the devices of the last stage draft") {
  Estimator e = drafted("llama-3-70b", eagle("llama-3-70b", 2, 0.7), {.tensor = 2, .pipeline = 2});
  const Scenario s{8, 1000, 10};
  CHECK(e.stage_memory(s, 0).draft.value == 0);
  CHECK(e.stage_memory(s, 1).draft.value > 1'403'027'456.0);  // half of it in 2 bytes, norms and fc whole
  CHECK(e.draft()->setup().execution.plan == graph::Plan{.tensor = 2});
  CHECK(e.fullest_stage(s) == 1);
}

TEST_CASE("a draft whose heads the plan does not divide runs whole on every device") {
  const model::Decoder& small = test::decoder("qwen2.5-0.5b");  // 14 heads
  CHECK(draft_plan(small, {.tensor = 4, .data = 2}) == graph::Plan{.data = 2});
  CHECK(draft_plan(small, {.tensor = 2, .expert = 2}) == graph::Plan{.tensor = 2});
}

TEST_CASE("the best length is the one that takes least, and what it is compared with is each run by itself") {
  const Scenario s{1, 1000, 100};
  Draft draft = eagle("llama-3-8b", 1, 0.7);
  draft.best = true;
  Estimator e = drafted("llama-3-8b", draft);
  const Estimate best = e.run(s);
  const std::int64_t length = e.setup().draft->tokens;
  const std::vector<SpeculativeRound> rounds = rounds_of(e.setup(), s, kMostCompared);
  REQUIRE(rounds.size() == 8);
  const Estimate plain = drafted("llama-3-8b", std::nullopt).run(s);
  for (const SpeculativeRound& round : rounds) {
    draft.best = false;
    draft.tokens = round.length;
    const Estimate one = drafted("llama-3-8b", draft).run(s);
    CHECK(round.time_per_token().value == Approx(one.tpot->value).epsilon(1e-12));
    CHECK(round.speedup == Approx(plain.tpot->value / one.tpot->value).epsilon(1e-12));
    CHECK(best.tpot->value <= one.tpot->value * (1 + 1e-12));
    if (round.length == length) CHECK(best.tpot->value == Approx(one.tpot->value).epsilon(1e-12));
  }
  // With more requests a step is bound by what it computes, and a long draft does not pay.
  e.run({512, 1000, 100});
  CHECK(e.setup().draft->tokens <= length);
}

TEST_CASE("drafts that cannot be are refused") {
  const auto refused = [](const std::string& target, const Draft& draft, const std::string& why) {
    try {
      drafted(target, draft);
      FAIL("no error");
    } catch (const Error& error) {
      INFO(error.what());
      CHECK(std::string(error.what()).find(why) != std::string::npos);
    }
  };
  refused("llama-3-70b", model_draft("qwen2.5-0.5b", 3, 0.8), "vocabulary of 151936");
  Draft draft = eagle("llama-3-8b", 3, 0.8);
  try {
    test::estimator("llama-3-8b", "rtx4090", {}, [&](Choices& c) {
      c.draft = draft;
      c.weights = "q4_k_m";
    });
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("models of their own draft") != std::string::npos);
  }
}

TEST_CASE("every number of an estimate with a draft is explained") {
  const auto explained = [](Estimator e, const Scenario& s) {
    const Estimate result = e.run(s);
    REQUIRE(result.fits);
    for (const std::string& path : explainable_paths(e, result)) {
      try {
        explain(e, result, path);
      } catch (const std::exception& error) {
        FAIL_CHECK(path << ": " << error.what());
      }
    }
    const auto paths = explainable_paths(e, result);
    for (const char* path : {"memory.draft_weight_bytes", "memory.draft_cache_bytes", "phases.draft.time_s"}) {
      CHECK(std::ranges::find(paths, path) != paths.end());
    }
  };
  explained(drafted("llama-3-8b", eagle("llama-3-8b", 3, 0.7)), {3, 500, 50});
  explained(drafted("deepseek-v3", mtp(2, Acceptance({0.9, 0.6})), {.tensor = 8, .expert = 8}), {8, 700, 30});
  explained(drafted("llama-3-70b", model_draft("llama-3.2-1b", 4, 0), {.tensor = 4, .pipeline = 2}), {8, 700, 30});
}

TEST_CASE("whatever model, plan and options: cycles add up, memory too, and every number is explained") {
  test::Random random(91);
  for (int i = 0; i < 25; ++i) {
    const model::Decoder m = test::random_decoder(random);
    if (std::ranges::none_of(m.kinds, &model::Layer::attends)) continue;
    Choices choices;
    choices.activations = "bf16";
    choices.plan = test::random_plan(random, m);
    choices.runtime = test::random_options(random);
    choices.serving.overlap_batches = random.in(1, 2);
    choices.draft = draft_of(Draft::Kind::eagle, model::eagle_draft(m), random.in(1, 9),
                             static_cast<double>(random.in(0, 10)) / 10);
    const std::int64_t batch = choices.plan.data * choices.serving.overlap_batches * random.in(1, 3);
    const Scenario s{batch, test::smallest_prompt(choices.plan) * random.in(1, 20), random.in(2, 200)};
    INFO("case " << i << ", " << graph::to_text(choices.plan));
    Estimator e(make_setup(m, test::device("h100-sxm"), choices));
    const Estimate result = e.run(s);
    REQUIRE(result.fits);
    const Phase& verify = *result.phase("decode");
    const Phase& drafts = *result.phase("draft");
    const double cycle = (verify.time + drafts.time).value;
    CHECK(result.tpot->value == Approx(cycle / e.setup().serving.accepted).epsilon(1e-12));
    CHECK(result.total.value == Approx(result.ttft->value + d(verify.steps) * cycle).epsilon(1e-12));
    CHECK(drafts.time.value >= drafts.roof.value * (1 - 1e-9));
    const std::vector<std::string> paths = explainable_paths(e, result);
    for (const std::string& path : paths) {
      try {
        explain(e, result, path);
      } catch (const std::exception& error) {
        FAIL_CHECK(path << ": " << error.what());
      }
    }
  }
}

}  // namespace llmperf::drafting_test
