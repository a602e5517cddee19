#include "replay/cpu/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <set>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

namespace llmperf::replay::cpu {

extern const Kernels kBaselineKernels;
#ifdef LLMPERF_X86_KERNELS
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

std::string_view name(Isa isa) {
  switch (isa) {
    case Isa::avx2: return "AVX2";
    case Isa::avx512: return "AVX-512";
    case Isa::baseline: break;
  }
#if defined(__x86_64__)
  return "SSE2";
#elif defined(__aarch64__)
  return "NEON";
#else
  return "scalar";
#endif
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas = {Isa::baseline};
#ifdef LLMPERF_X86_KERNELS
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    isas.push_back(Isa::avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      isas.push_back(Isa::avx512);
    }
  }
#endif
  return isas;
}

const Kernels& kernels(Isa isa) {
#ifdef LLMPERF_X86_KERNELS
  if (isa == Isa::avx2) return kAvx2Kernels;
  if (isa == Isa::avx512) return kAvx512Kernels;
#endif
  (void)isa;
  return kBaselineKernels;
}

namespace {

// The first line of a file of /sys or /proc, without blanks at its ends; empty where there is no such file.
std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(trim(line));
}

// The value behind "key :" in a list such as /proc/cpuinfo; empty when it has no such key.
std::string value_of(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && trim(std::string_view(line).substr(0, colon)) == key) {
      return std::string(trim(std::string_view(line).substr(colon + 1)));
    }
  }
  return {};
}

// "123456 kB"
std::int64_t kilobytes(const std::string& text) { return parse_int(text.substr(0, text.find(' '))).value_or(0) * 1024; }

// "48K", "1024K", "32M"
std::int64_t cache_size(std::string text) {
  std::int64_t unit = 1;
  if (text.ends_with('K')) unit = 1024;
  if (text.ends_with('M')) unit = 1 << 20;
  if (unit > 1) text.pop_back();
  return parse_int(text).value_or(0) * unit;
}

std::string processor_folder(int processor) { return fmt::format("/sys/devices/system/cpu/cpu{}", processor); }

std::vector<int> allowed_processors() {
  std::vector<int> allowed;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(static_cast<unsigned>(i), &set)) allowed.push_back(i);
    }
  }
  if (allowed.empty()) allowed.push_back(0);
  // Fewer threads than processors should have cores of their own: a core's first thread before any second one.
  std::map<std::string, int> seen;
  std::vector<std::pair<int, int>> ranked;
  for (const int processor : allowed) {
    const std::string core = line_of(processor_folder(processor) + "/topology/thread_siblings_list");
    ranked.emplace_back(core.empty() ? 0 : seen[core]++, processor);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(ranked.begin(), ranked.end(), allowed.begin(), [](const auto& pair) { return pair.second; });
  return allowed;
}

std::vector<CacheLevel> read_caches(const std::vector<int>& processors) {
  std::map<int, std::pair<std::int64_t, std::set<std::string>>> levels;  // bytes; who shares one
  for (const int processor : processors) {
    for (int index = 0; index < 16; ++index) {
      const std::string folder = fmt::format("{}/cache/index{}/", processor_folder(processor), index);
      const auto level = parse_int(line_of(folder + "level"));
      if (!level) break;
      if (line_of(folder + "type") == "Instruction") continue;
      auto& [bytes, sharers] = levels[static_cast<int>(*level)];
      bytes = std::max(bytes, cache_size(line_of(folder + "size")));
      sharers.insert(line_of(folder + "shared_cpu_list"));
    }
  }
  std::vector<CacheLevel> caches;
  for (const auto& [level, found] : levels) {
    if (found.first > 0) caches.push_back({level, found.first, static_cast<std::int64_t>(found.second.size())});
  }
  return caches;
}

std::string vendor_of(const std::string& id) {
  if (id == "AuthenticAMD") return "AMD";
  if (id == "GenuineIntel") return "Intel";
  if (id == "HygonGenuine") return "Hygon";
  return id;
}

// What is left below a limit of the container (cgroup 2), if it has one.
std::optional<std::int64_t> left_in_container() {
  const auto limit = parse_int(line_of("/sys/fs/cgroup/memory.max"));
  const auto used = parse_int(line_of("/sys/fs/cgroup/memory.current"));
  if (!limit || !used) return std::nullopt;
  return std::max<std::int64_t>(0, *limit - *used);
}

}  // namespace

Machine read_machine() {
  Machine machine;
  machine.model = value_of("/proc/cpuinfo", "model name");
  machine.vendor = vendor_of(value_of("/proc/cpuinfo", "vendor_id"));
  if (machine.model.empty()) {
    utsname system = {};
    machine.model = uname(&system) == 0 ? fmt::format("{} CPU", system.machine) : "CPU";
  }
  machine.processors = allowed_processors();
  machine.caches = read_caches(machine.processors);
  machine.memory = kilobytes(value_of("/proc/meminfo", "MemTotal"));
  const std::string folder = processor_folder(machine.processors.front());
  if (const auto khz = parse_int(line_of(folder + "/cpufreq/cpuinfo_max_freq"))) {
    machine.clock_hz = 1e3 * static_cast<double>(*khz);
  } else if (const auto mhz = parse_double(value_of("/proc/cpuinfo", "cpu MHz"))) {
    machine.clock_hz = 1e6 * *mhz;
  }
  return machine;
}

std::int64_t free_memory() {
  const std::int64_t system = kilobytes(value_of("/proc/meminfo", "MemAvailable"));
  const auto container = left_in_container();
  return container ? std::min(system, *container) : system;
}

std::string device_name(std::string_view model) {
  const std::string lower = to_lower(model);
  std::string name;
  for (std::string_view word : split(lower, ' ')) {
    if (word == "@") break;  // a clock follows
    std::string kept;
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (word[i] == '(')
        i = std::min(word.find(')', i), word.size() - 1);  // "(R)", "(TM)"
      else if (std::isalnum(static_cast<unsigned char>(word[i])) != 0)
        kept += word[i];
      else if (!kept.empty() && kept.back() != '-')
        kept += '-';
    }
    while (kept.ends_with('-')) kept.pop_back();
    if (kept.empty() || kept == "cpu" || kept == "processor" || kept.ends_with("-core")) continue;
    name += name.empty() ? kept : '-' + kept;
  }
  return name.empty() ? "cpu" : name;
}

std::int64_t last_level_bytes(const Machine& machine) {
  if (machine.caches.empty()) return std::int64_t{32} << 20;
  return machine.caches.back().bytes * machine.caches.back().instances;
}

}  // namespace llmperf::replay::cpu
