#include "graph/op.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "catch.h"

namespace llmperf::graph::op_test {
namespace {

TEST_CASE("collectives and axes have the names that people use") {
  CHECK(name(CollectiveKind::all_reduce) == "all-reduce");
  CHECK(name(CollectiveKind::all_to_all) == "all-to-all");
  CHECK(name(CollectiveKind::ring_pass) == "ring pass");
  CHECK(name(CollectiveKind::broadcast) == "broadcast");
  CHECK(name(Axis::tensor) == "tensor");
  CHECK(name(Axis::tensor_columns) == "tensor columns");
  CHECK(name(Axis::pipeline) == "pipeline");
}

TEST_CASE("a token reaches a part of the experts unless all that it picks are elsewhere") {
  // Two of eight: both of the six others are 15 of 28 pairs.
  const Routing plain{.experts = 8, .per_token = 2};
  CHECK(reached(plain, 1) == Approx(2.0 / 8));
  CHECK(reached(plain, 2) == Approx(1 - 15.0 / 28));
  CHECK(reached(plain, 7) == 1);
  CHECK(reached(plain, 8) == 1);
  // Two of the experts of two of four pairs: half of the tokens pick a pair, and of their four experts one pair of six
  // is the other.
  const Routing limited{.experts = 8, .per_token = 2, .groups = 4, .groups_per_token = 2};
  CHECK(reached(limited, 1) == Approx(2.0 / 8));
  CHECK(reached(limited, 2) == Approx(1.0 / 2 * 5 / 6));
  CHECK(reached(limited, 8) == 1);
}

// The share of `tokens` that reach the first `held` experts, drawn as the router picks them.
double drawn(const Routing& r, std::int64_t held, int tokens, std::mt19937_64& engine) {
  const std::int64_t size = r.experts / r.groups;
  std::vector<std::int64_t> groups(static_cast<std::size_t>(r.groups));
  std::iota(groups.begin(), groups.end(), 0);
  int count = 0;
  for (int token = 0; token < tokens; ++token) {
    std::shuffle(groups.begin(), groups.end(), engine);
    std::vector<std::int64_t> experts;
    for (std::int64_t g = 0; g < r.groups_per_token; ++g) {
      for (std::int64_t i = 0; i < size; ++i) experts.push_back(groups[static_cast<std::size_t>(g)] * size + i);
    }
    std::shuffle(experts.begin(), experts.end(), engine);
    count += std::any_of(experts.begin(), experts.begin() + r.per_token, [&](std::int64_t e) { return e < held; });
  }
  return static_cast<double>(count) / tokens;
}

TEST_CASE("the chance is what drawing experts at random comes to") {
  std::mt19937_64 engine(19);
  constexpr int kTokens = 20000;
  for (const Routing& r : {Routing{.experts = 256, .per_token = 8},
                           Routing{.experts = 256, .per_token = 8, .groups = 8, .groups_per_token = 4},  // DeepSeek-V3
                           Routing{.experts = 160, .per_token = 6, .groups = 8, .groups_per_token = 3},  // DeepSeek-V2
                           Routing{.experts = 64, .per_token = 6}}) {
    for (const std::int64_t held : {1, 5, 8, 32, 50, 64}) {
      CAPTURE(r.experts, r.groups, held);
      const double chance = reached(r, held);
      // Five standard deviations of the share of kTokens.
      const double noise = 5 * std::sqrt(chance * (1 - chance) / kTokens);
      CHECK(std::abs(drawn(r, held, kTokens, engine) - chance) <= noise);
    }
  }
}

}  // namespace
}  // namespace llmperf::graph::op_test
