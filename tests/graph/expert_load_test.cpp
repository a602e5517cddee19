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
  // Two experts alike on two devices, of which one token picks one: half a row on the mean with a variance of a
  // quarter, and two normals are .564 on the larger side. Somebody has the one that is picked, whole.
  const ExpertLoad one = expert_load(law(0), 2, 1, 1, 2);
  CHECK(one.imbalance == Approx((0.5 + 0.564 * 0.5) / 0.5));
  CHECK(one.active == 1);
  // Where all are alike and tokens many, nothing is left to chance; one device has all.
  CHECK(expert_load(law(0), 64, 4, 1LL << 50, 8).imbalance == Approx(1).epsilon(1e-5));
  CHECK(expert_load(law(0), 64, 4, 1LL << 50, 8).active == Approx(8));
  CHECK(expert_load({}, 64, 4, 100, 1).active == expert_load({}, 64, 4, 100).active);
  CHECK(expert_load({}, 64, 4, 100, 1).imbalance == 1);
  // docs/formulas.md. Balancing (EPLB) made prefill 1.49 times as fast on 32 devices and decode 2.54 times on 72.
  CHECK(expert_load({}, 256, 8, 32, 8).active == Approx(18.8).epsilon(0.01));
  CHECK(expert_load({}, 256, 8, 4096, 8).imbalance == Approx(1.47).epsilon(0.01));
  CHECK(expert_load({}, 256, 8, 4096, 32).imbalance == Approx(2.44).epsilon(0.01));
  CHECK(expert_load({}, 256, 8, 4096, 72).imbalance == Approx(3.51).epsilon(0.01));
  // Dealt round robin a device has its share, and no less than the one expert of its only row.
  CHECK(expert_load(kBalanced, 16, 2, 20, 4).active == 4);
  CHECK(expert_load(kBalanced, 256, 8, 1, 64).active == 1);
}

// The most of any device, in the mean of many draws: experts are dealt to devices at random, tokens pick them by
// chance. Two rows on 16 devices are not normal, and an eighth short.
TEST_CASE("the busiest device is that of draws") {
  std::mt19937_64 random(11);
  constexpr std::size_t kExperts = 64;
  constexpr double kPicks = 4;
  for (const double exponent : {0.0, 0.5, 0.8}) {
    std::vector<double> weights(kExperts);
    for (std::size_t r = 0; r < kExperts; ++r) weights[r] = std::pow(static_cast<double>(r + 1), -exponent);
    std::vector<double> picked = chances_of(weights, kPicks);
    for (const std::int64_t devices : {2, 8, 16}) {
      for (const std::int64_t tokens : {2, 16, 128}) {
        constexpr int kDraws = 600;
        double rows = 0;
        double active = 0;
        for (int draw = 0; draw < kDraws; ++draw) {
          std::shuffle(picked.begin(), picked.end(), random);
          const std::size_t held = kExperts / static_cast<std::size_t>(devices);
          double most_rows = 0;
          double most_active = 0;
          for (std::size_t first = 0; first < kExperts; first += held) {
            double its_rows = 0;
            double its_active = 0;
            for (std::size_t e = first; e < first + held; ++e) {
              const auto count =
                  static_cast<double>(std::binomial_distribution<std::int64_t>(tokens, picked[e])(random));
              its_rows += count;
              its_active += std::min(count, 1.0);
            }
            most_rows = std::max(most_rows, its_rows);
            most_active = std::max(most_active, its_active);
          }
          rows += most_rows / kDraws;
          active += most_active / kDraws;
        }
        const ExpertLoad load =
            expert_load(law(exponent), kExperts, static_cast<std::int64_t>(kPicks), tokens, devices);
        INFO(exponent << " " << devices << " " << tokens);
        CHECK(load.active == Approx(active).epsilon(0.13));
        // One expert that most tokens pick makes sums lopsided, which is left out of account on purpose.
        const double mean = kPicks * static_cast<double>(tokens) / static_cast<double>(devices);
        if (exponent < 0.6) CHECK(load.imbalance * mean == Approx(rows).epsilon(0.13));
        CHECK(load.imbalance * mean < rows * 1.05);
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
  // On two devices the first is in company of one of the others, of 4 on the mean: 12, which is more than what sums of
  // two differ by, 10 + .564 sqrt(5 x 2 x 2 / 3) with a variance of 5.
  CHECK(drawn_load(0, 4, 2, 10, 2).imbalance == Approx(12 / 10.0));
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
