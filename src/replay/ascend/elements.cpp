#include "replay/ascend/elements.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "replay/ascend/refusal.h"
#include "replay/operands.h"

namespace llmperf::replay::ascend {
namespace {

template <class T, class Convert>
void store_all(std::span<const float> values, std::vector<std::byte>& stored, Convert convert) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T element = convert(values[i]);
    std::memcpy(stored.data() + i * sizeof(T), &element, sizeof(T));
  }
}

template <class T, class Convert>
std::vector<float> load_all(std::span<const std::byte> stored, Convert convert) {
  std::vector<float> values(stored.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T element;
    std::memcpy(&element, stored.data() + i * sizeof(T), sizeof(T));
    values[i] = convert(element);
  }
  return values;
}

template <class T>
T rounded(float value) {
  return static_cast<T>(std::lrint(value));
}

}  // namespace

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U); }

std::uint16_t to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const auto with_sign = [&](std::uint32_t half) { return static_cast<std::uint16_t>(sign | half); };
  if (magnitude > 0x7f800000U) return with_sign(0x7e00U);   // not a number
  if (magnitude >= 0x477ff000U) return with_sign(0x7c00U);  // rounds to 65536 or more
  if (magnitude < 0x38800000U) {
    // Below 2^-14 the step is 2^-24, as it is of fp32 from 0.5 on: the sum is rounded as the result is to be.
    constexpr float kAlign = 0.5F;
    const float aligned = std::bit_cast<float>(magnitude) + kAlign;
    return with_sign(std::bit_cast<std::uint32_t>(aligned) - std::bit_cast<std::uint32_t>(kAlign));
  }
  const std::uint32_t rebiased = magnitude - ((127U - 15U) << 23U);
  return with_sign((rebiased + 0xfffU + ((rebiased >> 13U) & 1U)) >> 13U);
}

float from_fp16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16U;
  const std::uint32_t exponent = (half >> 10U) & 0x1fU;
  const std::uint32_t mantissa = half & 0x3ffU;
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -value : value;
  }
  const std::uint32_t wide = exponent == 31 ? 255U : exponent + (127U - 15U);
  return std::bit_cast<float>(sign | (wide << 23U) | (mantissa << 13U));
}

std::size_t stored_bytes(cann::DataType type, std::size_t count) {
  switch (type) {
    case cann::DataType::int4: return (count + 1) / 2;
    case cann::DataType::int8:
    case cann::DataType::uint8:
    case cann::DataType::boolean: return count;
    case cann::DataType::fp16:
    case cann::DataType::bf16: return 2 * count;
    case cann::DataType::fp32:
    case cann::DataType::int32: return 4 * count;
    case cann::DataType::int64: return 8 * count;
  }
  return 0;
}

std::vector<std::byte> encode(std::span<const float> values, cann::DataType type) {
  std::vector<std::byte> stored(stored_bytes(type, values.size()));
  switch (type) {
    case cann::DataType::fp16: store_all<std::uint16_t>(values, stored, to_fp16); break;
    case cann::DataType::bf16: store_all<std::uint16_t>(values, stored, to_bf16); break;
    case cann::DataType::fp32: store_all<float>(values, stored, [](float v) { return v; }); break;
    case cann::DataType::int8: store_all<std::int8_t>(values, stored, rounded<std::int8_t>); break;
    case cann::DataType::uint8:
    case cann::DataType::boolean: store_all<std::uint8_t>(values, stored, rounded<std::uint8_t>); break;
    case cann::DataType::int32: store_all<std::int32_t>(values, stored, rounded<std::int32_t>); break;
    case cann::DataType::int64: store_all<std::int64_t>(values, stored, rounded<std::int64_t>); break;
    case cann::DataType::int4:
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto nibble = static_cast<unsigned>(std::lrint(values[i])) & 0xfU;
        stored[i / 2] |= static_cast<std::byte>(i % 2 == 0 ? nibble : nibble << 4U);
      }
      break;
  }
  return stored;
}

std::vector<float> decode(std::span<const std::byte> stored, cann::DataType type) {
  switch (type) {
    case cann::DataType::fp16: return load_all<std::uint16_t>(stored, from_fp16);
    case cann::DataType::bf16: return load_all<std::uint16_t>(stored, from_bf16);
    case cann::DataType::fp32: return load_all<float>(stored, [](float v) { return v; });
    case cann::DataType::int32: return load_all<std::int32_t>(stored, [](auto v) { return static_cast<float>(v); });
    default: return load_all<std::int8_t>(stored, [](auto v) { return static_cast<float>(v); });
  }
}

cann::DataType float_type(Dtype dtype, const std::string& op) {
  switch (dtype) {
    case Dtype::fp16: return cann::DataType::fp16;
    case Dtype::bf16: return cann::DataType::bf16;
    case Dtype::fp32: return cann::DataType::fp32;
    default: throw Refusal{fmt::format("{} takes fp16, bf16 and fp32, not {}", op, name(dtype))};
  }
}

cann::DataType half_type(Dtype dtype, const std::string& op) {
  switch (dtype) {
    case Dtype::fp16: return cann::DataType::fp16;
    case Dtype::bf16: return cann::DataType::bf16;
    default: throw Refusal{fmt::format("{} takes fp16 and bf16, not {}", op, name(dtype))};
  }
}

std::size_t element_count(std::initializer_list<std::int64_t> shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32U;
  std::int64_t product = 1;
  for (const std::int64_t size : shape) {
    require(size <= 0 || product <= kMost / size, "an operand of more than 2^32 elements is not replayed");
    product *= size;
  }
  return static_cast<std::size_t>(product);
}

std::vector<float> filled(std::uint32_t operand, std::size_t count, double scale, double offset) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(static_cast<double>(fill_value(operand, i)) * scale + offset);
  }
  return values;
}

}  // namespace llmperf::replay::ascend
