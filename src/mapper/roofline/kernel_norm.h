// How two things that a kernel does at the same time add up.
#pragma once

#include <algorithm>

#include "base/maths.h"

namespace llmperf::mapper {

// The p-norm of two times: their sum for p = 1 (one after the other), their maximum for p = infinity (perfect overlap).
inline double overlapped(double a, double b, double p) {
  const double longer = std::max(a, b);
  const double shorter = std::min(a, b);
  if (p == 1 || shorter <= 0) return a + b;
  return longer * maths::pow(1 + maths::pow(shorter / longer, p), 1 / p);
}

// The same for many pairs of times and one exponent, with a cheap lower bound: the norm is no less than the longer time
// nor, since means grow with their exponent, than 2^(1/p) times the mean of the two.
class Norm {
 public:
  explicit Norm(double p) : p_(p), mean_(maths::exp2(1 / p - 1)) {}
  double operator()(double a, double b) const { return overlapped(a, b, p_); }
  double at_least(double a, double b) const { return std::max({a, b, mean_ * (a + b)}); }

 private:
  double p_;
  double mean_;
};

// Of a number from 0 to 2^51, by adding 2^52, beside which a double has no bits left for a fraction. std::ceil is a
// library call on x86-64 without extensions, and a product needs a hundred of them.
inline double rounded_up(double x) {
  constexpr double kNoFraction = 4503599627370496.0;
  const double nearest = (x + kNoFraction) - kNoFraction;
  return nearest + (nearest < x ? 1.0 : 0.0);
}
inline double round_up(double x, double unit) { return rounded_up(x / unit) * unit; }

}  // namespace llmperf::mapper
