// This machine's processor as a device: the ops run in this process, on pinned threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "replay/backend.h"

namespace llmperf::replay::cpu {

// Who multiplies matrices. Eigen is always there, oneDNN where its library is installed.
enum class Gemm : unsigned char { best, eigen, onednn };

struct CpuOptions {
  int threads = 0;         // 0: one per processor that this process may run on
  Gemm gemm = Gemm::best;  // best: oneDNN where it is there, has a kernel and is the faster, else Eigen
};

// Throws Error(bad_input) for more threads than processors, Error(failed) for a library that was asked for and is not
// there.
std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options = {});

// With a choice that only tests make: the instruction set (machine.h).
enum class Isa : unsigned char;
std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options, Isa isa);
// The processors that a pool of `threads` threads (0: all) runs on. Throws Error(bad_input) for more than there are.
std::vector<int> processors_for(int threads, const std::vector<int>& available);

}  // namespace llmperf::replay::cpu
