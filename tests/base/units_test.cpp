#include "base/units.h"

#include <concepts>

#include "catch.h"

namespace llmperf::units_test {

namespace {

template <class A, class B>
concept Divisible = requires(A a, B b) {
  a / b;
};
template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};

// The mistake the types exist for: bytes against a compute rate, operations against a memory rate.
static_assert(!Divisible<Bytes, FlopsPerSecond>);
static_assert(!Divisible<Flops, BytesPerSecond>);
static_assert(!Addable<Bytes, Flops>);
static_assert(!Addable<Bytes, double>);
static_assert(!Divisible<double, Seconds>);
static_assert(!std::convertible_to<double, Bytes>);
static_assert(!std::convertible_to<Bytes, double>);
static_assert(!std::convertible_to<Bytes, Seconds>);

static_assert(std::same_as<decltype(Bytes{} / BytesPerSecond{1}), Seconds>);
static_assert(std::same_as<decltype(Flops{} / FlopsPerSecond{1}), Seconds>);
static_assert(std::same_as<decltype(Bytes{} / Seconds{1}), BytesPerSecond>);
static_assert(std::same_as<decltype(Flops{} / Bytes{1}), FlopsPerByte>);
static_assert(std::same_as<decltype(FlopsPerSecond{} / BytesPerSecond{1}), FlopsPerByte>);
static_assert(std::same_as<decltype(BytesPerSecond{} * Seconds{1}), Bytes>);
static_assert(std::same_as<decltype(Bytes{} / Bytes{1}), double>);

}  // namespace

TEST_CASE("24 GB at 1000 GB/s take 24 ms") { CHECK((Bytes{24e9} / BytesPerSecond{1000e9}).value == Approx(0.024)); }

TEST_CASE("a ridge point is compute over bandwidth: 165.2 TFLOP/s over 1008 GB/s is 163.9 FLOP per byte") {
  CHECK((FlopsPerSecond{165.2e12} / BytesPerSecond{1008e9}).value == Approx(163.889).epsilon(1e-5));
}

TEST_CASE("quantities of one dimension add, scale and compare") {
  Bytes sum{1};
  sum += Bytes{2};
  CHECK(sum == Bytes{3});
  CHECK(2 * sum - Bytes{1} == Bytes{5});
  CHECK(sum / 2 == Bytes{1.5});
  CHECK(Bytes{1} < Bytes{2});
}

}  // namespace llmperf::units_test
