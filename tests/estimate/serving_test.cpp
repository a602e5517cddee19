// Prefill and decode apart, decode steps that verify several tokens, and two micro-batches that hide each other's
// exchanges.
#include <algorithm>
#include <string>
#include <vector>

#include "catch.h"
#include "estimate/explain.h"
#include "estimate/plan_cases.h"
#include "estimate/schedule.h"
#include "graph/random_decoder.h"

namespace llmperf::serving_test {

using estimate::Choices;
using estimate::Estimate;
using estimate::Estimator;
using estimate::OpEstimate;
using estimate::Phase;
using estimate::Scenario;
using estimate::Served;
using test::estimator;

namespace {

Estimator llama(const graph::Plan& plan, const estimate::Serving& serving) {
  return estimator("llama-3-8b", "h100-sxm", plan, [&](Choices& c) { c.serving = serving; });
}

OpEstimate op(bool exchange, int kind, std::int64_t count) {
  OpEstimate e;
  e.op.layer_kind = kind;
  e.op.count = count;
  if (exchange) {
    e.op.place = graph::Place::network;
    e.op.body = graph::Collective{};
    e.layers = static_cast<std::int32_t>(kind < 0 ? 1 : count / 2);
    e.passes = 2;
  }
  return e;
}

// A and B of ops and exchanges in turns, as a clock would see them: `steps` are c_1, n_1, c_2, … c_k+1 of one.
double in_turns(const std::vector<double>& steps) {
  double clock = steps.front();
  for (std::size_t i = 1; i < steps.size(); ++i) clock += std::max(steps[i], steps[i - 1]);
  return clock + steps.back();
}

}  // namespace

TEST_CASE("decode alone takes the steps of a whole request, and memory without its prompts") {
  const Scenario s{64, 2048, 101};
  Estimator whole = llama({}, {});
  Estimator decode = llama({}, {.phases = Served::decode});
  Estimator prefill = llama({}, {.phases = Served::prefill});
  const Estimate all = whole.run(s);
  const Estimate second = decode.run(s);
  const Estimate first = prefill.run(s);
  REQUIRE(all.phases.size() == 2);
  REQUIRE(second.phases.size() == 1);
  REQUIRE(first.phases.size() == 1);

  CHECK_FALSE(second.ttft);
  CHECK(*second.tpot == *all.tpot);
  CHECK(*second.tpot_first == *all.tpot_first);
  CHECK(*second.tpot_last == *all.tpot_last);
  CHECK(second.total == all.phases[1].total());
  CHECK(second.tokens_per_second == Approx(64 * 100 / second.total.value));
  CHECK(second.decode_tokens_per_second == all.decode_tokens_per_second);
  CHECK(second.prefill_tokens_per_second == 0);
  CHECK(second.memory.weights == all.memory.weights);
  CHECK(second.memory.kv_cache == all.memory.kv_cache);
  CHECK(second.memory.activation == cost::activation_peak(decode.setup().execution, {64, 1, 2148}));
  CHECK(second.memory.activation < all.memory.activation);
  CHECK(second.largest_batch > all.largest_batch);

  CHECK(*first.ttft == *all.ttft);
  CHECK_FALSE(first.tpot);
  CHECK(first.total == *all.ttft);
  CHECK(first.tokens_per_second == 0);
  CHECK(first.memory.activation == all.memory.activation);
  CHECK(first.memory.kv_cache.value == Approx(all.memory.kv_cache.value * 2048 / 2149));
  CHECK(prefill.run({64, first.longest_context, 1}).fits);
}

TEST_CASE("a step that verifies one token is a decode step") {
  const Scenario s{8, 1000, 50};
  CHECK(*llama({}, {.verify = 1}).run(s).tpot == *llama({}, {}).run(s).tpot);
}

TEST_CASE("a step that verifies has a row, a query and logits for every token, and reads cache and weights once") {
  Estimator estimator = llama({}, {.verify = 4});
  Estimator plain = llama({}, {});
  Phase four;
  Phase one;
  estimator.decode_step({8, 1000, 2}, 1000, four);
  plain.decode_step({8, 1000, 2}, 1000, one);
  REQUIRE(four.ops.size() == one.ops.size());
  for (std::size_t i = 0; i < one.ops.size(); ++i) {
    INFO(one.ops[i].op.name);
    CHECK(four.ops[i].op.name == one.ops[i].op.name);
    if (const auto* product = std::get_if<graph::Gemm>(&one.ops[i].op.body)) {
      CHECK(std::get<graph::Gemm>(four.ops[i].op.body).m == 4 * product->m);
      CHECK(four.ops[i].work.weights.value == one.ops[i].work.weights.value);
      CHECK(four.ops[i].work.matrix.value == 4 * one.ops[i].work.matrix.value);
    }
    if (const auto* attention = std::get_if<graph::Attention>(&four.ops[i].op.body)) {
      CHECK(attention->q_tokens == 4);
      CHECK(attention->verifies);
      // Keys 1001 to 1004 of the four queries, read once by all: 1004.
      CHECK(four.ops[i].work.matrix.value == one.ops[i].work.matrix.value / 1001 * (1001 + 1002 + 1003 + 1004));
      CHECK(four.ops[i].work.kv_read.value == Approx(one.ops[i].work.kv_read.value * 1004 / 1001));
    }
  }
  CHECK(four.steady == one.steady);
  CHECK_FALSE(four.launches.prompts);
}

TEST_CASE("the time per token is that of a step over the tokens that it keeps") {
  const Scenario s{8, 1000, 102};
  const Estimate none = llama({}, {.verify = 4}).run(s);
  const Estimate some = llama({}, {.verify = 4, .accepted = 2.5}).run(s);
  REQUIRE(some.phases.size() == 2);
  CHECK(none.phases[1].steps == 101);
  CHECK(none.tpot->value == none.phases[1].time.value);
  CHECK(some.phases[1].steps == 41);  // 101 / 2.5 = 40.4
  CHECK(some.phases[1].last.context == 1100);
  CHECK(some.tpot->value == Approx(some.phases[1].time.value / 2.5));
  CHECK(some.tpot_first->value == Approx(none.tpot_first->value / 2.5));
  CHECK(some.total.value == Approx(some.ttft->value + 41 * some.phases[1].time.value));
  CHECK(none.tpot->value > llama({}, {}).run(s).tpot->value);
  // Three guesses more than are kept in the end.
  CHECK(none.memory.kv_cache.value == Approx(llama({}, {}).run(s).memory.kv_cache.value * 1105 / 1102));
}

TEST_CASE("more tokens to verify never take less time, fewer kept never less per token") {
  for (const char* model : {"llama-3-8b", "gemma-2-9b", "deepseek-v2-lite"}) {
    double before = 0;
    for (const std::int64_t verify : {1, 2, 3, 4, 8, 16}) {
      const Estimate e =
          estimator(model, "h100-sxm", {}, [&](Choices& c) { c.serving.verify = verify; }).run({16, 700, 9});
      INFO(model << " " << verify);
      CHECK(e.tpot->value >= before * (1 - 1e-12));
      before = e.tpot->value;
    }
  }
}

TEST_CASE("an exchange hides the shorter of it and the ops before it, and of it and those after it, by half") {
  // Outside of the layers, so that nothing comes round again: c 3, n 5, c 4, n 1, c 2 of each micro-batch.
  const std::vector<double> each = {3, 5, 4, 1, 2};
  std::vector<OpEstimate> ops;
  std::vector<double> seconds;  // of both
  double all = 0;
  for (std::size_t i = 0; i < each.size(); ++i) {
    ops.push_back(op(i % 2 == 1, -1, 2));
    seconds.push_back(2 * each[i]);
    all += 2 * each[i];
  }
  CHECK(estimate::beside_seconds(ops, seconds, 1) == Approx(3 + 4));
  CHECK(estimate::beside_seconds(ops, seconds, 3) == Approx(1 + 1));
  const double time = estimate::schedule_step(ops, seconds, estimate::kWhole, 1, estimate::Steady::no).time.value;
  CHECK(time == Approx(all - 9));
  CHECK(time == Approx(in_turns(each)));
}

TEST_CASE("exchanges that follow one another are one, and divide what is hidden") {
  const std::vector<OpEstimate> ops = {op(false, -1, 2), op(true, -1, 2), op(true, -1, 2), op(false, -1, 2)};
  const std::vector<double> seconds = {6, 2, 6, 10};
  // min(8, 6) / 2 + min(8, 10) / 2 = 7 of the 8.
  CHECK(estimate::beside_seconds(ops, seconds, 1) == Approx(7 * 0.25));
  CHECK(estimate::beside_seconds(ops, seconds, 2) == Approx(7 * 0.75));
}

TEST_CASE("between layers the ops after the last exchange and before the first of the next count together") {
  // Three layers of c 1, n 4, c 2, n 3, c 2: layer by layer and then in a row.
  constexpr std::int64_t kLayers = 3;
  const std::vector<double> layer = {1, 4, 2, 3, 2};
  std::vector<OpEstimate> ops;
  std::vector<double> seconds;
  std::vector<double> row;
  double all = 0;
  for (std::size_t i = 0; i < layer.size(); ++i) {
    ops.push_back(op(i % 2 == 1, 0, 2 * kLayers));
    seconds.push_back(layer[i] * 2 * kLayers);
    all += seconds.back();
  }
  for (std::int64_t i = 0; i < kLayers; ++i) {
    for (std::size_t k = 0; k < layer.size(); ++k) {
      if (i > 0 && k == 0) {
        row.back() += layer[k];
      } else {
        row.push_back(layer[k]);
      }
    }
  }
  const double time = estimate::schedule_step(ops, seconds, estimate::kWhole, 1, estimate::Steady::no).time.value;
  CHECK(time == Approx(in_turns(row)));
  CHECK(time < all);
}

TEST_CASE("two micro-batches launch and read weights twice, and hide exchanges as the formula says") {
  const graph::Plan plan{.tensor = 8};
  const Scenario s{64, 1024, 2};
  Estimator one = estimator("llama-3-70b", "h100-sxm", plan);
  Estimator two = estimator("llama-3-70b", "h100-sxm", plan, [](Choices& c) { c.serving.overlap_batches = 2; });
  const Estimate a = one.run(s);
  const Estimate b = two.run(s);
  for (std::size_t p = 0; p < 2; ++p) {
    const Phase& before = a.phases[p];
    const Phase& after = b.phases[p];
    CHECK(after.first.count == 32);
    CHECK(after.work.matrix.value == Approx(before.work.matrix.value).epsilon(1e-3));
    CHECK(after.work.network.value == Approx(before.work.network.value).epsilon(1e-9));
    if (p == 1) CHECK(after.work.weights.value == Approx(2 * before.work.weights.value).epsilon(1e-2));
    double ops = 0;
    double exchanges = 0;
    for (const OpEstimate& e : after.ops) (e.passes > 0 ? exchanges : ops) += e.step_time().value;
    CHECK(after.time.value >= std::max(ops, exchanges));
    CHECK(after.overlapped.value > 0);
    CHECK(after.overlapped.value <= exchanges);
    CHECK((after.time + after.overlapped).value == Approx(after.ops_time.value));
  }
  CHECK(*b.ttft < *a.ttft);  // products of prompts are as fast in halves
  CHECK(b.memory.activation.value == Approx(a.memory.activation.value));
  CHECK(b.largest_batch % 2 == 0);
}

TEST_CASE("every number is explained, whatever is served and how") {
  test::Random random(77);
  for (int i = 0; i < 25; ++i) {
    const model::Decoder m = test::random_decoder(random);
    const hardware::Device device = test::device(random.chance() ? "h100-sxm" : "atlas-800i-a2");
    Choices choices;
    choices.activations = "bf16";
    choices.plan = test::random_plan(random, m);
    choices.runtime = test::random_options(random);
    choices.serving.phases = static_cast<Served>(random.in(0, 2));
    choices.serving.verify = random.in(1, 5);
    choices.serving.accepted = 1 + static_cast<double>(random.in(0, 10)) / 10 * d(choices.serving.verify - 1);
    choices.serving.overlap_batches = random.in(1, 2);
    const graph::Plan& p = choices.plan;
    const std::int64_t batch = p.data * choices.serving.overlap_batches * random.in(1, 3);
    const Scenario s{batch, test::smallest_prompt(p) * random.in(1, 20), random.in(2, 200)};
    INFO("case " << i << ", " << graph::to_text(p));
    Estimator e(estimate::make_setup(m, device, choices));
    const Estimate result = e.run(s);
    REQUIRE(result.fits);
    for (const Phase& phase : result.phases) CHECK(phase.time.value >= phase.roof.value * (1 - 1e-9));
    for (const std::string& path : explainable_paths(e, result)) {
      try {
        explain(e, result, path);  // throws where a formula gives another number
      } catch (const std::exception& error) {
        FAIL_CHECK(path << ": " << error.what());
      }
    }
  }
}

}  // namespace llmperf::serving_test
