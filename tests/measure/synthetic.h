// Made-up kernels with known constants, and noise that is the same on every machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "measure/fit.h"

namespace llmperf::measure {

// Normal deviates by Box and Muller from a 64-bit linear congruential generator (Knuth's MMIX constants).
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed) {}
  double uniform() {  // in (0, 1)
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return (static_cast<double>(state_ >> 11U) + 0.5) / 9007199254740992.0;
  }
  double normal() {
    constexpr double kTwoPi = 6.283185307179586;
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(kTwoPi * uniform());
  }

 private:
  std::uint64_t state_;
};

// t = launch + flops / (peak * share) + bytes / (bandwidth * memory): the three constants are to be found.
enum Constant : std::size_t { launch, share, memory, unused, constants };
inline constexpr double kPeak = 100e12;
inline constexpr double kBandwidth = 1e12;
inline constexpr double kLaunch = 5e-6;
inline constexpr double kShare = 0.6;
inline constexpr double kMemory = 0.8;

struct Kernel {
  double flops = 0;
  double bytes = 0;
};
inline double kernel_time(const Kernel& k, std::span<const double> v) {
  return v[launch] + k.flops / (kPeak * v[share]) + k.bytes / (kBandwidth * v[memory]);
}

// From 1 us to 1 ms of work, of either sort.
inline std::vector<Kernel> kernels(std::size_t n) {
  Noise noise(7);
  std::vector<Kernel> list;
  for (std::size_t i = 0; i < n; ++i) {
    list.push_back(
        {kPeak * std::pow(10, -6 + 3 * noise.uniform()), kBandwidth * std::pow(10, -6 + 3 * noise.uniform())});
  }
  return list;
}

// The kernels measured with relative noise; `kernels` must outlive the problem.
inline FitProblem kernel_problem(const std::vector<Kernel>& kernels, double noise_level) {
  FitProblem problem;
  const std::vector<double> truth = {kLaunch, kShare, kMemory, 1};
  Noise noise(42);
  for (const Kernel& k : kernels) {
    problem.measured.push_back(kernel_time(k, truth) * std::exp(noise_level * noise.normal()));
  }
  problem.predict = [&kernels](std::span<const double> values, std::optional<std::size_t>,
                               std::span<double> predicted) {
    for (std::size_t i = 0; i < kernels.size(); ++i) predicted[i] = kernel_time(kernels[i], values);
  };
  problem.values = {10e-6, 0.9, 0.5, 1};
  problem.free = {{launch, 10e-6, 1, 1e-7, 1e-3}, {share, 0.9, 0.5, 0.01, 1}, {memory, 0.5, 0.5, 0.01, 1}};
  return problem;
}

}  // namespace llmperf::measure
