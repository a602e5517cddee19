// Stages of a pipeline that hold different numbers or kinds of layers.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "catch.h"
#include "estimate/plan_cases.h"
#include "estimate/plan_search.h"
#include "estimate/schedule.h"
#include "estimate/training.h"
#include "graph/random_decoder.h"

namespace llmperf::uneven_stages_test {

using estimate::Estimate;
using estimate::Estimator;
using estimate::Stage;
using estimate::StageShare;
using estimate::TrainingEstimate;
using estimate::TrainingEstimator;
using graph::Plan;
using test::decoder;
using test::device;
using test::estimator;

namespace {

std::vector<std::int64_t> stage_layers(const graph::StageSplit& split) {
  std::vector<std::int64_t> counts;
  for (std::int64_t stage = 0; stage < split.stages; ++stage) counts.push_back(split.layers(stage));
  return counts;
}

TrainingEstimate trained(const char* model, const estimate::TrainingScenario& s, const Plan& plan,
                         const graph::TrainingOptions& o = {}) {
  estimate::Choices choices;
  choices.weights = "bf16";
  TrainingEstimator trainer(estimate::make_setup(decoder(model), device("h100-sxm"), choices));
  REQUIRE(graph::legal(decoder(model), plan));
  REQUIRE(estimate::legal(decoder(model), s, plan, o));
  TrainingEstimate e;
  trainer.run(s, plan, o, e);
  return e;
}

}  // namespace

TEST_CASE("whatever the stages, together they execute every op once, and hold every layer once") {
  test::Random random(41);
  int uneven = 0;
  for (int i = 0; i < 150; ++i) {
    const model::Decoder m = test::random_decoder(random);
    estimate::Choices choices;
    choices.plan = test::random_plan(random, m);
    if (choices.plan.pipeline == 1) continue;
    Estimator e(estimate::make_setup(m, device("h100-sxm"), choices));
    const std::vector<Stage>& stages = e.stages();
    uneven += m.num_layers() % choices.plan.pipeline != 0;
    INFO("model " << i << ", " << graph::to_text(choices.plan) << ", " << graph::to_text(e.setup().execution.split));
    for (std::size_t kind = 0; kind < m.kinds.size(); ++kind) {
      std::int64_t layers = 0;
      for (const Stage& stage : stages) layers += stage.layers[kind];
      CHECK(layers == m.count_of_kind(kind));
    }
    estimate::Phase prefill;
    e.prefill({choices.plan.data, test::smallest_prompt(choices.plan) * 2, 1}, prefill);
    std::vector<double> shares(prefill.ops.size(), 0.0);
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      StageShare share(stages, stage);
      for (std::size_t op = 0; op < shares.size(); ++op) shares[op] += share.of(prefill.ops[op].op);
    }
    for (const double share : shares) CHECK(share == Approx(1));
  }
  CHECK(uneven > 10);
}

TEST_CASE(
    "126 layers of Llama 3.1 405B on four stages: the slowest has 32, and time and memory are those of the stages") {
  const char* name = "llama-3.1-405b";
  Estimator four = estimator(name, "h100-sxm", {.tensor = 8, .pipeline = 4});
  const std::vector<std::int64_t> layers_of = stage_layers(four.setup().execution.split);
  REQUIRE(std::accumulate(layers_of.begin(), layers_of.end(), std::int64_t{0}) == 126);
  CHECK(*std::max_element(layers_of.begin(), layers_of.end()) == 32);
  CHECK(layers_of.back() == 31);  // and the head
  const estimate::Scenario s{4, 512, 2};
  const Estimate e = four.run(s);
  REQUIRE(e.fits);
  // Every stage is busy for its share of what all layers take; embedding and head are on the ends.
  double layers = 0, first = 0, last = 0, send = 0;
  for (const estimate::OpEstimate& op : e.phases[1].ops) {
    double& part = op.op.layer_kind >= 0 ? layers : op.op.name == "stage_send" ? send : layers > 0 ? last : first;
    part += op.step_time().value;
  }
  double slowest = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    slowest = std::max(slowest, layers * d(layers_of[i]) / 126 + (i < 3 ? send / 3 : last) + (i == 0 ? first : 0));
  }
  // Four micro-batches keep four stages busy: a decode step takes as long as the slowest.
  CHECK(e.phases[1].time.value == Approx(slowest));
  // Of 2 bytes, over 8 devices: q and o, k and v of 8 heads of 128, three matrices of 53248; two norms are whole.
  const double layer = 2 * (16384.0 * (2 * 16384 + 2 * 1024 + 3 * 53248) / 8 + 2 * 16384);
  const double table = 2.0 * 128256 * 16384 / 8;
  const std::vector<Stage>& stages = four.stages();
  for (std::size_t i = 0; i < 4; ++i) {
    const double ends = i == 0 ? table : i == 3 ? table + 2 * 16384 : 0;
    CHECK(stages[i].weights.value == d(layers_of[i]) * layer + ends);
  }
  // The fullest: 2 x 128 elements of 2 bytes for each of 514 tokens of four requests.
  const std::size_t fullest = four.fullest_stage(s);
  CHECK(e.memory.weights == stages[fullest].weights);
  CHECK(e.memory.kv_cache.value == d(layers_of[fullest]) * 4 * 514 * 2 * 128 * 2);
}

TEST_CASE("DeepSeek's three dense layers count as what they cost, and the stage that has them holds fewer weights") {
  const Estimator e = estimator("deepseek-v3", "b200-sxm", {.tensor = 8, .pipeline = 4});
  const std::vector<Stage>& stages = e.stages();
  CHECK(stages[0].layers[0] == 3);
  std::int64_t experts = 0;
  for (const Stage& stage : stages) experts += stage.layers[1];
  CHECK(experts == 58);
  for (std::size_t i = 1; i < stages.size(); ++i) CHECK(stages[i].layers[0] == 0);
  // 17 layers, but 14 of experts only.
  CHECK(stages[0].layers[1] == 14);
  CHECK(stages[1].layers[1] == 15);
  CHECK(stages[0].weights < stages[1].weights);
}

TEST_CASE("a training step over uneven stages computes what one stage computes, in the time of its slowest") {
  const estimate::TrainingScenario s{16, 1, 512};
  const TrainingEstimate one = trained("llama-3.2-1b", s, {});
  for (const std::int64_t p : {3, 5, 6}) {  // 16 layers
    const TrainingEstimate e =
        trained("llama-3.2-1b", {.global_batch = 15 * p, .micro_batch = 1, .sequence = 512}, {.pipeline = p});
    const std::vector<std::int64_t> layers = stage_layers(e.split);
    CHECK(std::accumulate(layers.begin(), layers.end(), std::int64_t{0}) == 16);
    CHECK(e.hardware_flops.value / d(15 * p) == Approx(one.hardware_flops.value / 16));
    // No stage can be faster than an even share, nor need it be slower by a layer, but for one that the head alone,
    // as dear as four layers, makes so.
    const double all = (one.compute / d(16)).value;
    const double slowest = (e.compute / d(15 * p)).value;
    CHECK(slowest >= all / d(p));
    if (layers.back() > 1) CHECK(slowest <= all / d(p) + all / 16);
    CHECK(layers.back() < layers.front());
  }
}

TEST_CASE("memory of uneven training stages: the parts of every stage are those of the whole model") {
  // 26 layers on three stages; 16 bytes of a parameter, no replicas.
  const TrainingEstimate e = trained("gemma-2-2b", {6, 1, 256}, {.pipeline = 3});
  const std::vector<std::int64_t> layers = stage_layers(e.split);
  CHECK(std::accumulate(layers.begin(), layers.end(), std::int64_t{0}) == 26);
  const double table = 256000.0 * 2304;
  // A layer: q and o of 2304 x 2048, k and v of 2304 x 1024, three of 2304 x 9216, four norms.
  const double layer = 2304.0 * (2 * 2048 + 2 * 1024 + 3 * 9216 + 4);
  const bool last = e.fullest_stage == 2;
  const double ends = e.fullest_stage == 0 ? table : last ? table + 2304 : 0;
  CHECK(e.memory.weights.value == 2 * (ends + layer * d(layers[static_cast<std::size_t>(e.fullest_stage)])));
}

TEST_CASE("a search finds plans whose stages do not divide the layers, and costs them as an estimate does") {
  const model::Decoder& m = decoder("llama-3.1-405b");
  estimate::SearchSpace space{.devices = 32, .batch = 16, .sequence = 1024};
  const estimate::Setup setup = estimate::make_setup(m, device("h100-sxm"), {});
  std::vector<estimate::Candidate> plans = estimate::enumerate_plans(m, space).legal;
  estimate::PlanSearch search(setup, space);
  const auto four = std::find_if(plans.begin(), plans.end(), [](const estimate::Candidate& c) {
    return c.plan == Plan{.tensor = 8, .pipeline = 4};
  });
  REQUIRE(four != plans.end());
  Estimator alone = estimator("llama-3.1-405b", "h100-sxm", four->plan);
  const Estimate e = alone.run({16, 1024, 1});
  const estimate::PlanCost cost = search.cost(*four);
  REQUIRE(cost.fits);
  CHECK(cost.time == e.ttft);
  CHECK(cost.memory.weights == e.memory.weights);
}

TEST_CASE("GGUF layers of two cards: each format is where its layers are") {
  estimate::Choices choices;
  choices.weights = "q4_k_m";
  choices.host = &device("ryzen-7950x");
  const model::Decoder& m = decoder("llama-3-70b");
  const Estimator one(estimate::make_setup(m, device("rtx3090"), choices));
  choices.plan.pipeline = 2;
  const Estimator two(estimate::make_setup(m, device("rtx3090"), choices));
  CHECK(stage_layers(two.setup().execution.split) == std::vector<std::int64_t>{41, 39});
  const std::vector<Stage>& stages = two.stages();
  CHECK((stages[0].weights + stages[1].weights).value == Approx(one.stages()[0].weights.value));
  const estimate::Scenario s{1, 512, 128};
  // The host has what it had.
  CHECK(two.host_memory(s).weights == one.host_memory(s).weights);
  CHECK(two.stage_memory(s, 0).kv_cache.value == 41.0 * 640 * 2 * 8 * 128 * 2);
  // Only the device of the head has room for logits of a micro-batch: 4 bytes of 512 x (128256 + 8192) elements.
  CHECK(two.stage_memory(s, 1).activation.value == 4.0 * 512 * (128256 + 8192));
  CHECK(two.stage_memory(s, 0).activation < two.stage_memory(s, 1).activation);
  CHECK(two.memory(s).total() == std::max(two.stage_memory(s, 0).total(), two.stage_memory(s, 1).total()));
}

TEST_CASE("GGUF layers of unlike cards: dealt by free memory, timed on their own card") {
  estimate::Choices choices;
  choices.weights = "q4_k_m";
  choices.host = &device("ryzen-7950x");
  const model::Decoder& m = decoder("llama-3-8b");
  const auto first_and_tpot = [&](std::vector<estimate::Card> cards) {
    choices.cards = std::move(cards);
    choices.plan.pipeline = choices.cards.empty() ? 1 : static_cast<std::int64_t>(choices.cards.size());
    Estimator e(estimate::make_setup(m, device("rtx3090"), choices));
    const Estimate result = e.run({1, 512, 2});
    REQUIRE(result.fits);
    return std::pair{stage_layers(e.setup().execution.split), result.tpot->value};
  };
  const estimate::Card large{&device("rtx3090"), nullptr};
  const estimate::Card small{&device("rtx3060"), nullptr};
  const auto [all, alone] = first_and_tpot({});
  const auto [even, alike] = first_and_tpot({large, large});
  const auto [uneven, unlike] = first_and_tpot({large, small});
  CHECK(even == std::vector<std::int64_t>{17, 15});
  // 23.7 and 11.75 GiB, half a GiB of each reserved: 0.673 of 33 items.
  CHECK(uneven == std::vector<std::int64_t>{23, 9});
  // Decode reads weights: nine layers and the head, 0.33 of them, at 360 instead of 936 GB/s.
  CHECK(alike / alone == Approx(1).epsilon(0.01));
  CHECK(unlike / alone == Approx(0.67 + 0.33 * 936.2 / 360).epsilon(0.03));
}

TEST_CASE("a decode step of a GGUF model is handed over once less than there are cards") {
  const hardware::RuntimeProfile profile = hardware::load_runtime_profile(device("rtx3090"), "llama.cpp");
  estimate::Choices choices;
  choices.weights = "q4_k_m";
  choices.host = &device("ryzen-7950x");
  choices.profile = &profile;
  const auto handed_over = [&](std::int64_t cards) {
    choices.plan.pipeline = cards;
    const Estimate e =
        Estimator(estimate::make_setup(decoder("llama-3-8b"), device("rtx3090"), choices)).run({1, 512, 2});
    double seconds = 0;
    for (const estimate::OpEstimate& op : e.phases.back().ops) {
      if (op.op.tag == graph::Tag::stage_send) seconds += op.step_time().value;
    }
    return seconds;
  };
  CHECK(handed_over(1) == 0);
  // 0.3 ms each, and 16 KB over the link.
  CHECK(handed_over(2) == Approx(1 * 3e-4).epsilon(0.2));
  CHECK(handed_over(4) == Approx(3 * 3e-4).epsilon(0.4));
}

}  // namespace llmperf::uneven_stages_test
