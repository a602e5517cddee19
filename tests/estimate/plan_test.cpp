// Estimates with a plan: every number explained, sums, schedules.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/expression.h"
#include "catch.h"
#include "estimate/explain.h"
#include "estimate/plan_cases.h"
#include "estimate/schedule.h"
#include "graph/random_decoder.h"

namespace llmperf::plans_test {

using estimate::Choices;
using estimate::Estimate;
using estimate::Estimator;
using estimate::Explanation;
using estimate::Scenario;
using graph::Collective;
using graph::Graph;
using graph::Op;
using graph::Plan;
using graph::SequenceGroup;
using test::device;
using test::estimator;
using test::gpt_block;

namespace {

// Of a random model: a legal plan, a scenario that it divides, on hardware of any size.
struct Case {
  model::Decoder model;
  hardware::Device hardware;
  estimate::Setup setup;
  Scenario scenario;
};
std::unique_ptr<Case> random_case(test::Random& random) {
  auto c = std::make_unique<Case>();
  c->model = test::random_decoder(random);
  c->hardware = device(random.chance() ? "h100-sxm" : "atlas-800i-a2");
  Choices choices;
  choices.plan = test::random_plan(random, c->model);
  choices.runtime = test::random_options(random);
  choices.activations = "bf16";
  static const char* const kSchemes[] = {"bf16", "fp8", "w8a8", "w4a16-g32"};
  choices.weights = kSchemes[random.in(0, 3)];
  const Plan& p = choices.plan;
  std::int64_t batch = p.data * random.in(1, 3);
  if (random.chance()) batch *= p.pipeline;
  if (random.in(0, 2) == 0) {
    choices.pipeline_batches = random.in(1, 3);
    batch = p.data * choices.pipeline_batches * random.in(1, 2);
  }
  c->scenario = {batch, test::smallest_prompt(p) * random.in(1, 20), random.in(1, 200)};
  c->setup = estimate::make_setup(c->model, c->hardware, choices);
  return c;
}

bool agrees(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

void check_rules(const Explanation& x) {
  INFO(x.path << " = " << x.formula);
  const double value = test::evaluate(x.substituted);
  if (!agrees(value, x.value)) CHECK(value == x.value);
  for (const Explanation& part : x.parts) check_rules(part);
}

}  // namespace

TEST_CASE("every number of an estimate with a plan is reproduced by its formula") {
  test::Random random(21);
  for (int i = 0; i < 25; ++i) {
    const auto c = random_case(random);
    INFO("case " << i << ", " << graph::to_text(c->setup.execution.plan));
    Estimator e(c->setup);
    const Estimate result = e.run(c->scenario);
    REQUIRE(result.fits);
    for (const std::string& path : explainable_paths(e, result)) {
      try {
        check_rules(explain(e, result, path));
      } catch (const std::exception& error) {
        FAIL_CHECK(path << ": " << error.what());
      }
    }
  }
}

TEST_CASE("the mean decode step is the mean of the steps, whatever the plan") {
  test::Random random(22);
  for (int i = 0; i < 60; ++i) {
    const auto c = random_case(random);
    c->scenario.generate = std::min<std::int64_t>(c->scenario.generate, 40) + 1;
    INFO("case " << i << ", " << graph::to_text(c->setup.execution.plan));
    Estimator e(c->setup);
    const Estimate result = e.run(c->scenario);
    const estimate::Phase& decode = result.phases.at(1);
    cost::Work sum;
    double ops_seconds = 0;
    for (std::int64_t step = 0; step < decode.steps; ++step) {
      const SequenceGroup group = e.decode_at(c->scenario, c->scenario.prompt + step);
      Graph graph;
      graph::build_step(c->setup.execution, {&group, 1}, graph::Part::all, graph);
      for (const Op& op : graph) {
        const cost::Work work = e.work(op);
        sum += work * d(op.count * decode.micro_batches);
        ops_seconds += e.time(op, work).total.value * d(op.count * decode.micro_batches);
      }
    }
    const double steps = d(decode.steps);
    CHECK(decode.work.matrix.value == Approx(sum.matrix.value / steps).epsilon(1e-7));
    CHECK(decode.work.bytes().value == Approx(sum.bytes().value / steps).epsilon(1e-7));
    CHECK(decode.work.network.value == Approx(sum.network.value / steps).epsilon(1e-7));
    CHECK(decode.ops_time.value == Approx(ops_seconds / steps).epsilon(1e-7));
  }
}

TEST_CASE("the times of ops are those of the phase, and network bytes those of its collectives") {
  test::Random random(23);
  for (int i = 0; i < 100; ++i) {
    const auto c = random_case(random);
    INFO("case " << i << ", " << graph::to_text(c->setup.execution.plan));
    Estimator e(c->setup);
    const Estimate result = e.run(c->scenario);
    for (const estimate::Phase& phase : result.phases) {
      double seconds = 0;
      double network = 0;
      for (const estimate::OpEstimate& op : phase.ops) {
        seconds += op.step_time().value;
        if (const auto* collective = std::get_if<Collective>(&op.op.body)) {
          network += cost::sent_bytes(*collective).value * d(op.op.count);
        }
      }
      CHECK(phase.ops_time.value == Approx(seconds).epsilon(1e-9));
      CHECK(phase.ops_time.value == Approx((phase.time + phase.overlapped + phase.pipelined).value).epsilon(1e-9));
      CHECK(phase.work.network.value == Approx(network).epsilon(1e-9));
      CHECK(phase.time.value >= phase.roof.value * (1 - 1e-9));
      if (e.setup().execution.plan.devices() == 1) CHECK(phase.work.network.value == 0);
    }
  }
}

TEST_CASE("replicas serve their share of the batch in the time one takes for it") {
  for (const char* model : {"llama-2-7b", "mixtral-8x7b"}) {
    Estimator one = estimator(model, "h200-sxm", {.tensor = 4});
    Estimator three = estimator(model, "h200-sxm", {.tensor = 4, .data = 3});
    const Estimate a = one.run({5, 300, 50});
    const Estimate b = three.run({15, 300, 50});
    CHECK(b.total.value == a.total.value);
    CHECK(b.tokens_per_second == Approx(3 * a.tokens_per_second));
    CHECK(b.largest_batch == 3 * a.largest_batch);
    CHECK(b.longest_context == a.longest_context);
  }
}

TEST_CASE("equal stages prefill in micro-batches + stages - 1 slots, and decode one micro-batch after the other") {
  // Four layers, no head to speak of: one vocabulary entry.
  model::Decoder m = gpt_block(4096, 32, 1, 4);
  m.vocab = 1;
  Choices choices;
  choices.activations = "bf16";
  hardware::Device hardware = device("h100-sxm");
  const auto prefill = [&](std::int64_t stages, std::int64_t batches, std::int64_t batch) {
    choices.plan.pipeline = stages;
    choices.pipeline_batches = batches;
    return Estimator(estimate::make_setup(m, hardware, choices)).run({batch, 1024, 2});
  };
  const double layer = [&] {
    double sum = 0;
    const Estimate whole = prefill(1, 0, 1);
    for (const auto& op : whole.phases[0].ops) sum += op.op.layer_kind >= 0 ? op.step_time().value / 4 : 0;
    return sum;
  }();
  for (const std::int64_t batches : {1, 2, 8}) {
    const Estimate e = prefill(4, batches, batches);
    CHECK(e.phases[0].micro_batches == batches);
    // What the stages send and the ends of the model add is less than a tenth here.
    const double slots = d(batches + 3);
    CHECK(e.ttft->value > slots * layer);
    CHECK(e.ttft->value < slots * layer * 1.1);
  }
}

}  // namespace llmperf::plans_test
