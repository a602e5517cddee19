// Instruction sets that the kernels are compiled for. One binary runs anywhere: which set is used is decided when it
// runs, by what the processor says it has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/cpu/cpu_backend.h"
#include "replay/cpu/kernels.h"

namespace llmperf::replay::cpu {

enum class Isa : unsigned char { baseline, avx2, avx512 };

// What people call it: "AVX-512"; baseline: what every processor of the architecture has ("SSE2", "NEON").
std::string_view name(Isa isa);

// Those that this processor has (and this binary was compiled for), the widest last.
std::vector<Isa> supported_isas();

const Kernels& kernels(Isa isa);

// ---- What the operating system says of the processor and the memory.

struct CacheLevel {
  int level = 0;
  std::int64_t bytes = 0;      // of one
  std::int64_t instances = 1;  // that the processors of this process have together
  bool operator==(const CacheLevel&) const = default;
};

struct Machine {
  std::string model;            // "AMD EPYC 9654 96-Core Processor"; of the architecture where the system has no name
  std::string vendor;           // "AMD", "Intel"; may be empty
  std::vector<int> processors;  // this process may run on; one of every core before the second of any
  std::vector<CacheLevel> caches;  // of data, near to far
  std::int64_t memory = 0;         // bytes
  double clock_hz = 0;             // highest; 0 when it is not known
};

Machine read_machine();

// Bytes that this process can still take, by the system's and the container's accounts.
std::int64_t free_memory();

// The model's name, fit for a file name: "amd-epyc-9654" of "AMD EPYC 9654 96-Core Processor".
std::string device_name(std::string_view model);

// Bytes of all caches of the last level; 32 MiB when the system does not say.
std::int64_t last_level_bytes(const Machine& machine);

// What is to come from memory goes through as many times the last-level cache, in turn. Twice would do if caches
// evicted what was used longest ago; those that do not keep a part of twice their size, and made such reads up to twice
// as fast.
inline constexpr std::int64_t kRotatedCaches = 8;

// ---- This machine as a hardware file: what the operating system says of it, and what microbenchmarks measure.

// A YAML file that hardware::parse_device reads: name, cores, caches, memory, measured peak rates per element type
// (multiply-adds in registers: what no kernel can exceed) and the measured memory bandwidth (the fastest of reading,
// copying and the stream triad over arrays that no cache holds), each with provenance `measured`. Takes some seconds.
std::string describe_device(const CpuOptions& options = {});

}  // namespace llmperf::replay::cpu
