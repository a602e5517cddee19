#include "replay/cpu/operation.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>
#include <system_error>

#include "base/error.h"
#include "base/number.h"
#include "replay/operands.h"

namespace llmperf::replay::cpu {
namespace {

constexpr std::size_t kHugePage = 2U << 20U;

// Buffers that all began at the same offset in a page would fight for the same sets of the caches, and a store to one
// would hold up loads from another whose low address bits are equal. Each starts some cache lines after the one before.
std::size_t next_offset() {
  static std::atomic<std::size_t> count = 0;
  return count.fetch_add(1, std::memory_order_relaxed) % 8 * 9 * 64;
}

}  // namespace

Buffer::Buffer(std::int64_t bytes) : bytes_(bytes) {
  const std::size_t offset = next_offset();
  const std::size_t size = static_cast<std::size_t>(bytes) + offset + 64;  // kernels may look a vector ahead
  const bool huge = size >= kHugePage;
  const std::size_t mapped = size + (huge ? kHugePage : 0);
  void* mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    throw Error::failed(fmt::format("mmap of {} failed: {}", format_bytes_binary(Bytes{static_cast<double>(mapped)}),
                                    std::generic_category().message(errno)));
  }
  mapping_ = {mapping, Unmap{mapped}};
  auto* start = static_cast<std::byte*>(mapping);
  if (huge) {
    const auto over = reinterpret_cast<std::uintptr_t>(start) % kHugePage;
    if (over != 0) start += kHugePage - over;
    madvise(start, size, MADV_HUGEPAGE);  // advice: without it the pages are small
  }
  data_ = start + offset;
}

void Buffer::Unmap::operator()(void* mapping) const { munmap(mapping, bytes); }

namespace {

constexpr std::int64_t kGrain = 4096;  // a page of bytes at least

// Fewer bytes are written by the caller before the other threads would have woken up; where they lie matters little.
constexpr std::int64_t kSmall = 1 << 18;

void divide(ThreadPool& pool, std::int64_t bytes, const std::function<void(const Team&)>& work) {
  if (bytes <= kSmall) return work({});
  pool.run(work);
}

template <class T, class Convert>
void fill_as(void* to, std::int64_t first, std::int64_t count, const Fill& fill, const Convert& convert) {
  T* elements = static_cast<T*>(to);
  for (std::int64_t i = 0; i < count; ++i) {
    elements[i] = convert(fill_value(fill.operand, static_cast<std::uint64_t>(first + i)));
  }
}

}  // namespace

void fill_elements(void* to, Element element, std::int64_t first, std::int64_t count, const Fill& fill) {
  first += fill.first;
  const auto value = [&](float x) { return fill.offset + fill.scale * x; };
  switch (element) {
    case Element::f32: return fill_as<float>(to, first, count, fill, value);
    case Element::bf16:
      return fill_as<std::uint16_t>(to, first, count, fill, [&](float x) { return to_bf16(value(x)); });
    case Element::s8:
      return fill_as<std::int8_t>(to, first, count, fill,
                                  [](float x) { return static_cast<std::int8_t>(std::lround(127 * x)); });
    case Element::s32: return;  // of results alone
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

void Scratch::reserve(ThreadPool& pool, std::int64_t floats) {
  if (floats <= stride_) return;
  stride_ = whole_line_floats(floats);
  memory_ = zeroed(pool, pool.threads() * stride_ * 4);
}

std::byte* Operation::keep(Buffer buffer) {
  buffers_.push_back(std::move(buffer));
  return buffers_.back().data();
}

Rotated Operation::rotated(Buffer copies) {
  const std::int64_t stride = copies.bytes() / copies_;
  rotation_ = {keep(std::move(copies)), stride, copies_};
  return rotation_;
}

std::byte* Operation::output(Element element, std::int64_t count) {
  std::byte* data = room(count * bytes_of(element));
  add_output(data, element, count);
  return data;
}

std::vector<float> Operation::read() const {
  collect(turn_ - 1);
  std::vector<float> values;
  for (const Output& output : outputs_) {
    for (std::int64_t i = 0; i < output.count; ++i) {
      switch (output.element) {
        case Element::f32: values.push_back(reinterpret_cast<const float*>(output.data)[i]); break;
        case Element::bf16: values.push_back(from_bf16(reinterpret_cast<const std::uint16_t*>(output.data)[i])); break;
        case Element::s8: values.push_back(reinterpret_cast<const std::int8_t*>(output.data)[i]); break;
        case Element::s32:
          values.push_back(static_cast<float>(reinterpret_cast<const std::int32_t*>(output.data)[i]));
          break;
      }
    }
  }
  return values;
}

namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 46;  // beyond any memory, far from where sums overflow
// Copies of something tiny: more would only take time to fill.
constexpr std::int64_t kMaxCopies = 4096;

}  // namespace

std::int64_t Workshop::copies(std::int64_t asked, std::int64_t bytes, std::int64_t others) const {
  const std::int64_t free = free_memory();
  const std::int64_t needed = std::max<std::int64_t>(asked, 1) * bytes + others;
  const auto text = [](std::int64_t b) { return format_bytes_binary(Bytes{static_cast<double>(b)}); };
  require(asked <= kMaxCopies, fmt::format("{} copies are more than {}", asked, kMaxCopies));
  require(needed <= free, fmt::format("its operands take {}, and {} are free", text(needed), text(free)));
  if (asked > 0 || bytes == 0) return std::max<std::int64_t>(asked, 1);
  const std::int64_t wanted = std::clamp<std::int64_t>(kRotatedCaches * last_level / bytes + 1, 2, kMaxCopies);
  return std::max<std::int64_t>(1, std::min(wanted, free / 3 / bytes));
}

Element element_of(Dtype dtype, std::string_view op) {
  if (dtype == Dtype::fp32) return Element::f32;
  require(dtype == Dtype::bf16, fmt::format("no {} of {} here: fp32 and bf16 only", op, name(dtype)));
  return Element::bf16;
}

std::int64_t bytes_of_tensor(std::initializer_list<std::int64_t> extents, Element element) {
  std::int64_t bytes = bytes_of(element);
  for (const std::int64_t extent : extents) {
    require(extent >= 1 && extent <= kMaxBytes / bytes, "not a shape that fits in any memory");
    bytes *= extent;
  }
  return bytes;
}

}  // namespace llmperf::replay::cpu
