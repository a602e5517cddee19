// How many tokens the experts of a layer get: how many experts get any, whose weights are read, and how many tiles of
// rows a grouped product has. The derivation is in expert_load.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmperf::graph {

// Rows of the tiles that grouped products are built with.
inline constexpr std::array<double, 4> kTileRows = {16, 32, 64, 128};

class MeasuredLoads;  // expert_placement.h

// How tokens choose experts: dealt round robin, as somebody measured, or the r-th most popular of them in proportion to
// r^-exponent (0: all alike). At 0.8, with 256 experts and 8 per token, 32 tokens reach 120 experts and 128 tokens 220:
// what skewed routers do (measurements of grouped products are made at 117-129 and 206-210) and what no even draw does
// (163, 252).
struct Popularity {
  bool balanced = false;
  double exponent = 0.8;
  const MeasuredLoads* measured = nullptr;  // must outlive everything that asks it
  bool operator==(const Popularity&) const = default;
};
// "balanced", "power-law:0.8".
std::string to_text(const Popularity& popularity);
std::optional<Popularity> parse_popularity(std::string_view text);

// Of all experts, or of those of the device that gets most of each, where devices share them.
struct ExpertLoad {
  double active = 1;                                // experts that get tokens
  std::array<double, kTileRows.size()> tiles = {};  // of rows, over these experts, by kTileRows
  double imbalance = 1;                             // rows over the mean of the devices
  ExpertLoad operator/(double devices) const;       // of one of as many devices that get the same
};

// The chances with which tokens pick experts, the most popular first, and what follows from them.
class Chances {
 public:
  explicit Chances(std::vector<double> picked);
  ExpertLoad load(std::int64_t tokens) const;
  // Of the busiest of `devices` that hold as many experts each, numbered without regard to how popular they are; or
  // `levelled`, so that all have alike of them and differ by chance alone.
  ExpertLoad busiest(std::int64_t tokens, std::int64_t devices, bool levelled) const;
  double reached() const;  // the chance that a token picks any

 private:
  std::vector<double> picked_;
  std::vector<double> left_;          // logarithm of the chance that it does not
  std::vector<double> before_ = {0};  // sums of `picked_` of all more popular ones
};
// Of experts as popular as `weights`, of which a token picks `per_token`.
std::vector<double> chances_of(const std::vector<double>& weights, double per_token);

// Expected, when each of `tokens` tokens picks `per_token` different ones of `experts`; of the busiest of `devices`.
ExpertLoad expert_load(const Popularity& popularity, std::int64_t experts, std::int64_t per_token, std::int64_t tokens,
                       std::int64_t devices = 1, bool levelled = false);
// Of `rows` rows that are dealt round robin.
ExpertLoad dealt_load(std::int64_t experts, std::int64_t rows, std::int64_t devices = 1);
// Of measurements whose experts' shares were drawn from a density x^-exponent; of several devices that with most rows.
ExpertLoad drawn_load(double exponent, std::int64_t experts, std::int64_t per_token, std::int64_t tokens,
                      std::int64_t devices = 1);
// Rows of each expert in a draw that is as even as that density: the most popular expert first.
std::vector<std::int64_t> drawn_counts(double exponent, std::int64_t experts, std::int64_t per_token,
                                       std::int64_t tokens);

}  // namespace llmperf::graph
