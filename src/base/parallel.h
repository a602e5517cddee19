// Work in pieces that do not depend on each other.
#pragma once

#include <cstddef>
#include <functional>

namespace llmperf {

// Calls work(0) to work(count - 1), each once and in any order, on up to so many threads; 0: as many as there are
// cores. Where a system has no threads, and within work of this kind, one after the other. Throws what one of them
// threw, when all that had begun are over.
void in_parallel(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace llmperf
