#include "graph/expert_placement.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "catch.h"
#include "graph/decoder_graph.h"
#include "model/decoder.h"

namespace llmperf::graph::expert_placement_test {
namespace {

using Rows = std::vector<std::vector<double>>;

const Placement& placed(const MeasuredLoads& loads, std::int64_t ranks, std::int64_t copies = 0) {
  return loads.placed(1, ranks, copies);
}

TEST_CASE("the busiest experts go to the device with fewest tokens that has room") {
  // As numbered 4 + 2 and 1 + 1, of 4 on the mean. Packed: 4 here, 2 and 1 there, which is full, and 1 here.
  const MeasuredLoads loads("", {{4, 2, 1, 1}});
  CHECK(placed(loads, 2).by_number == Approx(6.0 / 4));
  CHECK(placed(loads, 2).imbalance == Approx(5.0 / 4));
  CHECK(placed(loads, 4).imbalance == Approx(4.0 / 2));  // an expert each
  CHECK(placed(loads, 1).imbalance == Approx(1));
}

TEST_CASE("copies go to the expert with most tokens for each of its copies") {
  // Of 8, 1, 3 and 1: 4 and 4, then three times 8/3: 3, 8/3, 8/3 | 8/3, 1, 1 as they are packed in turn: 3 + 1 + 8/3
  // against 8/3 + 8/3 + 1, of 13/2 on the mean. As numbered: 8/2, 1/2, 3 | 1, 8/2, 1/2.
  const MeasuredLoads loads("", {{8, 1, 3, 1}});
  CHECK(placed(loads, 2, 2).by_number == Approx(7.5 / 6.5));
  CHECK(placed(loads, 2, 2).imbalance == Approx((3 + 1 + 8.0 / 3) / 6.5));
  // As many copies as experts, all of the first: 12/5 and three of 1 on 4 devices, two each.
  const MeasuredLoads one("", {{12, 1, 1, 1}});
  CHECK(placed(one, 4, 4).imbalance == Approx(2 * 12.0 / 5 / (15.0 / 4)));
}

TEST_CASE("of layers that differ imbalance is the mean, as their times add up") {
  // 2 of 1 on the mean as numbered in the one, 1 in the other.
  const MeasuredLoads loads("", {{2, 2, 0.0001, 0.0001}, {1, 1, 1, 1}});
  CHECK(placed(loads, 2).by_number == Approx((2 + 1) / 2.0).epsilon(1e-3));
  CHECK(placed(loads, 2).imbalance == Approx(1).epsilon(1e-3));
}

TEST_CASE("the loads of a device are the most of any") {
  // Shares of 1/2, 1/4, 1/8 and 1/8. Of two tokens a device with 1/2 and 1/8 reaches 3/4 + 15/64 of its experts, the
  // other one 7/16 + 15/64.
  const MeasuredLoads loads("", {{4, 2, 1, 1}});
  CHECK(placed(loads, 2).load(2).active == Approx(3.0 / 4 + 15.0 / 64));
  // Of 64 tokens 32 are two tiles of 16 and half a one more, 8 are one; of the other device 16 are 1.5.
  CHECK(placed(loads, 2).load(64).tiles.front() == Approx(2.5 + 1).epsilon(1e-3));
  // A token is sent to the first with chance 1 - 1/2 x 7/8, to the other one with 1 - 3/4 x 7/8.
  CHECK(placed(loads, 2).reached == Approx((9.0 / 16) / ((9.0 / 16 + 11.0 / 32) / 2)));
}

TEST_CASE("experts that are all alike are placed as if nothing had been measured") {
  const MeasuredLoads loads("", Rows(3, std::vector<double>(64, 7)));
  for (const std::int64_t ranks : {1, 2, 8, 64}) {
    const Placement& even = loads.placed(4, ranks, 0);
    CHECK(even.imbalance == Approx(1));
    CHECK(even.by_number == Approx(1));
    CHECK(even.reached == Approx(1));
    for (const std::int64_t tokens : {1, 5, 300}) {
      const ExpertLoad its = even.load(tokens);
      const ExpertLoad expected = expert_load({.exponent = 0}, 64, 4, tokens) / static_cast<double>(ranks);
      CHECK(its.active == Approx(expected.active));
      for (std::size_t i = 0; i < kTileRows.size(); ++i) CHECK(its.tiles[i] == Approx(expected.tiles[i]));
    }
  }
}

TEST_CASE("a placement is never worse than none, and no better than even") {
  std::mt19937 random(7);
  const int cases = test::cases(300);
  for (int i = 0; i < cases; ++i) {
    const auto ranks = static_cast<std::int64_t>(1 + random() % 8);
    const auto copies = ranks * static_cast<std::int64_t>(random() % 3);
    Rows rows(1 + random() % 3, std::vector<double>(static_cast<std::size_t>(ranks) * (1 + random() % 6)));
    for (std::vector<double>& row : rows) {
      for (double& load : row) load = std::exp(static_cast<double>(random() % 700) / 100);
    }
    const std::int64_t picks = 1 + static_cast<std::int64_t>(random() % rows[0].size());
    for (std::vector<double>& row : rows) row.resize(rows[0].size(), 1);
    const MeasuredLoads loads("", rows);
    const Placement& placement = loads.placed(static_cast<double>(picks), ranks, copies);
    CHECK(placement.imbalance <= placement.by_number * (1 + 1e-12));
    CHECK(placement.imbalance >= 1 - 1e-12);
    CHECK(placement.reached >= 1 - 1e-12);
    // The most of any device is at least the mean, and at most what a device holds.
    const double tokens = static_cast<double>(1 + random() % 1000);
    const ExpertLoad load = placement.load(static_cast<std::int64_t>(tokens));
    CHECK(load.active <= static_cast<double>(rows[0].size() + static_cast<std::size_t>(copies)) /
                             static_cast<double>(ranks) * (1 + 1e-12));
    CHECK(load.active >= std::min(1.0, static_cast<double>(picks) / static_cast<double>(ranks)) * (1 - 1e-9));
    for (std::size_t t = 0; t < kTileRows.size(); ++t) CHECK(load.tiles[t] >= load.active * (1 - 1e-12));
  }
}

TEST_CASE("a step takes the rows, the experts and the tokens of the busiest device") {
  const model::Decoder m = model::load_decoder("mixtral-8x7b");
  Execution e;
  e.model = &m;
  e.weights = model::uniform_layout(m, model::parse_weight_scheme("bf16"));
  const auto sizes = [&](const Plan& plan, const MeasuredLoads* loads) {
    e.plan = plan;
    e.routing = {.balanced = loads == nullptr, .exponent = 0, .measured = loads};
    const SequenceGroup step{512, 1, 100};
    Graph graph;
    build_step(e, {&step, 1}, Part::all, graph);
    std::array<double, 3> found = {};
    for (const Op& op : graph) {
      if (op.tag == Tag::experts_down) found[0] = static_cast<double>(std::get<Gemm>(op.body).m);
      if (op.tag == Tag::experts_down) found[1] = std::get<Gemm>(op.body).weight_matrices;
      if (op.tag == Tag::experts_dispatch) found[2] = std::get<Collective>(op.body).rows;
    }
    return found;
  };
  const MeasuredLoads even("", {std::vector<double>(8, 3)});
  // A token has two experts. With 6, 2 and six of 1 of 14: 12/14, 4/14 and 2/14. Of two devices as packed the first has
  // 6 and three of 1, 9 of 7 on the mean.
  const MeasuredLoads skewed("", {{6, 2, 1, 1, 1, 1, 1, 1}});
  for (const Plan& plan : {Plan{.tensor = 2, .expert = 2}, Plan{.expert = 2, .data = 2}}) {
    const auto plain = sizes(plan, nullptr);
    const auto alike = sizes(plan, &even);
    CHECK(alike[0] == plain[0]);
    CHECK(alike[1] == Approx(plain[1]));
    CHECK(alike[2] == Approx(plain[2]));
    const auto busy = sizes(plan, &skewed);
    CHECK(busy[0] == std::ceil(plain[0] * 9 / 7));
    CHECK(busy[1] == Approx(4).epsilon(1e-6));  // of so many tokens every one
  }
  // A token has one of the first four with 1 - (2/14) (12/14)^3 and of the others with 1 - (10/14) (12/14)^3, whose
  // mean stands for what is sent without a file.
  const double first = 1 - 2.0 / 14 * std::pow(12.0 / 14, 3);
  const double other = 1 - 10.0 / 14 * std::pow(12.0 / 14, 3);
  const double plain = sizes({.expert = 2, .data = 2}, nullptr)[2];
  const double most = 2 * 512.0;  // every token to both devices
  CHECK(sizes({.expert = 2, .data = 2}, &skewed)[2] == Approx(std::min(most, plain * first / ((first + other) / 2))));
}

}  // namespace
}  // namespace llmperf::graph::expert_placement_test
