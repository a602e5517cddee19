// Instruction sets that the kernels are compiled for. One binary runs anywhere: which set is used is decided when it
// runs, by what the processor says it has.
#pragma once

#include <string_view>
#include <vector>

#include "replay/cpu/kernels.h"

namespace llmperf::replay::cpu {

enum class Isa : unsigned char { baseline, avx2, avx512 };

// What people call it: "AVX-512"; baseline: what every processor of the architecture has ("SSE2", "NEON").
std::string_view name(Isa isa);

// Those that this processor has (and this binary was compiled for), the widest last.
std::vector<Isa> supported_isas();

const Kernels& kernels(Isa isa);

}  // namespace llmperf::replay::cpu
