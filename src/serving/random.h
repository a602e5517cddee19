// Random numbers that are the same on every platform: those of the standard library's distributions are not.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/maths.h"

namespace llmperf::serving {

// splitmix64 (Steele, Lea, Flood, OOPSLA 2014): one addition and a mix of bits for a number.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class Random {
 public:
  // Streams of one seed do not depend on how much is drawn from another: arrivals stay where they are when lengths
  // change.
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : state_(mixed(mixed(seed) + stream)) {}

  std::uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15); }
  // In (0, 1).
  double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1.0p-53; }
  double exponential() { return -maths::log(uniform()); }
  // Box and Muller, Annals of Mathematical Statistics 29 (1958).
  double normal() { return std::sqrt(2 * exponential()) * maths::cos_turns(uniform()); }
  // Of mean `shape` (Marsaglia and Tsang, ACM TOMS 26(3), 2000).
  double gamma(double shape) {
    if (shape < 1) return gamma(shape + 1) * maths::pow(uniform(), 1 / shape);
    const double d = shape - 1.0 / 3;
    while (true) {
      const double x = normal();
      const double root = 1 + x / (3 * std::sqrt(d));
      const double v = root * root * root;
      if (v > 0 && maths::log(uniform()) < x * x / 2 + d - d * v + d * maths::log(v)) return d * v;
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace llmperf::serving
