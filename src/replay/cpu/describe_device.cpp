#include "replay/cpu/describe_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/number.h"
#include "replay/cpu/machine.h"
#include "replay/cpu/make_cpu_backend.h"
#include "replay/cpu/peaks.h"

namespace llmperf::replay::cpu {
namespace {

constexpr std::int64_t kMinArrays = std::int64_t{256} << 20;  // bytes that no cache holds, where none is known

// "- {name: L2, capacity: 2 MiB, provenance: measured}" for every level but memory.
std::string cache_line(const CacheLevel& cache) {
  return fmt::format("  - {{name: L{}, capacity: {} KiB, provenance: measured}}\n", cache.level,
                     cache.bytes * cache.instances / 1024);
}

std::string peak_line(const char* engine, const MeasuredPeak& peak) {
  return fmt::format("  - {{engine: {}, dtype: {}, rate: {:.1f} GFLOP/s, provenance: measured}}  # {}\n", engine,
                     name(peak.dtype), peak.rate.value / 1e9, peak.how);
}

// Text in single quotes, as YAML wants them inside.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') result += '\'';
    result += c;
  }
  return result + "'";
}

}  // namespace

std::string describe_device(const CpuOptions& options) {
  const Machine machine = read_machine();
  ThreadPool pool(processors_for(options.threads, machine.processors));
  const Isa isa = supported_isas().back();
  const Kernels& table = kernels(isa);

  const MeasuredPeak vector = vector_peak(pool, table);
  const std::vector<MeasuredPeak> matrix = matrix_peaks(pool);
  const std::int64_t arrays = std::max(kMinArrays, std::int64_t{3} * kRotatedCaches * last_level_bytes(machine));
  const std::int64_t free = free_memory();
  if (free < 3 * kMinArrays) throw Error::failed("too little free memory to measure its bandwidth");
  const MeasuredBandwidth memory = memory_bandwidth(pool, table, std::min(arrays, free / 3));
  const BytesPerSecond fastest = std::max({memory.read, memory.copy, memory.triad});

  std::string text = fmt::format(
      "# This machine as `llmperf replay` measured it: peak rates are of multiply-adds in registers, which no kernel\n"
      "# exceeds; the bandwidth is the fastest of reading ({}), copying ({}) and the stream\n"
      "# triad ({}).\n",
      format_bandwidth(memory.read), format_bandwidth(memory.copy), format_bandwidth(memory.triad));
  text += fmt::format("name: {}\ntitle: {}\n", quoted(device_name(machine.model)), quoted(machine.model));
  if (!machine.vendor.empty()) text += fmt::format("vendor: {}\n", quoted(machine.vendor));
#if defined(__aarch64__)
  text += "family: cpu-arm\n";
#else
  text += "family: cpu-x86\n";
#endif
  text += fmt::format("kind: cpu\nsource: measured with {} on {} thread{}\n", name(isa), pool.threads(),
                      pool.threads() == 1 ? "" : "s");
  text += "peaks:\n" + peak_line("vector", vector);
  for (const MeasuredPeak& peak : matrix) text += peak_line("matrix", peak);
  text += "memory:\n";
  for (const CacheLevel& cache : machine.caches) text += cache_line(cache);
  text += fmt::format(
      "  - {{name: DRAM, capacity: {} KiB, bandwidth: {:.2f} GB/s, provenance: measured, bandwidth_provenance: "
      "measured}}\n",
      machine.memory / 1024, fastest.value / 1e9);
  text += fmt::format("cores: {}\n", pool.threads());
  if (machine.clock_hz > 0) text += fmt::format("clock: {:.0f} MHz\n", machine.clock_hz / 1e6);
  return text;
}

}  // namespace llmperf::replay::cpu
