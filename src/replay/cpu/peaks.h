// Microbenchmarks of the processor and the memory, for describing the machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"
#include "replay/cpu/machine.h"
#include "replay/cpu/thread_pool.h"

namespace llmperf::replay::cpu {

struct MeasuredPeak {
  Dtype dtype;
  FlopsPerSecond rate;
  std::string how;  // "vdpbf16ps in registers"
};

// Multiply-adds of vectors of fp32 on all threads at once, in registers.
MeasuredPeak vector_peak(ThreadPool& pool, const Kernels& kernels);

// Of instructions that multiply narrower types and add in pairs or fours: avx512_bf16 and avx512_vnni. Empty where the
// processor has none.
std::vector<MeasuredPeak> matrix_peaks(ThreadPool& pool);

struct MeasuredBandwidth {
  BytesPerSecond read;   // a sum
  BytesPerSecond copy;   // bytes read and written
  BytesPerSecond triad;  // a = b + 3 c, likewise
};

// Over arrays of `bytes` in total.
MeasuredBandwidth memory_bandwidth(ThreadPool& pool, const Kernels& kernels, std::int64_t bytes);

}  // namespace llmperf::replay::cpu
