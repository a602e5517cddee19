#include "replay/cpu/fill.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "replay/operands.h"

namespace llmperf::replay::cpu {
namespace {

constexpr std::int64_t kGrain = 4096;  // a page of bytes at least

// Fewer bytes are written by the caller before the other threads would have woken up; where they lie matters little.
constexpr std::int64_t kSmall = 1 << 18;

void divide(ThreadPool& pool, std::int64_t bytes, const std::function<void(const Team&)>& work) {
  if (bytes <= kSmall) return work({});
  pool.run(work);
}

std::uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + (0x7fffU + ((bits >> 16U) & 1U))) >> 16U);
}
float from_bf16(std::uint16_t x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16U); }

template <class T, class Convert>
void fill_as(void* to, std::int64_t first, std::int64_t count, const Fill& fill, const Convert& convert) {
  T* elements = static_cast<T*>(to);
  for (std::int64_t i = 0; i < count; ++i) {
    elements[i] = convert(fill_value(fill.operand, static_cast<std::uint64_t>(first + i)));
  }
}

}  // namespace

void fill_elements(void* to, Element element, std::int64_t first, std::int64_t count, const Fill& fill) {
  const auto value = [&](float x) { return fill.offset + fill.scale * x; };
  switch (element) {
    case Element::f32: return fill_as<float>(to, first, count, fill, value);
    case Element::bf16:
      return fill_as<std::uint16_t>(to, first, count, fill, [&](float x) { return to_bf16(value(x)); });
    case Element::s8:
      return fill_as<std::int8_t>(to, first, count, fill,
                                  [](float x) { return static_cast<std::int8_t>(std::lround(127 * x)); });
  }
}

Buffer filled(ThreadPool& pool, Element element, std::int64_t count, std::int64_t copies, const Fill& fill) {
  const std::int64_t stride = whole_lines(count * bytes_of(element));
  Buffer buffer(stride * copies);
  divide(pool, count * bytes_of(element), [&](const Team& team) {
    const Range part = part_of(count, kGrain, team.thread, team.threads);
    fill_elements(buffer.data() + part.first * bytes_of(element), element, part.first, part.size(), fill);
  });
  replicate(pool, buffer.data(), stride, copies);
  return buffer;
}

void replicate(ThreadPool& pool, std::byte* data, std::int64_t stride, std::int64_t copies) {
  if (copies < 2) return;
  divide(pool, stride * copies, [&](const Team& team) {
    // The same part of every copy as of the first, so that a thread finds it beside its processor in all of them.
    const Range part = part_of(stride, kGrain, team.thread, team.threads);
    for (std::int64_t copy = 1; copy < copies; ++copy) {
      std::memcpy(data + copy * stride + part.first, data + part.first, static_cast<std::size_t>(part.size()));
    }
  });
}

Buffer zeroed(ThreadPool& pool, std::int64_t bytes) {
  Buffer buffer(bytes);
  divide(pool, bytes, [&](const Team& team) {
    const Range part = part_of(bytes, kGrain, team.thread, team.threads);
    std::memset(buffer.data() + part.first, 0, static_cast<std::size_t>(part.size()));
  });
  return buffer;
}

void append_floats(std::vector<float>& to, const void* from, Element element, std::int64_t count) {
  to.reserve(to.size() + static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    switch (element) {
      case Element::f32: to.push_back(static_cast<const float*>(from)[i]); break;
      case Element::bf16: to.push_back(from_bf16(static_cast<const std::uint16_t*>(from)[i])); break;
      case Element::s8: to.push_back(static_cast<const std::int8_t*>(from)[i]); break;
    }
  }
}

}  // namespace llmperf::replay::cpu
