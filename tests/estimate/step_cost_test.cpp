// Steps of continuous batching: sums that are kept against the Estimator's own steps.
#include "estimate/step_cost.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "estimate/builtin.h"
#include "estimate/estimate.h"
#include "hardware/runtime_execution.h"
#include "model/decoder.h"

namespace llmperf::step_cost_test {

using namespace llmperf::estimate;
using graph::SequenceGroup;

namespace {

// A setup with the profile that it points to.
struct Case {
  std::string name;
  std::shared_ptr<hardware::RuntimeProfile> profile;
  Setup setup;
};

Case case_of(const std::string& model, const std::string& device, const std::string& runtime,
             const graph::Plan& plan = {}, const std::optional<Draft>& draft = {}) {
  Case c{.name = model + " on " + device + " under " + runtime, .profile = {}, .setup = {}};
  Choices choices;
  choices.plan = plan;
  choices.draft = draft;
  if (runtime != "none") {
    c.profile =
        std::make_shared<hardware::RuntimeProfile>(hardware::load_runtime_profile(test::device(device), runtime));
    choices.profile = c.profile.get();
    choices.run_as(hardware::resolve_execution(*c.profile, c.profile->options, ""));
  }
  c.setup = make_setup(test::decoder(model), test::device(device), choices);
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  // Dense, grouped heads, experts, latent attention, windows, recurrences, chosen keys.
  for (const char* model : {"llama-2-7b", "llama-3.1-8b", "mixtral-8x7b", "deepseek-v2-lite", "gemma-2-9b",
                            "qwen3-next-80b-a3b", "deepseek-v3.2"}) {
    for (const char* device : {"rtx4090", "h100-sxm"}) {
      for (const char* runtime : {"none", "vllm"}) {
        for (const std::int64_t tensor : {1, 4}) {
          if (tensor == 4 && std::string(model) == "qwen3-next-80b-a3b") continue;  // two KV heads
          all.push_back(case_of(model, device, runtime, {.tensor = tensor}));
        }
      }
    }
  }
  all.push_back(case_of("llama-3.1-8b", "atlas-800i-a2", "torchair"));
  all.push_back(case_of("llama-3.1-8b", "h100-sxm", "vllm@0.10"));
  all.push_back(case_of("llama-2-70b", "atlas-800i-a2", "none", {.tensor = 4}));
  return all;
}

double alone(Estimator& estimator, const SequenceGroup& group) {
  Phase phase;
  estimator.step(group, 1, phase);
  return phase.time.value;
}
double mixed(Estimator& estimator, const std::vector<SequenceGroup>& groups) {
  Phase phase;
  estimator.mixed_step(groups, phase);
  return phase.time.value;
}
StepShape decodes(std::int64_t count, std::int64_t context) {
  return {.decodes = count, .context_sum = count * context, .context_max = context};
}
double seconds(const StepCost& cost, const StepShape& shape) { return cost(shape).latency.value; }

}  // namespace

TEST_CASE("a step of decodes alone is the estimate's decode step, and one of a prompt alone its prefill") {
  for (const Case& c : cases()) {
    INFO(c.name);
    Estimator estimator(c.setup);
    const StepCost cost(c.setup);
    for (const std::int64_t count : {1, 7, 64, 600}) {
      for (const std::int64_t context : {1, 512, 2048, 8192}) {
        CHECK(seconds(cost, decodes(count, context)) == Approx(alone(estimator, {count, 1, context})).epsilon(1e-9));
      }
    }
    for (const std::int64_t tokens : {1, 100, 512, 4096}) {
      for (const std::int64_t context : {0, 512, 8192}) {
        if (tokens == 1 && context > 0) continue;  // decodes
        const Chunk chunk{tokens, context};
        CHECK(seconds(cost, {.chunks = {&chunk, 1}}) == Approx(alone(estimator, {1, tokens, context})).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("the first decode step and the prefill of an estimate are steps of these") {
  for (const char* runtime : {"none", "vllm"}) {
    const Case c = case_of("llama-3.1-8b", "h100-sxm", runtime);
    const Estimate e = Estimator(c.setup).run({1, 512, 2});
    const StepCost cost(c.setup);
    const Chunk prompt{512, 0};
    CHECK(seconds(cost, {.chunks = {&prompt, 1}}) == Approx(e.ttft->value).epsilon(1e-9));
    CHECK(seconds(cost, decodes(1, 512)) == Approx(e.tpot_first->value).epsilon(1e-9));
  }
}

TEST_CASE(
    "a mixed step is the estimator's, with kernels launched together, and off the grid almost always within 0.1 %") {
  std::mt19937 random(26);
  const auto number = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int steps = 0;
  int beyond = 0;
  for (const Case& c : cases()) {
    INFO(c.name);
    Estimator estimator(c.setup);
    const StepCost cost(c.setup);
    for (int i = 0; i < 40; ++i) {
      const std::int64_t count = number(1, 200);
      const std::int64_t context = number(1, 6000);
      std::vector<SequenceGroup> groups = {{count, 1, context}};
      std::vector<Chunk> chunks;
      for (std::int64_t n = number(0, 3); n > 0; --n)
        chunks.push_back({number(2, 1000), number(0, 1) * number(1, 4000)});
      for (const Chunk& chunk : chunks) groups.push_back({1, chunk.tokens, chunk.context});
      StepShape shape = decodes(count, context);
      shape.chunks = chunks;
      const double error = seconds(cost, shape) / mixed(estimator, groups) - 1;
      INFO(count << " at " << context << " and " << chunks.size() << " chunks: " << 100 * error << " %");
      CHECK(std::abs(error) < 4e-3);
      ++steps;
      beyond += std::abs(error) > 1e-3 ? 1 : 0;
    }
  }
  CHECK(beyond <= steps / 100);  // chunks alone, whose keys step elsewhere
}

TEST_CASE("sequences of several contexts are one kernel of as many, as long as their mean, whoever groups them") {
  const Case c = case_of("llama-3.1-70b", "h100-sxm", "vllm", {.tensor = 4});
  Estimator estimator(c.setup);
  const StepCost cost(c.setup);
  std::vector<SequenceGroup> one_by_one;
  for (std::int64_t i = 0; i < 64; ++i) one_by_one.push_back({1, 1, 1024 - 512 + 16 * i + 8});
  const double together = mixed(estimator, {{64, 1, 1024}});
  // The longest one's part of a kernel that they fill but once is a little more than the mean's.
  CHECK(mixed(estimator, one_by_one) > together);
  CHECK(mixed(estimator, one_by_one) < 1.02 * together);
  CHECK(estimator.step_time(one_by_one).value == Approx(mixed(estimator, one_by_one)).epsilon(1e-9));
  CHECK(seconds(cost, {.decodes = 64, .context_sum = 64 * 1024, .context_max = 1528}) ==
        Approx(mixed(estimator, one_by_one)).epsilon(1e-3));
}

TEST_CASE("the longest sequence is the tail of the kernel that all share") {
  const Case c = case_of("llama-3.1-8b", "rtx4090", "vllm");
  const StepCost cost(c.setup);
  const double even = seconds(cost, decodes(64, 512));
  // 64 x 8 blocks fill 256 slots, so that keys are not divided: the longest one's block walks over 31,488 keys of 512 B
  // after its first 128 at 31.8 GB/s, 0.5 ms in each of 32 layers, where all keys take 0.14 ms.
  const double uneven = seconds(cost, {.decodes = 64, .context_sum = 64 * 512, .context_max = 31'616});
  CHECK(uneven - even > 32 * 0.3e-3);
  CHECK(uneven - even < 32 * 0.5e-3);
  CHECK(seconds(cost, {.decodes = 64, .context_sum = 64 * 512, .context_max = 600}) == Approx(even).epsilon(1e-3));
}

TEST_CASE("few tokens beside decodes cost their work, not the prompts' dispatch, where graphs are in pieces") {
  const Case c = case_of("llama-3.1-70b", "h100-sxm", "vllm", {.tensor = 4});
  REQUIRE(c.setup.dispatch_of(true, 41, 80) == hardware::Dispatch::pieces);
  REQUIRE(c.setup.dispatch_of(true, 41, 513) == hardware::Dispatch::eager);
  const StepCost cost(c.setup);
  const Chunk chunk{40, 0};
  StepShape shape = decodes(40, 1024);
  const double before = seconds(cost, shape);
  shape.chunks = {&chunk, 1};
  CHECK(seconds(cost, shape) > before);
  CHECK(seconds(cost, shape) - before < 1.3e-3);
  // Without them, kernel by kernel.
  Case eager = c;
  eager.profile->choices.graph_pieces = false;
  CHECK(seconds(StepCost(eager.setup), shape) - before > 1.7e-3);
}

TEST_CASE("of a pipeline a step's results come after the whole chain and the next begins behind the busiest stage") {
  for (const char* runtime : {"none", "vllm"}) {
    const Case c = case_of("llama-3.1-70b", "h100-sxm", runtime, {.tensor = 2, .pipeline = 4});
    Estimator estimator(c.setup);
    const StepCost cost(c.setup);
    const StepTime time = cost(decodes(64, 1024));
    CHECK(time.latency.value == Approx(alone(estimator, {64, 1, 1024})).epsilon(1e-9));
    CHECK(time.interval < time.latency);
    CHECK(time.interval.value > time.latency.value / 4);  // the last stage has the head
    // Four micro-batches fill the pipeline: their steady step is the busiest stage's, four times.
    Phase phase;
    estimator.step({64, 1, 1024}, 4, phase);
    CHECK(time.interval.value == Approx((phase.time.value) / 4).epsilon(2e-2));
  }
}

TEST_CASE("with a draft a step of decodes verifies, after the steps that drafted") {
  auto file = std::make_shared<model::ModelFile>();
  file->decoder = test::decoder("llama-3.2-1b");
  const Draft draft{.kind = Draft::Kind::model, .file = file, .tokens = 3, .acceptance = Acceptance(0.8)};
  for (const char* runtime : {"none", "vllm"}) {
    const Case c = case_of("llama-3.1-70b", "h100-sxm", runtime, {.tensor = 4}, draft);
    Estimator estimator(c.setup);
    const StepCost cost(c.setup);
    Phase verify;
    Phase drafting;
    const Scenario s{16, 1024, 100};
    estimator.decode_step(s, 1024, verify);
    estimator.draft_steps(s, 1024, drafting);
    // The middle of three drafts is one token further: between points of the grid.
    CHECK(seconds(cost, decodes(16, 1024)) == Approx(verify.time.value + drafting.time.value).epsilon(1e-4));
  }
}

TEST_CASE("where ops hang on their neighbours whole steps are kept, as exact") {
  Case tiles = case_of("llama-3.2-1b", "tx8", "none");
  tiles.setup.execution.runtime.prefetch_weights = true;
  Case halves = case_of("llama-3.1-8b", "h100-sxm", "vllm", {.tensor = 4});
  halves.setup.serving.overlap_batches = 2;
  for (const Case& c : {tiles, halves}) {
    INFO(c.name);
    const std::int64_t parts = c.setup.serving.overlap_batches;
    Estimator estimator(c.setup);
    const StepCost cost(c.setup);
    CHECK(seconds(cost, decodes(8, 512)) == Approx(alone(estimator, {8 / parts, 1, 512})).epsilon(1e-9));
    CHECK(seconds(cost, decodes(8, 512)) == Approx(alone(estimator, {8 / parts, 1, 512})).epsilon(1e-9));  // kept
    const Chunk chunk{128, 0};
    StepShape shape = decodes(8, 512);
    shape.chunks = {&chunk, 1};
    CHECK(seconds(cost, shape) == Approx(mixed(estimator, {{8 / parts, 1, 512}, {1, 128 / parts, 0}})).epsilon(1e-9));
  }
}

TEST_CASE("more sequences, contexts, tokens and rows never take less") {
  for (const char* runtime : {"none", "vllm"}) {
    const Case c = case_of("llama-3.1-8b", "h100-sxm", runtime);
    const StepCost cost(c.setup);
    double before = 0;
    for (std::int64_t context = 1; context < 20'000; context += 37) {
      const double now = seconds(cost, decodes(32, context));
      CHECK(now >= before * (1 - 1e-3));
      before = now;
    }
  }
}

TEST_CASE("threads that fill the tables together get what one gets alone") {
  const Case c = case_of("mixtral-8x7b", "h100-sxm", "vllm", {.tensor = 4});
  const auto at = [](const StepCost& cost, std::int64_t i) {
    const Chunk chunk{1 + i % 97, i % 3 * 160};
    StepShape shape = decodes(1 + i % 61, 100 + 13 * i);
    if (i % 2 > 0) shape.chunks = {&chunk, 1};
    return cost(shape).latency.value;
  };
  constexpr std::int64_t kSteps = 600;
  const StepCost single(c.setup);
  std::vector<double> expected;
  for (std::int64_t i = 0; i < kSteps; ++i) expected.push_back(at(single, i));
  const StepCost shared(c.setup);
  std::vector<std::vector<double>> got(4, std::vector<double>(kSteps));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < got.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < kSteps; ++i) {
        const std::int64_t step = t % 2 > 0 ? kSteps - 1 - i : i;
        got[t][static_cast<std::size_t>(step)] = at(shared, step);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<double>& mine : got) CHECK(mine == expected);
}

}  // namespace llmperf::step_cost_test
