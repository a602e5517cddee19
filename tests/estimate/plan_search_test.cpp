#include "estimate/plan_search.h"

#include <algorithm>
#include <set>

#include "catch.h"
#include "hardware/device.h"
#include "model/decoder.h"

namespace llmperf::plan_search_test {

using estimate::Candidate;
using estimate::PlanCost;
using estimate::SearchSpace;

namespace {

struct Fixture {
  model::Decoder model;
  hardware::Device device;
  estimate::Setup setup;
  Fixture(const char* model_name, const char* device_name)
      : model(model::load_decoder(model_name)),
        device(hardware::load_device(device_name)),
        setup(estimate::make_setup(model, device, {})) {}
};

}  // namespace

TEST_CASE("an enumeration holds every product of the axes that divides the model, and nothing twice") {
  // 2 = one axis of degree 2: tp (plain, megatron-sp, 2-D 2x1), pp, ulysses, ring, dp. The batch of 1 rules out dp.
  const model::Decoder llama = model::load_decoder("llama-2-7b");
  SearchSpace space{.devices = 2, .batch = 2, .sequence = 2048};
  const estimate::Enumeration all = estimate::enumerate_plans(llama, space);
  CHECK(all.tried == 7);
  CHECK(all.legal.size() == 7);
  std::set<std::string> names;
  for (const Candidate& c : all.legal) names.insert(graph::to_text(c.plan));
  CHECK(names == std::set<std::string>{"tp 2", "tp 2, megatron-sp", "tp 2x1", "pp 2", "ulysses 2", "ring 2", "dp 2"});
  space.batch = 1;
  CHECK(estimate::enumerate_plans(llama, space).legal.size() == 6);
  space.sequence = 2047;  // odd: neither the sequence nor the residual stream divides
  CHECK(estimate::enumerate_plans(llama, space).legal.size() == 3);
}

TEST_CASE("every enumerated plan takes all devices and is legal; axes of different sizes are all tried") {
  const Fixture f("mixtral-8x7b", "h100-sxm");
  const SearchSpace space{.devices = 16, .batch = 16, .sequence = 4096};
  const estimate::Enumeration found = estimate::enumerate_plans(f.model, space);
  REQUIRE(found.legal.size() > 50);
  std::set<std::int64_t> expert_degrees;
  for (const Candidate& c : found.legal) {
    CHECK(c.plan.devices() == 16);
    CHECK(graph::legal(f.model, c.plan));
    expert_degrees.insert(c.plan.expert);
  }
  CHECK(expert_degrees == std::set<std::int64_t>{1, 2, 4, 8});
}

TEST_CASE("the cost of a plan is what an estimator of that plan says") {
  Fixture f("llama-2-70b", "atlas-800i-a2");
  const SearchSpace space{.devices = 8, .batch = 8, .sequence = 1024};
  estimate::PlanSearch search(f.setup, space);
  for (const graph::Plan& plan : {graph::Plan{.tensor = 8}, graph::Plan{.tensor = 4, .pipeline = 2}}) {
    const PlanCost cost = search.cost({.plan = plan, .options = {}});
    estimate::Choices choices;
    choices.plan = plan;
    estimate::Estimator alone(estimate::make_setup(f.model, f.device, choices));
    const estimate::Estimate e = alone.run({.batch = 8, .prompt = 1024, .generate = 1});
    REQUIRE(cost.fits);
    CHECK(cost.time == e.ttft);
    CHECK(cost.memory.weights == e.memory.weights);
    CHECK(cost.activations() == e.memory.activation);
    const estimate::Communication sums = search.communication({.plan = plan, .options = {}});
    // The ops are those of every stage; one device of the first exchanges the sums of its 80 / pp layers, twice, and
    // the embedding's, for each of pp micro-batches.
    const std::int64_t sums_of_device = plan.pipeline * (2 * 80 / plan.pipeline + 1);
    CHECK(sums.count[static_cast<std::size_t>(graph::CollectiveKind::all_reduce)] == sums_of_device);
    if (plan.pipeline == 1) {
      CHECK(sums.sent_bytes().value == Approx(e.phases[0].work.network.value));
      continue;
    }
    CHECK(sums.count[static_cast<std::size_t>(graph::CollectiveKind::send)] == 2);  // one boundary, two micro-batches
    // 1024 x 4 requests x 8192 x 2 bytes; an all-reduce over 4 sends 2 * 3/4 of that.
    const double tensor = 1024.0 * 4 * 8192 * 2;
    CHECK(sums.sent_bytes().value == Approx(tensor * (1.5 * static_cast<double>(sums_of_device) + 2)));
  }
}

TEST_CASE("plans that fit come first, the fastest of them before all others") {
  const Fixture f("megatron-22b", "a100-sxm-80gb");
  const SearchSpace space{.devices = 8,
                          .batch = 8,
                          .sequence = 2048,
                          .training = true,
                          .options = {{.zero = 0}, {.zero = 1}, {.zero = 2}, {.zero = 3}}};
  const estimate::Enumeration found = estimate::enumerate_plans(f.model, space);
  estimate::PlanSearch search(f.setup, space);
  const std::vector<PlanCost> ranked = search.rank(found.legal);
  REQUIRE(ranked.size() == found.legal.size());
  CHECK(ranked.front().fits);
  CHECK_FALSE(ranked.back().fits);  // 22B parameters x 16 bytes on one device
  for (std::size_t i = 1; i < ranked.size(); ++i) {
    CHECK(ranked[i - 1].fits >= ranked[i].fits);
    if (ranked[i].fits) CHECK(ranked[i - 1].time <= ranked[i].time);
    if (ranked[i].fits) CHECK(ranked[i].mfu <= 1);
  }
  // ZeRO is tried with replicas only.
  for (const PlanCost& c : ranked) {
    if (c.candidate.options.zero > 0) CHECK(c.candidate.plan.replicas() > 1);
  }
}

}  // namespace llmperf::plan_search_test
