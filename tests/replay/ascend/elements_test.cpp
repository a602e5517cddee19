#include <cmath>
#include <limits>

#include "catch.h"
#include "replay/ascend/device.h"

namespace llmperf::replay::ascend::elements_test {

TEST_CASE("fp16 survives a round trip for every finite pattern") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if ((bits & 0x7c00U) == 0x7c00U) continue;
    REQUIRE(to_fp16(from_fp16(half)) == half);
  }
  CHECK(from_fp16(0x3c00) == 1.0F);
  CHECK(from_fp16(0x0001) == std::ldexp(1.0F, -24));
  CHECK(from_fp16(0xfbff) == -65504.0F);
}

TEST_CASE("narrowing rounds to nearest, ties to even") {
  CHECK(to_fp16(1 + std::ldexp(1.0F, -11)) == 0x3c00);      // half a step above 1: down to even
  CHECK(to_fp16(1 + 3 * std::ldexp(1.0F, -11)) == 0x3c02);  // up to even
  CHECK(to_fp16(std::ldexp(1.0F, -25)) == 0x0000);
  CHECK(to_fp16(3 * std::ldexp(1.0F, -25)) == 0x0002);
  CHECK(to_fp16(65519.0F) == 0x7bff);
  CHECK(to_fp16(65520.0F) == 0x7c00);
  CHECK(to_bf16(1 + std::ldexp(1.0F, -8)) == 0x3f80);
  CHECK(to_bf16(1 + 3 * std::ldexp(1.0F, -8)) == 0x3f82);
  CHECK(std::isnan(from_fp16(to_fp16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(std::isnan(from_bf16(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST_CASE("two int4 share a byte, the first in its lower half") {
  const std::vector<float> values = {1, -1, -8, 7, 3};
  const std::vector<std::byte> stored = encode(values, cann::DataType::int4);
  CHECK(stored == std::vector{std::byte{0xf1}, std::byte{0x78}, std::byte{0x03}});
}

}  // namespace llmperf::replay::ascend::elements_test
