// Layers over the stages of a pipeline.
#include "graph/stage_split.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "catch.h"
#include "graph/random_decoder.h"

namespace llmperf::stage_split_test {

using graph::PassCosts;
using graph::StageSplit;

namespace {

using Counts = std::vector<std::int64_t>;

Counts stage_layers(const StageSplit& split) {
  Counts counts;
  for (std::int64_t stage = 0; stage < split.stages; ++stage) counts.push_back(split.layers(stage));
  return counts;
}
Counts run_layers(const StageSplit& split) {
  Counts counts;
  for (std::int64_t run = 0; run < split.runs(); ++run) counts.push_back(split.layers_of_run(run));
  return counts;
}
PassCosts alike(std::int64_t layers, double first, double last) {
  return {std::vector<double>(static_cast<std::size_t>(layers), 1.0), first, last};
}
Counts balanced(const PassCosts& costs, std::int64_t stages, std::int64_t chunks = 1) {
  return stage_layers(graph::balanced_split({&costs, 1}, stages, chunks));
}

// Of the slowest stage, in shares of the pass where that is largest.
double slowest(const std::vector<PassCosts>& passes, const StageSplit& split) {
  double most = 0;
  for (const PassCosts& pass : passes) {
    const double total = std::accumulate(pass.layers.begin(), pass.layers.end(), pass.first + pass.last);
    std::vector<double> stages(static_cast<std::size_t>(split.stages), 0.0);
    stages.front() += pass.first;
    stages.back() += pass.last;
    for (std::int64_t run = 0; run < split.runs(); ++run) {
      const auto i = static_cast<std::size_t>(run);
      for (std::int64_t l = split.first[i]; l < split.first[i + 1]; ++l) {
        stages[i % stages.size()] += pass.layers[static_cast<std::size_t>(l)];
      }
    }
    most = std::max(most, *std::max_element(stages.begin(), stages.end()) / total);
  }
  return most;
}

// The best of all ways to cut the layers into runs; the first and the last may be empty where a stage has several.
double best(const std::vector<PassCosts>& passes, std::int64_t stages, std::int64_t chunks) {
  const auto layers = static_cast<std::int64_t>(passes.front().layers.size());
  double found = std::numeric_limits<double>::infinity();
  StageSplit split{.stages = stages, .first = {0}};
  const std::function<void()> extend = [&] {
    const std::int64_t run = split.runs();
    const bool end = run == 0 || run == stages * chunks - 1;
    const std::int64_t fewest = end && chunks > 1 ? 0 : 1;
    const std::int64_t begin = split.first.back();
    if (run == stages * chunks) {
      if (begin == layers) found = std::min(found, slowest(passes, split));
      return;
    }
    for (std::int64_t next = begin + fewest; next <= layers; ++next) {
      split.first.push_back(next);
      extend();
      split.first.pop_back();
    }
  };
  extend();
  return found;
}

}  // namespace

TEST_CASE("126 layers on 4, 8 and 16 stages: the ends, which have the embedding and the head, get a layer less") {
  // A stage of 32 layers and an embedding would be slower than one of 32.
  CHECK(balanced(alike(126, 0.01, 0.66), 4) == Counts{31, 32, 32, 31});
  CHECK(balanced(alike(126, 0.01, 0.66), 8) == Counts{15, 16, 16, 16, 16, 16, 16, 15});
  CHECK(balanced(alike(126, 0.01, 0.66), 16) == Counts{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7});
  // An embedding that costs nothing leaves a choice: boundaries after a quarter, a half and three of 126.66, or 31.67,
  // 63.33 and 95.
  CHECK(balanced(alike(126, 0, 0.66), 4) == Counts{32, 31, 32, 31});
  // A head of five layers leaves the last stage 131 / 4 - 5 of them.
  CHECK(balanced(alike(126, 0, 5), 4) == Counts{33, 33, 32, 28});
}

TEST_CASE("126 layers in 8 runs on each of 16 stages: a layer a run, and the embedding and the head alone in theirs") {
  const PassCosts costs = alike(126, 0.01, 0.66);
  const StageSplit split = graph::balanced_split({&costs, 1}, 16, 8);
  Counts expected(128, 1);
  expected.front() = expected.back() = 0;
  CHECK(run_layers(split) == expected);
  CHECK(split.layers(0) == 7);
  CHECK(split.layers(7) == 8);
  CHECK(split.layers(15) == 7);
  CHECK(graph::to_text(split) == "7+8+8+8+8+8+8+8+8+8+8+8+8+8+8+7 layers in 8 runs each");
  CHECK(graph::enough_layers(126, 16, 8));
  CHECK_FALSE(graph::enough_layers(126, 16, 9));
  CHECK(graph::enough_layers(126, 126));
  CHECK_FALSE(graph::enough_layers(126, 127));
}

TEST_CASE("runs differ by a layer at most where layers are alike, and stages are as even as runs allow") {
  // 58 layers on 4 stages of 4 runs: two stages of 15 and two of 14, in runs of 3 and 4.
  const PassCosts costs = alike(58, 0, 0);
  const StageSplit split = graph::balanced_split({&costs, 1}, 4, 4);
  Counts stages = stage_layers(split);
  std::sort(stages.begin(), stages.end());
  CHECK(stages == Counts{14, 14, 15, 15});
  for (const std::int64_t layers : run_layers(split)) CHECK((layers == 3 || layers == 4));
}

TEST_CASE("no contiguous split of random layers has a faster slowest stage") {
  test::Random random(31);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t layers = random.in(2, 9);
    const std::int64_t stages = random.in(2, std::min<std::int64_t>(layers, 4));
    std::vector<PassCosts> passes(static_cast<std::size_t>(random.in(1, 3)));
    for (PassCosts& pass : passes) {
      pass.first = static_cast<double>(random.in(0, 30)) / 10;
      pass.last = static_cast<double>(random.in(0, 60)) / 10;
      for (std::int64_t l = 0; l < layers; ++l) pass.layers.push_back(static_cast<double>(random.in(1, 40)) / 10);
    }
    const StageSplit split = graph::balanced_split(passes, stages);
    INFO("case " << i << ": " << graph::to_text(split));
    CHECK(split.first.front() == 0);
    CHECK(split.first.back() == layers);
    for (const std::int64_t count : run_layers(split)) CHECK(count >= 1);
    CHECK(slowest(passes, split) == Approx(best(passes, stages, 1)).epsilon(1e-9));
  }
}

TEST_CASE("interleaved, no runs of layers that are alike have a faster slowest stage") {
  test::Random random(32);
  int tried = 0;
  for (int i = 0; i < 120; ++i) {
    const std::int64_t stages = random.in(2, 3);
    const std::int64_t chunks = random.in(2, 3);
    const std::int64_t layers = random.in(stages * chunks - 2, stages * chunks + 5);
    if (!graph::enough_layers(layers, stages, chunks)) continue;
    ++tried;
    const std::vector<PassCosts> passes = {
        alike(layers, static_cast<double>(random.in(0, 20)) / 10, static_cast<double>(random.in(0, 40)) / 10)};
    const StageSplit split = graph::balanced_split(passes, stages, chunks);
    INFO("case " << i << ": " << graph::to_text(split));
    const Counts runs = run_layers(split);
    CHECK(std::accumulate(runs.begin(), runs.end(), std::int64_t{0}) == layers);
    for (std::size_t run = 1; run + 1 < runs.size(); ++run) CHECK(runs[run] >= 1);
    CHECK(slowest(passes, split) == Approx(best(passes, stages, chunks)).epsilon(1e-9));
  }
  CHECK(tried > 80);
}

TEST_CASE("interleaved layers of several kinds are all dealt, and the slowest stage has no more than a run too much") {
  test::Random random(33);
  for (int i = 0; i < 100; ++i) {
    const std::int64_t stages = random.in(2, 6);
    const std::int64_t chunks = random.in(2, 4);
    const std::int64_t layers = stages * chunks + random.in(0, 40);
    PassCosts costs;
    costs.last = 1;
    for (std::int64_t l = 0; l < layers; ++l) costs.layers.push_back(l < 3 ? 0.25 : 1);  // dense before experts
    const StageSplit split = graph::balanced_split({&costs, 1}, stages, chunks);
    const Counts runs = run_layers(split);
    CHECK(split.runs() == stages * chunks);
    CHECK(std::accumulate(runs.begin(), runs.end(), std::int64_t{0}) == layers);
    const double run =
        static_cast<double>(*std::max_element(runs.begin(), runs.end())) / (static_cast<double>(layers) - 3 * 0.75 + 1);
    CHECK(slowest({costs}, split) <= 1 / static_cast<double>(stages) + run);
  }
}

TEST_CASE("layers that divide are dealt as Megatron deals them: chunk c of stage s is run c p + s") {
  const StageSplit split = graph::equal_split(24, 4, 2);
  CHECK(split.first == Counts{0, 3, 6, 9, 12, 15, 18, 21, 24});
  CHECK(split.equal());
  CHECK(split.layers(1) == 6);
  CHECK(graph::to_text(graph::equal_split(12, 3)) == "4+4+4 layers");
}

TEST_CASE("llama.cpp counts the output as one more layer, which the last device has") {
  const auto dealt = [](std::int64_t layers, const std::vector<double>& shares) {
    return stage_layers(graph::proportional_split(layers, shares));
  };
  // Items i of 81 with i / 81 < 1 / 2: 0 .. 40.
  CHECK(dealt(80, {1, 1}) == Counts{41, 39});
  // 94 layers of Qwen3-235B: caches of 1632 and 1564 MiB in a log of two equal cards, 34 MiB a layer.
  CHECK(dealt(94, {24, 24}) == Counts{48, 46});
  // i / 81 < 3 / 5: 0 .. 48.
  CHECK(dealt(80, {3, 2}) == Counts{49, 31});
  CHECK(dealt(32, {1, 0, 1}) == Counts{17, 0, 15});
  CHECK(dealt(80, {79.5, 1}) == Counts{80, 0});  // the output alone
}

}  // namespace llmperf::stage_split_test
