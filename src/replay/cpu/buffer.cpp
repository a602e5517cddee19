#include "replay/cpu/buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/number.h"

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
  mapping_ = mapping;
  mapped_ = mapped;
  auto* start = static_cast<std::byte*>(mapping);
  if (huge) {
    const auto over = reinterpret_cast<std::uintptr_t>(start) % kHugePage;
    if (over != 0) start += kHugePage - over;
    madvise(start, size, MADV_HUGEPAGE);  // advice: without it the pages are small
  }
  data_ = start + offset;
}

Buffer::~Buffer() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

}  // namespace llmperf::replay::cpu
