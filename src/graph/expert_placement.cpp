// The greedy balance of DeepSeek's EPLB (github.com/deepseek-ai/EPLB, its global policy, which vLLM and SGLang run
// too):
//
//   copies    one after the other, of the expert that has most tokens for each of its copies, which then share them
//   packing   from the busiest down, each to the device that has fewest tokens so far and room left: all hold as many
//
// It is no optimum: of a layer that is better off as its experts are numbered, they stay so.
//
// With shares x_e of a layer's tokens and k experts of a token, a copy is picked with chance p = min(1, s x_e) / copies
// (expert_load.cpp). A device gets the sum of its p of a token, and a token is sent to it, once, with chance
// 1 - prod(1 - p).
#include "graph/expert_placement.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/integer.h"
#include "base/load_once.h"

namespace llmperf::graph {
namespace {

using Ranks = std::vector<std::vector<double>>;  // of each device the chances of what it holds

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }
double busiest(const Ranks& ranks) { return sum_of(*std::ranges::max_element(ranks, {}, sum_of)); }

// By their numbers.
Ranks numbered(const std::vector<double>& picked, std::size_t ranks, std::size_t slots) {
  Ranks held(ranks);
  for (std::size_t i = 0; i < slots; ++i) {
    const std::size_t expert = i % picked.size();
    const std::size_t copies = (slots - expert - 1) / picked.size() + 1;
    held[i * ranks / slots].push_back(picked[expert] / static_cast<double>(copies));
  }
  return held;
}

Ranks balanced(const std::vector<double>& picked, std::size_t ranks, std::size_t slots) {
  std::vector<double> copies(picked.size(), 1);
  std::vector<double> each = picked;
  for (std::size_t i = picked.size(); i < slots; ++i) {
    const auto most = static_cast<std::size_t>(std::ranges::max_element(each) - each.begin());
    each[most] = picked[most] / ++copies[most];
  }
  for (std::size_t i = 0; i < picked.size(); ++i)
    each.resize(each.size() + static_cast<std::size_t>(copies[i]) - 1, each[i]);
  std::ranges::sort(each, std::greater<>());
  Ranks held(ranks);
  for (const double one : each) {
    std::ranges::min_element(held, {}, [&](const std::vector<double>& rank) {
      return std::pair(rank.size() * ranks == slots, sum_of(rank));  // those that are full come last
    })->push_back(one);
  }
  return held;
}

Placement place(const std::vector<std::vector<double>>& layers, double per_token, std::size_t ranks,
                std::size_t copies) {
  Placement placement;
  const double share = d(static_cast<std::int64_t>(ranks)) / static_cast<double>(layers.size());
  for (const std::vector<double>& loads : layers) {
    const std::vector<double> picked = chances_of(loads, per_token);
    Ranks held = numbered(picked, ranks, loads.size() + copies);
    placement.by_number += share * busiest(held) / per_token;
    if (Ranks packed = balanced(picked, ranks, loads.size() + copies); busiest(packed) < busiest(held)) held = packed;
    placement.imbalance += share * busiest(held) / per_token;
    std::vector<Chances>& devices = placement.layers.emplace_back();
    std::vector<double> reached;
    for (std::vector<double>& rank : held) {
      std::ranges::sort(rank, std::greater<>());
      reached.push_back(devices.emplace_back(std::move(rank)).reached());
    }
    placement.reached += share * std::ranges::max(reached) / sum_of(reached);
  }
  return placement;
}

// Its numbers become sums with another's, or the larger ones.
template <class Of>
void combine(ExpertLoad& load, const ExpertLoad& other, const Of& of) {
  load.active = of(load.active, other.active);
  for (std::size_t i = 0; i < load.tiles.size(); ++i) load.tiles[i] = of(load.tiles[i], other.tiles[i]);
}

}  // namespace

ExpertLoad Placement::load(std::int64_t tokens) const {
  ExpertLoad sum{.active = 0};
  for (const std::vector<Chances>& devices : layers) {
    ExpertLoad most{.active = 0};
    for (const Chances& device : devices)
      combine(most, device.load(tokens), [](double a, double b) { return std::max(a, b); });
    combine(sum, most, std::plus<>());
  }
  ExpertLoad mean = sum / static_cast<double>(layers.size());
  mean.imbalance = imbalance;
  return mean;
}

const Placement& MeasuredLoads::placed(double per_token, std::int64_t ranks, std::int64_t copies) const {
  const std::lock_guard lock(mutex_);
  return load_once(placed_, {per_token, ranks, copies}, [&] {
    return place(layers_, per_token, static_cast<std::size_t>(ranks), static_cast<std::size_t>(copies));
  });
}

}  // namespace llmperf::graph
