// Filling operands as operands.h says, on all threads, so that pages lie where they are used.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/cpu/buffer.h"
#include "replay/cpu/kernels.h"
#include "replay/cpu/thread_pool.h"

namespace llmperf::replay::cpu {

// offset + scale fill_value(operand, i); s8: rounded(127 fill_value).
struct Fill {
  std::uint32_t operand = 0;
  float scale = 1;
  float offset = 0;
};

// Elements [first, first + count) of an operand.
void fill_elements(void* to, Element element, std::int64_t first, std::int64_t count, const Fill& fill);

// Room for `copies` times `count` elements, each copy from a new cache line on, all filled with the same values.
Buffer filled(ThreadPool& pool, Element element, std::int64_t count, std::int64_t copies, const Fill& fill);

// `copies` - 1 further copies of the `stride` bytes at `data` behind them.
void replicate(ThreadPool& pool, std::byte* data, std::int64_t stride, std::int64_t copies);

// An untouched buffer, zeroed by the threads that will use its parts.
Buffer zeroed(ThreadPool& pool, std::int64_t bytes);

void append_floats(std::vector<float>& to, const void* from, Element element, std::int64_t count);

}  // namespace llmperf::replay::cpu
