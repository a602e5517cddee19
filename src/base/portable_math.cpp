// After FreeBSD's s_expm1.c and s_log1p.c, with polynomials summed as the GNU C Library has them:
//
// Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
//
// Developed at SunPro, a Sun Microsystems, Inc. business.
// Permission to use, copy, modify, and distribute this software is freely granted, provided that this notice is
// preserved.
#include "base/portable_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace llmperf {
namespace {

constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;

std::int32_t high_word(double x) { return static_cast<std::int32_t>(std::bit_cast<std::uint64_t>(x) >> 32); }
double with_high_word(double x, std::int32_t high) {
  const std::uint64_t low = std::bit_cast<std::uint64_t>(x) & 0xffffffff;
  return std::bit_cast<double>((static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32) | low);
}

}  // namespace

double portable_expm1(double x) {
  constexpr double kQ[] = {1.0,
                           -3.33333333333331316428e-02,
                           1.58730158725481460165e-03,
                           -7.93650757867487942473e-05,
                           4.00821782732936239552e-06,
                           -2.01099218183624371326e-07};
  const std::int32_t size = high_word(x) & 0x7fffffff;
  if (std::isnan(x) || std::isinf(x)) return x < 0 ? -1 : x;
  if (x > 7.09782712893383973096e+02) return std::numeric_limits<double>::infinity();
  if (size >= 0x4043687a && x < 0) return -1;  // 56 ln 2
  // x = k ln 2 + the new x + c.
  int k = 0;
  double c = 0;
  if (size > 0x3fd62e42) {  // ln 2 / 2
    if (size < 0x3ff0a2b2) {
      k = x < 0 ? -1 : 1;
    } else {
      k = static_cast<int>(1.44269504088896338700e+00 * x + (x < 0 ? -0.5 : 0.5));
    }
    const double high = x - k * kLn2High;
    const double low = k * kLn2Low;
    x = high - low;
    c = (high - x) - low;
  } else if (size < 0x3c900000) {
    return x;
  }
  const double half = 0.5 * x;
  const double square = x * half;
  const double square2 = square * square;
  const double square4 = square2 * square2;
  const double r1 = kQ[0] + square * kQ[1] + square2 * (kQ[2] + square * kQ[3]) + square4 * (kQ[4] + square * kQ[5]);
  double t = 3 - r1 * half;
  double e = square * ((r1 - t) / (6 - x * t));
  if (k == 0) return x - (x * e - square);
  e = x * (e - c) - c;
  e -= square;
  if (k == -1) return 0.5 * (x - e) - 0.5;
  if (k == 1) return x < -0.25 ? -2 * (e - (x + 0.5)) : 1 + 2 * (x - e);
  if (k <= -2 || k > 56) return std::ldexp(1 - (e - x), k) - 1;
  if (k < 20) {
    t = with_high_word(1, 0x3ff00000 - (0x200000 >> k));  // 1 - 2^-k
    return std::ldexp(t - (e - x), k);
  }
  t = std::ldexp(1, -k);
  return std::ldexp(x - (e + t) + 1, k);
}

double portable_log1p(double x) {
  constexpr double kL[] = {0,
                           6.666666666666735130e-01,
                           3.999999999940941908e-01,
                           2.857142874366239149e-01,
                           2.222219843214978396e-01,
                           1.818357216161805012e-01,
                           1.531383769920937332e-01,
                           1.479819860511658591e-01};
  if (!(x > -1)) return std::log(1 + x);
  if (std::isinf(x)) return x;
  std::int32_t high = high_word(x);
  const std::int32_t size = high & 0x7fffffff;
  if (size < 0x3c900000) return x;
  if (size < 0x3e200000) return x - x * x * 0.5;
  int k = 0;
  double f = x;
  double c = 0;
  if (high >= 0x3fda827a || (high < 0 && static_cast<std::uint32_t>(high) > 0xbfd2bec3)) {
    double u = x;
    if (high < 0x43400000) {
      u = 1 + x;
      high = high_word(u);
      k = (high >> 20) - 1023;
      c = (k > 0 ? 1 - (u - x) : x - (u - 1)) / u;
    } else {
      k = (high >> 20) - 1023;
    }
    high &= 0x000fffff;
    if (high < 0x6a09e) {
      u = with_high_word(u, high | 0x3ff00000);
    } else {
      ++k;
      u = with_high_word(u, high | 0x3fe00000);
      high = (0x00100000 - high) >> 2;
    }
    f = u - 1;
  }
  const double half = 0.5 * f * f;
  if (high == 0) {  // |f| < 2^-20
    if (f == 0) return k == 0 ? 0 : k * kLn2High + (c + k * kLn2Low);
    const double r = half * (1 - 0.66666666666666666 * f);
    return k == 0 ? f - r : k * kLn2High - ((r - (k * kLn2Low + c)) - f);
  }
  const double s = f / (2 + f);
  const double z = s * s;
  const double z2 = z * z;
  const double z4 = z2 * z2;
  const double z6 = z4 * z2;
  const double r = z * kL[1] + z2 * (kL[2] + z * kL[3]) + z4 * (kL[4] + z * kL[5]) + z6 * (kL[6] + z * kL[7]);
  if (k == 0) return f - (half - s * (half + r));
  return k * kLn2High - ((half - (s * (half + r) + (k * kLn2Low + c))) - f);
}

}  // namespace llmperf
