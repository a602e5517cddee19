// Strong SI base units. A quantity of one dimension never converts to another by accident: bytes divided by FLOP/s do
// not compile, bytes divided by bytes/s are seconds. Scaling and prefixes belong to parsing and printing only.
#pragma once

#include <compare>

namespace llmperf {

template <class Dimension>
struct Quantity {
  double value = 0.0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double v) : value(v) {}

  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity{a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity{a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, double factor) { return Quantity{a.value * factor}; }
  friend constexpr Quantity operator*(double factor, Quantity a) { return a * factor; }
  friend constexpr Quantity operator/(Quantity a, double divisor) { return Quantity{a.value / divisor}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
};

using Bytes = Quantity<struct BytesDimension>;
using Flops = Quantity<struct FlopsDimension>;  // operations, not a rate
using Seconds = Quantity<struct SecondsDimension>;
using BytesPerSecond = Quantity<struct BytesPerSecondDimension>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondDimension>;
using FlopsPerByte = Quantity<struct FlopsPerByteDimension>;  // arithmetic intensity

constexpr Seconds operator/(Bytes bytes, BytesPerSecond rate) { return Seconds{bytes.value / rate.value}; }
constexpr Seconds operator/(Flops flops, FlopsPerSecond rate) { return Seconds{flops.value / rate.value}; }
constexpr BytesPerSecond operator/(Bytes bytes, Seconds time) { return BytesPerSecond{bytes.value / time.value}; }
constexpr FlopsPerSecond operator/(Flops flops, Seconds time) { return FlopsPerSecond{flops.value / time.value}; }
constexpr FlopsPerByte operator/(Flops flops, Bytes bytes) { return FlopsPerByte{flops.value / bytes.value}; }
// The ridge point of a roofline.
constexpr FlopsPerByte operator/(FlopsPerSecond compute, BytesPerSecond memory) {
  return FlopsPerByte{compute.value / memory.value};
}
constexpr Bytes operator*(BytesPerSecond rate, Seconds time) { return Bytes{rate.value * time.value}; }
constexpr Flops operator*(FlopsPerSecond rate, Seconds time) { return Flops{rate.value * time.value}; }

inline constexpr double kKiB = 1024.0;
inline constexpr double kMiB = 1024.0 * kKiB;
inline constexpr double kGiB = 1024.0 * kMiB;

}  // namespace llmperf
