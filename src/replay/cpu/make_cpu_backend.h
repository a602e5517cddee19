// The backend with a choice that only tests make: the instruction set.
#pragma once

#include <memory>

#include "replay/cpu/cpu_backend.h"
#include "replay/cpu/machine.h"

namespace llmperf::replay::cpu {

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options, Isa isa);

// The processors that a pool of `threads` threads (0: all) runs on. Throws Error(bad_input) for more than there are.
std::vector<int> processors_for(int threads, const std::vector<int>& available);

}  // namespace llmperf::replay::cpu
