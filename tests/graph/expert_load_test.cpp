#include "graph/expert_load.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "catch.h"

namespace llmperf::graph::expert_load_test {
namespace {

constexpr Popularity kBalanced{.balanced = true};
Popularity law(double exponent) { return {.exponent = exponent}; }

TEST_CASE("a popularity is read as it is written") {
  CHECK(to_text(Popularity{}) == "power-law:0.8");
  CHECK(to_text(kBalanced) == "balanced");
  CHECK(parse_popularity("balanced") == kBalanced);
  CHECK(parse_popularity("power-law:0.8") == Popularity{});
  CHECK(parse_popularity("power-law:1.2") == law(1.2));
  for (const char* text : {"", "power-law", "power-law:", "power-law:-1", "power-law:11", "power-law:x", "even"}) {
    CHECK_FALSE(parse_popularity(text));
  }
}

TEST_CASE("rows dealt round robin differ by one at most") {
  // 40 rows to 16 experts: eight of 3, eight of 2, each a tile of any height.
  const ExpertLoad few = expert_load(kBalanced, 16, 2, 20);
  CHECK(few.active == 16);
  CHECK(few.tiles == std::array<double, 4>{16, 16, 16, 16});
  // Three rows reach three.
  CHECK(dealt_load(16, 3).active == 3);
  CHECK(dealt_load(16, 3).tiles.front() == 3);
  // 130 rows to two: 65 each; to four: 33, 33, 32, 32.
  CHECK(dealt_load(2, 130).tiles == std::array<double, 4>{10, 6, 4, 2});
  CHECK(dealt_load(4, 130).tiles == std::array<double, 4>{10, 6, 4, 4});
  CHECK((dealt_load(4, 130) / 2).active == 2);
  CHECK((dealt_load(4, 130) / 2).tiles.front() == 5);
}

TEST_CASE("popular experts get more of the tokens, so that fewer are reached") {
  // Of two experts in proportion 2 : 1 a token picks one: p = 2/3 and 1/3. Three tokens miss them with chance 1/27 and
  // 8/27. Of 96 tokens they get 64 and 32: 4 + 2 tiles of 16 rows and half a one more each.
  CHECK(expert_load(law(1), 2, 1, 3).active == Approx(2 - 9.0 / 27));
  CHECK(expert_load(law(1), 2, 1, 96).tiles.front() == Approx(4.5 + 2.5));
  // In proportion 4 : 1 : 4/9 of two picks the first would get 72/49, and gets one; the others share the second pick as
  // 9 : 4.
  CHECK(expert_load(law(2), 3, 2, 2).active == Approx(1 + (1 - 16.0 / 169) + (1 - 81.0 / 169)));
  // All alike: E (1 - (1 - k/E)^n).
  CHECK(expert_load(law(0), 8, 2, 2).active == Approx(8 * (1 - 0.5625)));
  CHECK(expert_load(law(0), 256, 8, 32).active == Approx(256 * (1 - std::pow(1 - 8.0 / 256, 32))));
  // The default, and what measurements are made at: 117-129 and 210 (docs/formulas.md).
  CHECK(expert_load({}, 256, 8, 32).active == Approx(120).epsilon(0.01));
  CHECK(expert_load({}, 256, 8, 128).active == Approx(220).epsilon(0.01));
}

TEST_CASE("of devices that share experts the busiest gets more than the mean") {
  // Of two experts alike on two devices one token picks one, which is on one of them whole.
  CHECK(expert_load(law(0), 2, 1, 1, 2).active == 1);
  // Of 64 experts alike 4 are picked: a variance of 1/16 x 15/16 each, 32 of them on a device, and two normals are .564
  // of a deviation on the larger side.
  CHECK(expert_load(law(0), 64, 4, 1, 2).active ==
        Approx(2 + 0.564 * std::sqrt(15.0 / 256 * 32 * 64 / 63)).epsilon(1e-6));
  CHECK(expert_load(law(0), 64, 4, 1, 2).imbalance == Approx(expert_load(law(0), 64, 4, 1, 2).active / 2));
  // Where all are alike and tokens many, nothing is left to chance; one device has all.
  CHECK(expert_load(law(0), 64, 4, 1LL << 50, 8).imbalance == Approx(1).epsilon(1e-5));
  CHECK(expert_load(law(0), 64, 4, 1LL << 50, 8).active == Approx(8));
  CHECK(expert_load({}, 64, 4, 100, 1).active == expert_load({}, 64, 4, 100).active);
  CHECK(expert_load({}, 64, 4, 100, 1).imbalance == 1);
  // docs/formulas.md.
  CHECK(expert_load({}, 256, 8, 32, 8).active == Approx(19).epsilon(0.01));
  CHECK(expert_load({}, 256, 8, 4096, 8).imbalance == Approx(1.50).epsilon(0.01));
  CHECK(expert_load({}, 256, 8, 4096, 32).imbalance == Approx(2.46).epsilon(0.01));
  CHECK(expert_load({}, 256, 8, 4096, 64).imbalance == Approx(3.34).epsilon(0.01));
  // Dealt round robin a device has its share, and no less than the one expert of its only row.
  CHECK(expert_load(kBalanced, 16, 2, 20, 4).active == 4);
  CHECK(expert_load(kBalanced, 256, 8, 1, 64).active == 1);
}

TEST_CASE("of devices whose experts were levelled the busiest is so by chance alone") {
  for (const std::int64_t devices : {2, 8, 32}) {
    for (const std::int64_t tokens : {1, 8, 64, 4096}) {
      INFO(devices << " " << tokens);
      const ExpertLoad all = expert_load({}, 256, 8, tokens);
      const ExpertLoad by_law = expert_load({}, 256, 8, tokens, devices);
      const ExpertLoad levelled = expert_load({}, 256, 8, tokens, devices, true);
      CHECK(levelled.active >= std::min(1.0, all.active));
      CHECK(levelled.active >= all.active / static_cast<double>(devices));
      CHECK(levelled.active <= by_law.active * (1 + 1e-12));
      CHECK(levelled.imbalance == 1);
      CHECK(by_law.imbalance > 1);
    }
  }
}

// The most of any device, in the mean of many draws: experts are dealt to devices at random, and every token picks as
// many different ones as it must (at equal distances along the sum of their chances, in random order).
TEST_CASE("the busiest device is that of draws") {
  std::mt19937_64 random(11);
  constexpr std::size_t kExperts = 64;
  constexpr std::int64_t kPicks = 4;
  for (const double exponent : {0.0, 0.5, 0.8}) {
    std::vector<double> weights(kExperts);
    for (std::size_t r = 0; r < kExperts; ++r) weights[r] = std::pow(static_cast<double>(r + 1), -exponent);
    const std::vector<double> picked = chances_of(weights, static_cast<double>(kPicks));
    for (const std::int64_t devices : {2, 8, 16}) {
      for (const std::int64_t tokens : {2, 16, 128}) {
        constexpr int kDraws = 400;
        double rows = 0;
        double active = 0;
        std::vector<std::size_t> order(kExperts);
        std::iota(order.begin(), order.end(), std::size_t{0});
        for (int draw = 0; draw < kDraws; ++draw) {
          std::vector<double> counts(kExperts, 0);
          for (std::int64_t token = 0; token < tokens; ++token) {
            std::shuffle(order.begin(), order.end(), random);
            double next = std::uniform_real_distribution<double>(0, 1)(random);
            double sum = 0;
            for (const std::size_t e : order) {
              sum += picked[e];
              if (sum <= next) continue;
              counts[e] += 1;
              next += 1;
            }
          }
          std::shuffle(order.begin(), order.end(), random);
          std::vector<double> its_rows(static_cast<std::size_t>(devices));
          std::vector<double> its_active(its_rows);
          for (std::size_t i = 0; i < kExperts; ++i) {
            const std::size_t device = i * its_rows.size() / kExperts;
            its_rows[device] += counts[order[i]];
            its_active[device] += std::min(counts[order[i]], 1.0);
          }
          rows += *std::max_element(its_rows.begin(), its_rows.end()) / kDraws;
          active += *std::max_element(its_active.begin(), its_active.end()) / kDraws;
        }
        const ExpertLoad load = expert_load(law(exponent), kExperts, kPicks, tokens, devices);
        INFO(exponent << " " << devices << " " << tokens);
        // Eight rows on 8 or 16 devices are not normal.
        const double within = devices > 2 && tokens == 2 ? 0.15 : 0.05;
        CHECK(load.active == Approx(active).epsilon(within));
        // The head of the law is left out: with 0.8 an expert has 2 of 3 tokens, and with 0.5 a quarter of them, which
        // makes sums lopsided.
        const double mean = static_cast<double>(kPicks * tokens) / static_cast<double>(devices);
        CHECK(load.imbalance * mean < rows * (1 + within));
        CHECK(load.imbalance * mean > rows * (exponent > 0.6 ? 0.7 : exponent > 0 ? 0.85 : 1 - within));
      }
    }
  }
}

TEST_CASE("one token reaches exactly its experts, many tokens reach all of them, more tokens never fewer") {
  for (const double exponent : {0.0, 0.8, 1.2, 3.0}) {
    for (const std::int64_t count : {1, 2, 8, 64, 256}) {
      for (std::int64_t each = 1; each <= count; each *= 2) {
        CHECK(expert_load(law(exponent), count, each, 1).active == Approx(static_cast<double>(each)).epsilon(1e-12));
        CHECK(expert_load(law(exponent), count, each, 1LL << 50).active == Approx(static_cast<double>(count)));
        ExpertLoad last;
        for (std::int64_t tokens = 1; tokens < 5000; tokens *= 3) {
          const ExpertLoad now = expert_load(law(exponent), count, each, tokens);
          CHECK(now.active >= last.active * (1 - 1e-12));
          CHECK(now.active <= static_cast<double>(std::min(count, each * tokens)) * (1 + 1e-12));
          CHECK(now.active <= expert_load(law(0), count, each, tokens).active * (1 + 1e-12));
          for (std::size_t i = 0; i < kTileRows.size(); ++i) {
            CHECK(now.tiles[i] >= now.active);
            CHECK(now.tiles[i] * kTileRows[i] >= static_cast<double>(each * tokens) * (1 - 1e-12));
            CHECK(now.tiles[i] >= last.tiles[i] * (1 - 1e-12));
          }
          last = now;
        }
      }
    }
  }
}

TEST_CASE("shares drawn from a density give the loads that kernels are measured at") {
  CHECK(drawn_load(1.01, 256, 8, 32).active == Approx(127).epsilon(0.01));
  CHECK(drawn_load(1.2, 256, 8, 32).active == Approx(115).epsilon(0.01));
  CHECK(drawn_load(1.2, 256, 8, 128).active == Approx(206).epsilon(0.01));
  CHECK(drawn_load(1.2, 8, 2, 1).active == Approx(2));
  // All alike on [0.01, 2], a row each: counts are even on [a, b] = [0.00995, 1.99005], and lose (b - 1)^2 / 2 (b - a)
  // to those that get a second.
  CHECK(drawn_load(0, 256, 8, 32).active == Approx(256 * (1 - 0.24751)).epsilon(1e-4));
  for (const double exponent : {1.0, 1.01, 1.2, 2.0}) {
    for (const std::int64_t tokens : {1, 2, 4, 31, 32, 33, 500, 20000}) {
      const ExpertLoad load = drawn_load(exponent, 128, 4, tokens);
      CHECK(load.active <= 128);
      CHECK(load.active > 0);
      CHECK(load.tiles[0] >= load.tiles[1]);
      CHECK(load.tiles[3] >= load.active);
    }
  }
}

// Which is what collectors of kernels' timings put on the one device that they have.
TEST_CASE("of a draw the device with most rows has more of all") {
  // 8, 6, 4 and 2 rows: every expert on a device of its own, the first decides.
  const ExpertLoad first = drawn_load(0, 4, 2, 10, 4);
  CHECK(first.imbalance == Approx(8 / 5.0));
  CHECK(first.active == 1);
  // On two devices the first is in company of one of the others, of 4 on the mean: 12; and sums of two with a variance
  // of 5 are expected to have 10 + .564 sqrt(5 x 2 x 4 / 3) on the larger side.
  CHECK(drawn_load(0, 4, 2, 10, 2).imbalance == Approx((10 + 0.564 * std::sqrt(40 / 3.0)) / 10));
  for (const double exponent : {1.01, 1.2}) {
    for (const std::int64_t tokens : {1, 2, 16, 500, 20000}) {
      double last = 1;
      for (const std::int64_t devices : {1, 2, 8, 32, 128}) {
        const ExpertLoad load = drawn_load(exponent, 128, 4, tokens, devices);
        CHECK(load.imbalance >= last * (1 - 1e-12));
        CHECK(load.active <= 128.0 / static_cast<double>(devices) + 1e-9);
        CHECK(load.active >= (devices > 1 ? 1 : 0));
        CHECK(load.tiles[0] >= load.active);
        last = load.imbalance;
      }
    }
  }
}

TEST_CASE("a draw of counts has all rows, no expert more than the tokens, and the load of its density") {
  // All alike on [1, 8]: shares of 7.125, 5.375, 3.625 and 1.875 of 18 are 7.9, 6.0, 4.0 and 2.1 of 20 rows.
  CHECK(drawn_counts(0, 4, 2, 10) == std::vector<std::int64_t>{8, 6, 4, 2});
  CHECK(drawn_counts(1.2, 3, 3, 5) == std::vector<std::int64_t>{5, 5, 5});
  for (const double exponent : {0.0, 1.0, 1.01, 1.2, 2.0}) {
    for (const std::int64_t tokens : {1, 2, 4, 31, 32, 33, 500, 20000}) {
      const std::vector<std::int64_t> counts = drawn_counts(exponent, 128, 4, tokens);
      INFO(exponent << " " << tokens);
      CHECK(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == 4 * tokens);
      CHECK(*std::max_element(counts.begin(), counts.end()) <= tokens);
      CHECK(*std::min_element(counts.begin(), counts.end()) >= 0);
      const auto active = std::count_if(counts.begin(), counts.end(), [](std::int64_t c) { return c > 0; });
      CHECK(std::abs(static_cast<double>(active) - drawn_load(exponent, 128, 4, tokens).active) < 1);
    }
  }
}

}  // namespace
}  // namespace llmperf::graph::expert_load_test
