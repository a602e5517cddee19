// This machine as a hardware file: what the operating system says of it, and what microbenchmarks measure.
#pragma once

#include <string>

#include "replay/cpu/cpu_backend.h"

namespace llmperf::replay::cpu {

// A YAML file that hardware::parse_device reads: name, cores, caches, memory, measured peak rates per element type
// (multiply-adds in registers: what no kernel can exceed) and the measured memory bandwidth (the fastest of reading,
// copying and the stream triad over arrays that no cache holds), each with provenance `measured`. Takes some seconds.
std::string describe_device(const CpuOptions& options = {});

}  // namespace llmperf::replay::cpu
