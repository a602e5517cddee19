#include "replay/ascend/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/number.h"
#include "replay/operands.h"

namespace llmperf::replay::ascend {

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

namespace {

template <class T>
T rounded(float value) {
  return static_cast<T>(std::lrint(value));
}
template <class T>
float widened(T value) {
  return static_cast<float>(value);
}

// `then` with the conversions of float to what an element of that type is stored as, and back. Not of int4, of which
// two share a byte.
template <class Then>
auto stored_as(cann::DataType type, Then then) {
  switch (type) {
    case cann::DataType::fp16: return then(to_fp16, from_fp16);
    case cann::DataType::bf16: return then(to_bf16, from_bf16);
    case cann::DataType::fp32: return then(widened<float>, widened<float>);
    case cann::DataType::int32: return then(rounded<std::int32_t>, widened<std::int32_t>);
    case cann::DataType::int64: return then(rounded<std::int64_t>, widened<std::int64_t>);
    case cann::DataType::uint8:
    case cann::DataType::boolean: return then(rounded<std::uint8_t>, widened<std::uint8_t>);
    default: return then(rounded<std::int8_t>, widened<std::int8_t>);
  }
}

}  // namespace

std::size_t stored_bytes(cann::DataType type, std::size_t count) {
  if (type == cann::DataType::int4) return (count + 1) / 2;
  return stored_as(type, [&](auto to, auto) { return count * sizeof(to(0.0F)); });
}

std::vector<std::byte> encode(std::span<const float> values, cann::DataType type) {
  std::vector<std::byte> stored(stored_bytes(type, values.size()));
  if (type == cann::DataType::int4) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto nibble = static_cast<unsigned>(std::lrint(values[i])) & 0xfU;
      stored[i / 2] |= static_cast<std::byte>(i % 2 == 0 ? nibble : nibble << 4U);
    }
    return stored;
  }
  stored_as(type, [&](auto to, auto) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto element = to(values[i]);
      std::memcpy(stored.data() + i * sizeof element, &element, sizeof element);
    }
  });
  return stored;
}

std::vector<float> decode(std::span<const std::byte> stored, cann::DataType type) {
  return stored_as(type, [&](auto to, auto from) {
    auto element = to(0.0F);
    std::vector<float> values(stored.size() / sizeof element);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::memcpy(&element, stored.data() + i * sizeof element, sizeof element);
      values[i] = from(element);
    }
    return values;
  });
}

cann::DataType float_type(Dtype dtype, const std::string& op) {
  switch (dtype) {
    case Dtype::fp16: return cann::DataType::fp16;
    case Dtype::bf16: return cann::DataType::bf16;
    case Dtype::fp32: return cann::DataType::fp32;
    default: throw Unavailable{fmt::format("{} takes fp16, bf16 and fp32, not {}", op, name(dtype))};
  }
}

cann::DataType half_type(Dtype dtype, const std::string& op) {
  switch (dtype) {
    case Dtype::fp16: return cann::DataType::fp16;
    case Dtype::bf16: return cann::DataType::bf16;
    default: throw Unavailable{fmt::format("{} takes fp16 and bf16, not {}", op, name(dtype))};
  }
}

std::size_t element_count(const Shape& shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32U;
  std::int64_t product = 1;
  for (const std::int64_t size : shape) {
    require(size <= 0 || product <= kMost / size, "an operand of more than 2^32 elements is not replayed");
    product *= size;
  }
  return static_cast<std::size_t>(product);
}

std::vector<float> filled(std::uint32_t operand, const Shape& shape, double scale, double offset) {
  std::vector<float> values(element_count(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<double>(fill_value(operand, i)) * scale + offset);
  }
  return values;
}

Runtime::Runtime(const cann::Functions& cann) : cann_(cann) {
  constexpr cann::Status kInitialisedBefore = 100002;
  const cann::Status status = cann.aclInit(nullptr);
  if (status == kInitialisedBefore) return;
  cann::check(cann, status, "aclInit");
  finalize_ = true;
}

Runtime::~Runtime() {
  if (finalize_) cann_.aclFinalize();
}

CurrentDevice::CurrentDevice(const cann::Functions& cann, int id) : cann_(cann), id_(id) {
  cann::call(cann, cann.aclrtSetDevice, id);
}

CurrentDevice::~CurrentDevice() { cann_.aclrtResetDevice(id_); }

Stream make_stream(const cann::Functions& cann) {
  cann::Stream stream = nullptr;
  cann::call(cann, cann.aclrtCreateStream, &stream);
  return own<Stream>(cann, stream);
}

Event make_event(const cann::Functions& cann, std::uint32_t flags) {
  cann::Event event = nullptr;
  cann::call(cann, cann.aclrtCreateEventWithFlag, &event, flags);
  return own<Event>(cann, event);
}

Memory make_memory(const cann::Functions& cann, std::size_t bytes) {
  void* memory = nullptr;
  const cann::Status status =
      cann.aclrtMalloc(&memory, std::max<std::size_t>(bytes, 1), cann::MallocPolicy::huge_first);
  if (cann::is_out_of_memory(status)) {
    throw Unavailable{fmt::format("the device has no {} left for an operand",
                                  format_bytes_binary(Bytes{static_cast<double>(bytes)}))};
  }
  cann::check(cann, status, "aclrtMalloc");
  return own<Memory>(cann, memory);
}

namespace {
constexpr std::int32_t kPatienceMs = 600'000;
constexpr std::int32_t kPatienceAfterErrorMs = 10'000;
}  // namespace

Device::Device(const cann::Functions& cann, int id)
    : cann_(cann), current_(cann, id), stream_(make_stream(cann)), control_(make_stream(cann)) {}

void Device::write(void* to, std::span<const std::byte> from) const {
  if (from.empty()) return;
  cann::call(cann_, cann_.aclrtMemcpy, to, from.size(), from.data(), from.size(), cann::MemcpyKind::host_to_device);
}

std::vector<float> Device::read(const void* from, std::size_t count, cann::DataType type) const {
  std::vector<std::byte> stored(stored_bytes(type, count));
  if (stored.empty()) return {};
  cann::call(cann_, cann_.aclrtMemcpy, stored.data(), stored.size(), from, stored.size(),
             cann::MemcpyKind::device_to_host);
  return decode(stored, type);
}

void Device::reserve_workspace(std::size_t bytes) {
  if (bytes <= workspace_bytes_) return;
  workspace_.reset();
  workspace_bytes_ = 0;
  workspace_ = make_memory(cann_, bytes);
  workspace_bytes_ = bytes;
}

void Device::synchronize() const {
  if (cann_.aclrtSynchronizeStreamWithTimeout) {
    cann::call(cann_, cann_.aclrtSynchronizeStreamWithTimeout, stream(), kPatienceMs);
  } else {
    cann::call(cann_, cann_.aclrtSynchronizeStream, stream());
  }
}

void Device::abandon() const noexcept {
  if (cann_.aclrtStreamAbort) cann_.aclrtStreamAbort(stream());
  if (cann_.aclrtSynchronizeStreamWithTimeout) {
    cann_.aclrtSynchronizeStreamWithTimeout(stream(), kPatienceAfterErrorMs);
  } else {
    cann_.aclrtSynchronizeStream(stream());
  }
}

}  // namespace llmperf::replay::ascend
