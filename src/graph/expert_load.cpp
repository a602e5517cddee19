// Popular experts. A token picks the r-th of E experts with chance
//
//   p_r = min(1, s r^-A),  s such that the chances add up to k, the experts that a token picks
//
// independently of other tokens, so that of n tokens it gets some with chance 1 - (1 - p_r)^n, and n p_r of them on
// average. With A = 0 that is the even draw, E (1 - (1 - k/E)^n). A count c that is large beside the rows b of a tile
// fills c / b tiles and half a one more, and one that gets any at least one:
//
//   tiles = sum over experts of 1 - (1 - p_r)^n + max(0, n p_r - b/2) / b
//
// Round robin, the first experts get one row more than the others: with R = q E + r rows, r of them q + 1.
//
// Drawn (the workloads that kernels of ai-dynamo/aiconfigurator are measured with). Shares x of experts are drawn from
// a density x^-A, on [1, 0.8 n] or, where rows are fewer than experts, on [0.01, 2], scaled to n k rows in all, and no
// expert gets more than n. With counts c = min(s x, n) that means E E[c] = n k, and as counts are whole,
//
//   active = E E[min(c, 1)],   tiles = active + E E[(c - b/2)+] / b.
//
// One draw that stands for all takes the shares at the middles of E equal parts of the density, from the top down, and
// rounds the sums of counts so far: each count is then off by less than one and their sum is right.
//
// Devices. Of R devices that share the experts a step waits for the one with most of a number x that every expert has
// (rows, tiles, 1 if it gets any). A device holds h = E / R experts, whichever, so that its sum has the mean h m and
// the variance v h (E - h) / (E - 1), with m and v those of x over experts; and as all devices' sums are E m, the most
// of them is that of independent ones of R / (R - 1) times the variance:
//
//   h m + z(R) sqrt(v h E / (E - 1))
//
// with z(R) the expected maximum of R standard normals. Of 256 experts with 8 per token 32 tokens reach 15 experts of a
// mean device of eight and 19 of the busiest, and the rows of long prompts are 1.5 times the mean there, 2.5 times of
// 32 devices and 3.3 times of 64. DeepSeek's balancing of experts (EPLB), which removes that, made prefill on 32
// devices 1.49 times and decode on 72 devices 2.54 times as fast (lmsys.org/blog/2025-05-05-large-scale-ep). Where
// experts are levelled so, v is what chance leaves of it, the mean over experts of their own variance.
//
// Of a draw one expert alone may decide, whose device has x_1 + (h - 1) (E m - x_1) / (E - 1). The head of the law of
// popularity is not taken at its word so, for it has three of four tokens pick the first of 256 experts; with it the
// rows would be 1.65 times the mean of eight devices.
#include "graph/expert_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "base/integer.h"
#include "base/maths.h"
#include "base/number.h"
#include "graph/expert_placement.h"

namespace llmperf::graph {
namespace {

constexpr std::string_view kBalanced = "balanced";
constexpr std::string_view kPowerLaw = "power-law:";
constexpr double kMostExponent = 10;

// Of a power law. Those of the last call stay, as builders of steps ask for the same again and again.
struct PowerLaw {
  double exponent = -1;
  std::int64_t experts = 0;
  std::int64_t per_token = 0;
  Chances chances{{}};
  // Of the last numbers of tokens that were asked for: a step of prompts and one of new tokens come in turn.
  struct Known {
    std::int64_t tokens = 0, devices = 0;
    bool levelled = false;
    ExpertLoad load = {};
  };
  std::array<Known, 4> loads = {};
  std::size_t next = 0;
};
PowerLaw& power_law(double exponent, std::int64_t experts, std::int64_t per_token) {
  thread_local PowerLaw known;
  if (known.exponent == exponent && known.experts == experts && known.per_token == per_token) return known;
  std::vector<double> weights(static_cast<std::size_t>(experts));
  for (std::size_t r = 0; r < weights.size(); ++r) weights[r] = maths::pow(static_cast<double>(r + 1), -exponent);
  known = {exponent, experts, per_token, Chances(chances_of(weights, d(per_token)))};
  return known;
}

// The expected maximum of as many standard normals; between powers of two by its logarithm.
double most_of_normals(double count) {
  constexpr std::array kMost = {0.0, 0.564, 1.029, 1.424, 1.766, 2.070, 2.344, 2.594, 2.825, 3.036, 3.234};
  const double at = std::min(maths::log2(count), static_cast<double>(kMost.size() - 1));
  const auto below = std::min(static_cast<std::size_t>(at), kMost.size() - 2);
  return kMost[below] + (at - static_cast<double>(below)) * (kMost[below + 1] - kMost[below]);
}

// Of a number that every expert has, what the device gets of it that gets most.
struct Spread {
  double sum = 0, squares = 0, largest = 0;
  double by_chance = 0;  // variances of the experts' own
  // Its expected value and square.
  void add(double value, double square) {
    sum += value;
    squares += square;
    by_chance += square - value * value;
    largest = std::max(largest, value);
  }
  double variance(double experts) const { return std::max(0.0, squares / experts - (sum / experts) * (sum / experts)); }
  double most(double experts, double devices, bool levelled = false) const {
    const double each = levelled ? by_chance / experts : variance(experts);
    const double apart = std::sqrt(each * experts / devices * experts / std::max(1.0, experts - 1));
    return sum / devices + most_of_normals(devices) * apart;
  }
  double with_largest(double experts, double devices) const {
    return largest + (experts / devices - 1) * (sum - largest) / std::max(1.0, experts - 1);
  }
};

// A density x^-A on [low, high].
class Density {
 public:
  Density(double exponent, double low, double high) : a_(exponent), low_(low), high_(high) {}
  double mean() const { return moment(2, low_) / moment(1, low_); }
  // E[(x - y)+].
  double over(double y) const {
    if (y >= high_) return 0;
    if (y <= low_) return mean() - y;
    return (moment(2, y) - y * moment(1, y)) / moment(1, low_);
  }
  // The x that a part `u` of the density is below.
  double below(double u) const {
    const double e = 1 - a_;
    if (std::abs(e) < 1e-6) return low_ * maths::pow(high_ / low_, u);
    return maths::pow((1 - u) * maths::pow(low_, e) + u * maths::pow(high_, e), 1 / e);
  }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  // The integral of x^(order - 1 - A) from y to the upper end.
  double moment(double order, double y) const {
    const double e = order - a_;
    return std::abs(e) < 1e-6 ? maths::log(high_ / y) : (maths::pow(high_, e) - maths::pow(y, e)) / e;
  }
  double a_, low_, high_;
};

Density density_of_shares(double exponent, double experts, double rows, double tokens) {
  constexpr double kFewestShares = 1.5;  // of a single token
  return rows > experts ? Density(exponent, 1, std::max(kFewestShares, 0.8 * tokens)) : Density(exponent, 0.01, 2);
}

// The x from which on an expert gets every token: its capped mean is a share k / E of it.
double first_capped(const Density& density, double share) {
  const auto left = [&](double y) { return density.mean() - density.over(y) - share * y; };
  double low = density.low();
  double high = density.high();
  if (left(high) >= 0) return high;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (left(middle) > 0 ? low : high) = middle;
  }
  return low;
}

// Of the device with most rows, of experts that get `counts`: it has more of other numbers as far as these go with
// rows.
ExpertLoad fullest(const std::vector<std::int64_t>& counts, double devices) {
  const double experts = d(static_cast<std::int64_t>(counts.size()));
  Spread rows;
  for (const std::int64_t count : counts) rows.add(d(count), d(count) * d(count));
  const double most = std::max(rows.most(experts, devices), rows.with_largest(experts, devices));
  const double more = most - rows.sum / devices;
  const double variance = rows.variance(experts);
  const auto with = [&](const auto& number) {
    double sum = 0;
    double product = 0;
    for (const std::int64_t count : counts) {
      sum += number(d(count));
      product += number(d(count)) * d(count);
    }
    const double together = product / experts - sum / experts * (rows.sum / experts);
    return sum / devices + (variance > 0 ? together / variance * more : 0);
  };
  ExpertLoad load{.active = std::clamp(with([](double count) { return std::min(count, 1.0); }), 1.0, experts / devices),
                  .imbalance = 1 + more / (rows.sum / devices)};
  for (std::size_t i = 0; i < kTileRows.size(); ++i) {
    load.tiles[i] = std::max(load.active, with([&](double count) { return std::ceil(count / kTileRows[i]); }));
  }
  return load;
}

}  // namespace

std::string to_text(const Popularity& p) {
  if (p.measured) return p.measured->name();
  return p.balanced ? std::string(kBalanced) : fmt::format("{}{}", kPowerLaw, format_significant(p.exponent));
}

std::optional<Popularity> parse_popularity(std::string_view text) {
  if (text == kBalanced) return Popularity{.balanced = true};
  if (!text.starts_with(kPowerLaw)) return std::nullopt;
  const std::optional<double> exponent = parse_double(text.substr(kPowerLaw.size()));
  if (!exponent || *exponent < 0 || *exponent > kMostExponent) return std::nullopt;
  return Popularity{.exponent = *exponent};
}

ExpertLoad ExpertLoad::operator/(double devices) const {
  ExpertLoad share = *this;
  share.active /= devices;
  for (double& count : share.tiles) count /= devices;
  return share;
}

std::vector<double> chances_of(const std::vector<double>& weights, double per_token) {
  std::vector<double> picked(weights.size());
  for (bool more = true; more;) {  // that every token picks
    more = false;
    double left = per_token;
    double rest = 0;
    for (std::size_t r = weights.size(); r-- > 0;) (picked[r] == 1 ? left : rest) += picked[r] == 1 ? -1 : weights[r];
    for (std::size_t r = 0; r < weights.size(); ++r) {
      if (picked[r] == 1) continue;
      picked[r] = left > 0 ? std::min(1.0, left / rest * weights[r]) : 0;
      more = more || picked[r] == 1;
    }
  }
  return picked;
}

Chances::Chances(std::vector<double> picked) : picked_(std::move(picked)) {
  for (const double p : picked_) {
    left_.push_back(maths::log(1 - p));
    before_.push_back(before_.back() + p);
  }
}

double Chances::reached() const { return 1 - maths::exp(std::accumulate(left_.begin(), left_.end(), 0.0)); }

ExpertLoad Chances::load(std::int64_t tokens) const {
  constexpr double kSurely = -40;  // exp() of it is nothing beside 1
  const double n = d(tokens);
  const auto likely = std::partition_point(left_.begin(), left_.end(), [&](double l) { return n * l < kSurely; });
  ExpertLoad load{.active = static_cast<double>(likely - left_.begin())};
  for (auto l = likely; l != left_.end(); ++l) load.active += 1 - maths::exp(n * *l);
  for (std::size_t i = 0; i < kTileRows.size(); ++i) {
    const double half = kTileRows[i] / 2 / n;
    const auto more = std::partition_point(picked_.begin(), picked_.end(), [&](double p) { return p > half; });
    const auto full = more - picked_.begin();  // experts that get more than half a tile
    load.tiles[i] = load.active + n * before_[static_cast<std::size_t>(full)] / kTileRows[i] - d(full) / 2;
  }
  return load;
}

ExpertLoad Chances::busiest(std::int64_t tokens, std::int64_t devices, bool levelled) const {
  if (devices == 1) return load(tokens);
  const double n = d(tokens);
  Spread rows;
  Spread active;
  std::array<Spread, kTileRows.size()> tiles;
  for (std::size_t e = 0; e < picked_.size(); ++e) {
    const double p = picked_[e];
    const double some = 1 - maths::exp(n * left_[e]);
    if (some <= 0) continue;
    rows.add(n * p, n * p * (1 - p) + n * p * n * p);
    active.add(some, some);
    for (std::size_t i = 0; i < kTileRows.size(); ++i) {
      const double count = some + std::max(0.0, n * p / kTileRows[i] - 0.5);
      tiles[i].add(count, count * count / some);
    }
  }
  const auto experts = static_cast<double>(picked_.size());
  const auto most_of = [&](const Spread& of) { return of.most(experts, d(devices), levelled); };
  const double least = std::min(1.0, active.sum);  // that somebody has
  ExpertLoad most{.active = std::clamp(most_of(active), least, std::max(least, experts / d(devices))),
                  .imbalance = levelled ? 1 : most_of(rows) / (rows.sum / d(devices))};
  for (std::size_t i = 0; i < kTileRows.size(); ++i) most.tiles[i] = std::max(most.active, most_of(tiles[i]));
  return most;
}

ExpertLoad expert_load(const Popularity& popularity, std::int64_t experts, std::int64_t per_token, std::int64_t tokens,
                       std::int64_t devices, bool levelled) {
  if (popularity.measured) return popularity.measured->placed(d(per_token), devices, 0).load(tokens);
  if (popularity.balanced) return dealt_load(experts, tokens * per_token, devices);
  PowerLaw& law = power_law(popularity.exponent, experts, per_token);
  for (const PowerLaw::Known& known : law.loads) {
    if (known.tokens == tokens && known.devices == devices && known.levelled == levelled) return known.load;
  }
  PowerLaw::Known& next = law.loads[law.next++ % law.loads.size()];
  next = {tokens, devices, levelled, law.chances.busiest(tokens, devices, levelled)};
  return next.load;
}

ExpertLoad dealt_load(std::int64_t experts, std::int64_t rows, std::int64_t devices) {
  const std::int64_t each = rows / experts;
  const std::int64_t more = rows % experts;
  ExpertLoad load{.active = d(each > 0 ? experts : more)};
  for (std::size_t i = 0; i < kTileRows.size(); ++i) {
    load.tiles[i] =
        d(more) * std::ceil(d(each + 1) / kTileRows[i]) + d(experts - more) * std::ceil(d(each) / kTileRows[i]);
  }
  if (devices == 1) return load;
  load = load / d(devices);
  load.active = std::max(load.active, 1.0);
  for (double& count : load.tiles) count = std::max(count, 1.0);
  return load;
}

ExpertLoad drawn_load(double exponent, std::int64_t experts, std::int64_t per_token, std::int64_t tokens,
                      std::int64_t devices) {
  if (devices > 1) return fullest(drawn_counts(exponent, experts, per_token, tokens), d(devices));
  const double all = d(experts);
  const double n = d(tokens);
  const double rows = n * d(per_token);
  const Density density = density_of_shares(exponent, all, rows, n);
  const double share = d(per_token) / all;
  const bool capped = density.mean() < share * density.high();
  const double scale = capped ? n / first_capped(density, share) : n * share / density.mean();
  // E[(c - y)+].
  const auto over = [&](double y) { return y < n ? scale * (density.over(y / scale) - density.over(n / scale)) : 0; };
  ExpertLoad load{.active = std::min(all, rows - all * over(1))};
  for (std::size_t i = 0; i < kTileRows.size(); ++i) {
    load.tiles[i] = load.active + all * over(kTileRows[i] / 2) / kTileRows[i];
  }
  return load;
}

std::vector<std::int64_t> drawn_counts(double exponent, std::int64_t experts, std::int64_t per_token,
                                       std::int64_t tokens) {
  const double n = d(tokens);
  const double rows = n * d(per_token);
  const Density density = density_of_shares(exponent, d(experts), rows, n);
  std::vector<double> shares;
  for (std::int64_t i = 0; i < experts; ++i) shares.push_back(density.below(1 - (d(i) + 0.5) / d(experts)));
  const auto sum_of = [&](double scale) {
    double sum = 0;
    for (const double share : shares) sum += std::min(n, scale * share);
    return sum;
  };
  double low = 0;
  double high = n / shares.back();  // gives every expert all tokens
  constexpr int kHalvings = 100;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (sum_of(middle) < rows ? low : high) = middle;
  }
  std::vector<std::int64_t> counts;
  double sum = 0;
  std::int64_t before = 0;
  for (const double share : shares) {
    sum += std::min(n, high * share);
    counts.push_back(std::llround(sum) - before);
    before += counts.back();
  }
  return counts;
}

}  // namespace llmperf::graph
