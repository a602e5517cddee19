#include "base/maths.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>

namespace llmperf::maths {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// ln 2 in two parts: the first has zeros at its end, so that multiples of it by an exponent are exact.
constexpr double kLn2High = 0x1.62e42fefa0000p-1;
constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;

// c[0] + c[1] x + …, an even number of terms, in pairs: they do not wait for each other.
template <std::size_t N>
double polynomial(const std::array<double, N>& c, double x) {
  static_assert(N % 2 == 0);
  const double square = x * x;
  double power = 1;
  double even = 0;  // of pairs 0, 2, …
  double odd = 0;
  for (std::size_t i = 0; i < N; i += 4) {
    even += (c[i] + c[i + 1] * x) * power;
    power *= square;
    if (i + 2 < N) odd += (c[i + 2] + c[i + 3] * x) * power;
    power *= square;
  }
  return even + odd;
}

// 1 / n!, of every `step`-th n from `first`, with the signs of a cosine or sine where `alternating`.
template <std::size_t N>
constexpr std::array<double, N> factorials(int first, int step, bool alternating) {
  std::array<double, N> c{};
  for (std::size_t i = 0; i < N; ++i) {
    double product = 1;
    for (int n = 2; n <= first + static_cast<int>(i) * step; ++n) product *= n;
    c[i] = (alternating && i % 2 == 1 ? -1 : 1) / product;
  }
  return c;
}

// x 2^k, quicker than ldexp() where 2^k is a normal number.
double scaled(double x, int k) {
  if (k < -1022 || k > 1023) return std::ldexp(x, k);
  return x * std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

// 1 + r + r^2 / 2! + …; what is left of |r| <= ln 2 is below 1e-17.
double exp_of_rest(double r) {
  static constexpr std::array<double, 18> kTerms = factorials<18>(0, 1, false);
  return polynomial(kTerms, r);
}

}  // namespace

double exp(double x) {
  if (!(x > -746)) return x <= -746 ? 0 : x;
  if (x > 710) return kInfinity;
  constexpr double kNoFraction = 6755399441055744.0;  // 1.5 * 2^52: a double has no bits left for one beside it
  const double k = (x * std::numbers::log2e + kNoFraction) - kNoFraction;
  return scaled(exp_of_rest((x - k * kLn2High) - k * kLn2Low), static_cast<int>(k));
}

double exp2(double x) {
  if (!(x > -1100)) return x <= -1100 ? 0 : x;
  if (x > 1100) return kInfinity;
  const double k = std::floor(x);
  return scaled(exp_of_rest((x - k) * std::numbers::ln2), static_cast<int>(k));
}

// x = m 2^k with m around 1; log m = 2 (s + s^3 / 3 + s^5 / 5 …), s = (m - 1) / (m + 1), |s| < 0.172.
double log(double x) {
  if (!(x > 0)) return x == 0 ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
  if (x == kInfinity) return x;
  static constexpr std::array<double, 12> kTerms = [] {
    std::array<double, 12> c{};
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = 2.0 / static_cast<double>(2 * i + 1);
    return c;
  }();
  int k = 0;
  double m = std::frexp(x, &k);
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --k;
  }
  const double s = (m - 1) / (m + 1);
  return k * kLn2High + (s * polynomial(kTerms, s * s) + k * kLn2Low);
}

double pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x == 0) return y > 0 ? 0 : kInfinity;
  return exp(y * log(x));
}

double cos_turns(double x) {
  static constexpr std::array<double, 10> kCosine = factorials<10>(0, 2, true);
  static constexpr std::array<double, 10> kSine = factorials<10>(1, 2, true);
  const double quarters = std::floor(x * 4 + 0.5);
  const double angle = (x - quarters / 4) * 2 * std::numbers::pi;  // within an eighth of a turn
  const double square = angle * angle;
  switch (static_cast<int>(std::fmod(quarters, 4)) & 3) {
    case 0: return polynomial(kCosine, square);
    case 1: return -angle * polynomial(kSine, square);
    case 2: return -polynomial(kCosine, square);
    default: return angle * polynomial(kSine, square);
  }
}

}  // namespace llmperf::maths
