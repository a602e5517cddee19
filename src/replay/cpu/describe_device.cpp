// Microbenchmarks of the processor and the memory, and the machine described by them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/error.h"
#include "base/number.h"
#include "replay/cpu/operation.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace llmperf::replay::cpu {
namespace {

struct MeasuredPeak {
  const char* engine;
  Dtype dtype;
  FlopsPerSecond rate;
  const char* how;
};

struct MeasuredBandwidth {
  BytesPerSecond read;   // a sum
  BytesPerSecond copy;   // bytes read and written
  BytesPerSecond triad;  // a = b + 3 c, likewise
};

using Clock = std::chrono::steady_clock;

// Many short tries: between what else the machine does there are quiet moments on all processors at once.
constexpr double kTryTime = 0.003;  // seconds, at least
constexpr double kTotalTime = 0.4;  // of all tries, at least
constexpr int kTries = 5;           // at least

// The shortest of some tries of work(team, amount), with an amount that takes about kTryTime; per unit of the amount.
double seconds_per_unit(ThreadPool& pool, std::int64_t amount,
                        const std::function<void(const Team&, std::int64_t)>& work) {
  const auto timed = [&] {
    double seconds = 0;
    pool.run([&](const Team& team) {
      team.wait();
      const auto start = Clock::now();
      work(team, amount);
      team.wait();
      if (team.thread == 0) seconds = std::chrono::duration<double>(Clock::now() - start).count();
    });
    return seconds;
  };
  double seconds = timed();
  while (seconds < kTryTime) {
    amount *= 2;
    seconds = timed();
  }
  double total = 0;
  for (int i = 0; i < kTries || total < kTotalTime; ++i) {
    const double next = timed();
    total += next;
    seconds = std::min(seconds, next);
  }
  return seconds / static_cast<double>(amount);
}

constexpr std::int64_t kRounds = 1 << 12;

// Where results go that nobody wants, so that they are computed.
void use(double value) { asm volatile("" : : "m"(value)); }

#if defined(__x86_64__)

// In assembly, because g++ 12 moves the sums of these instructions from register to register around each of them.
//
// Chains enough for a latency of 5 cycles at two instructions a cycle, and a few for good measure.
constexpr int kChains = 20;

__attribute__((target("avx512f,avx512bf16"))) void multiply_bf16(std::int64_t rounds) {
  __m512 chains[kChains];
  for (auto& chain : chains) chain = _mm512_setzero_ps();
  const __m512i ones = _mm512_set1_epi32(0x3f803f80);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 32
    for (auto& chain : chains) asm volatile("vdpbf16ps %1, %1, %0" : "+v"(chain) : "v"(ones));
  }
}

__attribute__((target("avx512f,avx512vnni"))) void multiply_int8(std::int64_t rounds) {
  __m512i chains[kChains];
  for (auto& chain : chains) chain = _mm512_setzero_si512();
  const __m512i ones = _mm512_set1_epi8(1);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 32
    for (auto& chain : chains) asm volatile("vpdpbusd %1, %1, %0" : "+v"(chain) : "v"(ones));
  }
}

#endif

// Multiply-adds on all threads at once, in registers: of vectors of fp32, and by instructions that multiply narrower
// types and add in pairs or fours, where the processor has them.
std::vector<MeasuredPeak> measure_peaks(ThreadPool& pool, const Kernels& kernels) {
  std::vector<MeasuredPeak> peaks;
  const auto add = [&](const char* engine, Dtype dtype, std::int64_t flops_per_round, const char* how,
                       const std::function<void(std::int64_t rounds)>& multiply) {
    const double seconds = seconds_per_unit(pool, kRounds, [&](const Team&, std::int64_t rounds) { multiply(rounds); });
    peaks.push_back(
        {engine, dtype, FlopsPerSecond{static_cast<double>(flops_per_round * pool.threads()) / seconds}, how});
  };
  add("vector", Dtype::fp32, kernels.flops_per_round, "multiply-adds in registers",
      [&](std::int64_t rounds) { use(static_cast<double>(kernels.fma(rounds))); });
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bf16")) {  // 16 sums of 2 products
    add("matrix", Dtype::bf16, std::int64_t{16} * 2 * 2 * kChains, "vdpbf16ps in registers", multiply_bf16);
  }
  if (__builtin_cpu_supports("avx512vnni")) {  // 16 sums of 4 products
    add("matrix", Dtype::int8, std::int64_t{16} * 4 * 2 * kChains, "vpdpbusd in registers", multiply_int8);
  }
#endif
  return peaks;
}

// Over arrays of `bytes` in total.
MeasuredBandwidth memory_bandwidth(ThreadPool& pool, const Kernels& kernels, std::int64_t bytes) {
  const std::int64_t each = bytes / 3 / 64 * 16;  // floats
  // Not of zeros, which a machine may hold for less than they are.
  const Buffer buffer = filled(pool, Element::f32, 3 * each, 1, {.operand = 0});
  float* a = buffer.as<float>();
  float* b = a + each;
  float* c = b + each;
  const auto rate = [&](double tensors, const std::function<void(Range)>& walk) {
    const double seconds = seconds_per_unit(pool, 1, [&](const Team& team, std::int64_t times) {
      const Range part = part_of(each, 1024, team.thread, team.threads);
      for (std::int64_t i = 0; i < times; ++i) walk(part);
    });
    return BytesPerSecond{tensors * static_cast<double>(each) * 4 / seconds};
  };
  MeasuredBandwidth found;
  found.read = rate(3, [&](Range r) {
    for (const float* from : {a, b, c}) use(static_cast<double>(kernels.read(from + r.first, r.size())));
  });
  found.copy = rate(2, [&](Range r) { kernels.copy(a + r.first, b + r.first, r.size()); });
  found.triad = rate(3, [&](Range r) { kernels.triad(a + r.first, b + r.first, c + r.first, r.size()); });
  return found;
}

constexpr std::int64_t kMinArrays = std::int64_t{256} << 20;  // bytes that no cache holds, where none is known

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

  const std::vector<MeasuredPeak> peaks = measure_peaks(pool, table);
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
  text += "peaks:\n";
  for (const auto& [engine, dtype, rate, how] : peaks) {
    text += fmt::format("  - {{engine: {}, dtype: {}, rate: {:.1f} GFLOP/s, provenance: measured}}  # {}\n", engine,
                        name(dtype), rate.value / 1e9, how);
  }
  text += "memory:\n";
  for (const CacheLevel& cache : machine.caches) {
    text += fmt::format("  - {{name: L{}, capacity: {} KiB, provenance: measured}}\n", cache.level,
                        cache.bytes * cache.instances / 1024);
  }
  text += fmt::format(
      "  - {{name: DRAM, capacity: {} KiB, bandwidth: {:.2f} GB/s, provenance: measured, bandwidth_provenance: "
      "measured}}\n",
      machine.memory / 1024, fastest.value / 1e9);
  text += fmt::format("cores: {}\n", pool.threads());
  if (machine.clock_hz > 0) text += fmt::format("clock: {:.0f} MHz\n", machine.clock_hz / 1e6);
  return text;
}

}  // namespace llmperf::replay::cpu
