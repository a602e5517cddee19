// Plans against each other and against the speed of light of the same request.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "catch.h"
#include "estimate/plan_cases.h"
#include "graph/random_decoder.h"

namespace llmperf::plan_metamorphic_test {

using estimate::Choices;
using estimate::Estimate;
using estimate::Estimator;
using estimate::Scenario;
using estimate::Setup;
using graph::Plan;
using test::decoder;
using test::device;

namespace {

constexpr double kRounding = 1e-9;

// Links that take no time.
void make_ideal(cost::Links& links) {
  links.per_device = links.per_link = BytesPerSecond{std::numeric_limits<double>::infinity()};
  links.latency = Seconds{};
}

double seconds(const Setup& setup, const Scenario& scenario) {
  Estimator e(setup);
  const Estimate result = e.run(scenario);
  double sum = 0;
  for (const estimate::Phase& p : result.phases) sum += p.time.value * static_cast<double>(p.steps);
  return sum;
}

// A random decoder on a device that it fits on, and something to do.
struct Case {
  std::unique_ptr<model::Decoder> model = std::make_unique<model::Decoder>();
  hardware::Device hardware;
  Plan plan;
  Choices choices;
  Scenario scenario;
};
Case random_case(test::Random& random) {
  Case c;
  *c.model = test::random_decoder(random);
  c.hardware = device(random.chance() ? "h100-sxm" : "atlas-800i-a2");
  c.plan = test::random_plan(random, *c.model);
  c.choices.activations = "bf16";
  c.choices.runtime = test::random_options(random);
  c.choices.runtime.overlap_collectives = false;
  c.scenario = {c.plan.data * c.plan.pipeline * random.in(1, 3), test::smallest_prompt(c.plan) * random.in(1, 20),
                random.in(1, 20)};
  return c;
}
Setup setup_of(const Case& c, const Plan& plan) {
  Choices choices = c.choices;
  choices.plan = plan;
  return estimate::make_setup(*c.model, c.hardware, choices);
}

}  // namespace

TEST_CASE("tensor parallelism over ideal links is never slower than one device") {
  test::Random random(31);
  int compared = 0;
  for (int i = 0; i < 700; ++i) {
    const Case c = random_case(random);
    const Plan plan = {.tensor = c.plan.tensor};
    if (plan.tensor == 1 || !graph::legal(*c.model, plan)) continue;
    INFO("case " << i << ", " << graph::to_text(plan));
    Setup divided = setup_of(c, plan);
    make_ideal(divided.cluster.inside);
    make_ideal(divided.cluster.between);
    const double alone = seconds(setup_of(c, {}), c.scenario);
    CHECK(seconds(divided, c.scenario) <= alone * (1 + kRounding));
    ++compared;
  }
  CHECK(compared >= 100);
}

TEST_CASE("a plan is never slower over links of twice the rate or half the latency, with a profile and without") {
  test::Random random(32);
  const hardware::RuntimeProfile profile = hardware::load_runtime_profile(device("h100-sxm"), "vllm");
  int compared = 0;
  for (int i = 0; i < 150; ++i) {
    Case c = random_case(random);
    if (c.plan.devices() == 1) continue;
    INFO("case " << i << ", " << graph::to_text(c.plan));
    c.choices.devices_per_node = random.in(1, 2) * 4;
    if (c.hardware.name == "h100-sxm" && random.chance()) c.choices.profile = &profile;
    const Setup usual = setup_of(c, c.plan);
    const double before = seconds(usual, c.scenario);
    for (cost::Links cost::Cluster::*level : {&cost::Cluster::inside, &cost::Cluster::between}) {
      Setup faster = usual;
      cost::Links& links = faster.cluster.*level;
      links.per_device = 2 * links.per_device;
      links.per_link = 2 * links.per_link;
      CHECK(seconds(faster, c.scenario) <= before * (1 + kRounding));
      Setup quicker = usual;
      (quicker.cluster.*level).latency = 0.5 * (quicker.cluster.*level).latency;
      CHECK(seconds(quicker, c.scenario) <= before * (1 + kRounding));
    }
    ++compared;
  }
  CHECK(compared >= 75);
}

namespace {

// Of `model` on `hardware` with its profile of that name, or at the speed of light.
double prefill(const std::string& model, const hardware::Device& hardware, const char* runtime, const Plan& plan,
               const Scenario& scenario, const char* weights = nullptr, const graph::Popularity& routing = {}) {
  std::optional<hardware::RuntimeProfile> profile;
  Choices choices;
  choices.plan = plan;
  choices.routing = routing;
  if (runtime) profile = hardware::load_runtime_profile(hardware, runtime);
  if (profile) choices.profile = &*profile;
  if (weights) choices.weights = weights;
  Estimator e(estimate::make_setup(decoder(model), hardware, choices));
  return e.run(scenario).phases.front().time.value;
}

}  // namespace

TEST_CASE("one more sequence does not make sums between nodes jump") {
  // 22 for 21 sequences are 5 % more work, 400 for 392 are 2 %.
  const auto mistral = [](std::int64_t batch) {
    return prefill("mistral-7b-v0.3", device("mi300x"), "transformers", {.tensor = 16}, {batch, 128, 1});
  };
  CHECK(mistral(22) <= 22.0 / 21 * mistral(21));
  const auto llama = [](std::int64_t batch) {
    return prefill("llama-3.2-1b", device("h100-sxm"), "vllm", {.tensor = 32}, {batch, 16, 1});
  };
  CHECK(llama(400) <= 400.0 / 392 * llama(392));
}

TEST_CASE("a latency that the file states slows a prediction down, which stays slower than light") {
  hardware::Device slow = device("h100-sxm");
  slow.interconnect->latency = Seconds{100e-6};
  const auto of = [](const hardware::Device& hardware, const char* runtime) {
    return prefill("llama-3.1-8b", hardware, runtime, {.tensor = 8}, {1, 512, 2});
  };
  CHECK(of(slow, "vllm") > of(device("h100-sxm"), "vllm"));
  CHECK(of(slow, "vllm") > of(slow, nullptr));
}

TEST_CASE("the speed of light of DeepSeek-V3 over 32 H100 is below what was published of it") {
  // 4 sequences of 4,096 tokens on each of 32 devices: 2.61 s (the SGLang team's report of large-scale expert
  // parallelism on 96 H100, May 2025).
  const Plan plan = {.expert = 32, .data = 32};
  const double light = prefill("deepseek-v3", device("h100-sxm"), nullptr, plan, {128, 4096, 1}, "fp8-block128");
  CHECK(light < 2.61);
  // A token is sent to 2.2 of three other nodes on average, as 7,168 x 1.03 bytes, and comes back as 7,168 x 2 bytes;
  // 16,384 of them over 50 GB/s in 58 layers take 0.91 s.
  Plan wide = plan;
  wide.expert_dispatch = Dtype::bf16;
  const double difference =
      prefill("deepseek-v3", device("h100-sxm"), nullptr, wide, {128, 4096, 1}, "fp8-block128") - light;
  CHECK(difference == Approx(58 * 16384 * 2.196 * 7168 * (2 - 1.03125) / 50e9).epsilon(0.001));
}

TEST_CASE("a prompt waits for the busiest device of a node, and for none whose experts are balanced") {
  const auto slower = [](const Plan& plan, const char* runtime = "vllm") {
    const auto of = [&](const graph::Popularity& routing) {
      return prefill("deepseek-v3", device("h200-sxm"), runtime, plan, {4 * plan.data, 4096, 1}, "fp8-block128",
                     routing);
    };
    return of({}) / of({.balanced = true});
  };
  CHECK(slower({.expert = 8, .data = 8}) > 1.2);
  CHECK(slower({.expert = 8, .data = 8}) < 1.5);  // of rows (docs/formulas.md), and nothing but experts waits
  CHECK(slower({.expert = 8, .expert_copies = 8, .data = 8}) == Approx(1).epsilon(0.02));
  CHECK(slower({.expert = 16, .data = 16}) == Approx(1).epsilon(0.02));
  CHECK(slower({.expert = 8, .data = 8}, nullptr) == Approx(1).epsilon(0.02));  // the speed of light
}

TEST_CASE("a token alone reaches an expert at least on the device that a step waits for, however many there are") {
  for (const std::int64_t devices : {2, 8, 16, 64}) {
    graph::Execution e = test::execution(decoder("deepseek-v3"), {.expert = devices, .data = devices});
    CHECK(graph::load_of_device(e, *decoder("deepseek-v3").kinds.back().feed_forward.experts, 1).active >= 1);
  }
}

}  // namespace llmperf::plan_metamorphic_test
