// What the cpu replay backend reaches: its products by Eigen and by oneDNN, and its decode products against the rate at
// which memory can be read. A plain program: llmperf_replay_benchmark
// [repetitions].
//
// The machine may be busy. So the contenders for one shape take turns, repetition by repetition, and what is printed is
// the median of their ratios within a repetition, beside each one's best.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "replay/cpu/cpu_backend.h"
#include "replay/cpu/machine.h"
#include "replay/thread_pool.h"

namespace {

using namespace llmperf;
using namespace llmperf::replay;
using measure::GemmShape;

struct Contender {
  std::string name;
  std::function<double()> time;  // seconds per execution; empty: cannot run this
  std::vector<double> seconds = {};
};

double best(const Contender& c) { return *std::min_element(c.seconds.begin(), c.seconds.end()); }

// Of the rates, which are what users compare: more is better.
double median_ratio(const Contender& c, const Contender& base) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < c.seconds.size(); ++i) ratios.push_back(base.seconds[i] / c.seconds[i]);
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2), ratios.end());
  return ratios[ratios.size() / 2];
}

void take_turns(std::vector<Contender>& contenders, int repetitions) {
  for (int i = 0; i < repetitions; ++i) {
    for (Contender& c : contenders) {
      if (c.time) c.seconds.push_back(c.time());
    }
  }
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// An op on a backend, prepared once; nothing where it cannot run.
std::function<double()> replayed(Backend& backend, const measure::OpRow& op, std::int64_t copies, std::int64_t passes) {
  auto made = backend.prepare(op, copies);
  if (const auto* reason = std::get_if<Unavailable>(&made)) {
    fmt::print(stderr, "{} {}: {}\n", op.op, measure::describe(op), reason->reason);
    return {};
  }
  std::shared_ptr<Prepared> ready = std::get<std::unique_ptr<Prepared>>(std::move(made));
  return [&backend, ready, passes] {
    Prepared* const sequence[] = {ready.get()};
    return backend.run(sequence, passes).value / static_cast<double>(passes);
  };
}

void products(int repetitions) {
  const auto eigen = cpu::make_cpu_backend({.threads = 0, .gemm = cpu::Gemm::eigen});
  std::unique_ptr<Backend> dnn;
  try {
    dnn = cpu::make_cpu_backend({.threads = 0, .gemm = cpu::Gemm::onednn});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
  }
  fmt::print("GFLOP/s, best; in brackets the median ratio to Eigen in fp32\n{:>18}", "m x n x k");
  for (const char* name : {"Eigen fp32", "oneDNN fp32", "Eigen bf16", "oneDNN bf16", "oneDNN int8"}) {
    fmt::print(" {:>15}", name);
  }
  fmt::print("\n");
  for (const std::int64_t m : {128, 512}) {
    for (const auto& [n, k] : {std::pair{3072, 1024}, {1024, 1024}, {5632, 1024}, {1024, 2816}, {4096, 4096}}) {
      const GemmShape s{.m = m, .n = n, .k = k};
      const double flops = 2.0 * static_cast<double>(m) * n * k;
      const auto passes = static_cast<std::int64_t>(std::max(2.0, 2e9 / flops));
      const auto op = [&](Dtype dtype) { return measure::OpRow{"gemm", dtype, s}; };
      std::vector<Contender> c;
      for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
        c.push_back({"Eigen", replayed(*eigen, op(dtype), 1, passes)});
        c.push_back({"oneDNN", dnn ? replayed(*dnn, op(dtype), 1, passes) : std::function<double()>()});
      }
      c.push_back({"int8", dnn ? replayed(*dnn, op(Dtype::int8), 1, passes) : std::function<double()>()});
      take_turns(c, repetitions);
      fmt::print("{:>18}", fmt::format("{} x {} x {}", m, n, k));
      for (const Contender& each : c) {
        if (each.seconds.empty()) {
          fmt::print(" {:>15}", "-");
        } else {
          const double ratio = c[0].seconds.empty() ? 0 : median_ratio(each, c[0]);
          fmt::print(" {:>15}", fmt::format("{:.1f} ({:.2f})", flops / best(each) / 1e9, ratio));
        }
      }
      fmt::print("\n");
    }
  }
}

// Memory walked by all threads: GB/s of what the method reads and writes.
std::function<double()> stream(ThreadPool& pool, std::vector<float>& a, std::vector<float>& b, bool triad) {
  return [&pool, &a, &b, triad] {
    const cpu::Kernels& kernels = cpu::kernels(cpu::supported_isas().back());
    float total = 0;
    const auto start = std::chrono::steady_clock::now();
    pool.run([&](const Team& team) {
      const auto part = part_of(static_cast<std::int64_t>(a.size()) / 2, 1024, team.thread, team.threads);
      const float* first = a.data() + part.first;
      const float* second = first + a.size() / 2;
      if (triad) {
        kernels.triad(first, second, b.data() + part.first, part.size());
      } else {
        const float sum = kernels.read(first, part.size()) + kernels.read(second, part.size());
        if (team.thread == 0) total = sum;
      }
    });
    const double seconds = seconds_since(start);
    return total > 1e30F ? 0 : seconds;
  };
}

void decode(int repetitions) {
  const auto backend = cpu::make_cpu_backend({.threads = 0, .gemm = cpu::Gemm::best});
  const cpu::Machine machine = cpu::read_machine();
  ThreadPool pool(machine.processors);
  constexpr std::size_t kFloats = 64U << 20U;  // 256 MiB
  std::vector<float> a(kFloats, 1);
  std::vector<float> b(kFloats / 2, 1);
  fmt::print("\nGB/s, best; in brackets the median ratio to reading\n{:>24} {:>15} {:>15} {:>15}\n", "m x n x k",
             "product", "reading", "triad");
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
    for (const auto& [m, n, k] : {std::tuple{1, 3072, 1024}, {1, 1024, 2816}, {1, 4096, 4096}, {4, 4096, 4096}}) {
      const GemmShape s{.m = m, .n = n, .k = k};
      const double bytes = static_cast<double>(n) * k * bytes_per_element(dtype);
      std::vector<Contender> c;
      c.push_back({"reading", stream(pool, a, b, false)});
      c.push_back({"product", replayed(*backend, {"gemm", dtype, s}, 0, static_cast<std::int64_t>(3e8 / bytes))});
      c.push_back({"triad", stream(pool, a, b, true)});
      take_turns(c, repetitions);
      for (double& seconds : c[0].seconds) seconds /= kFloats * 4.0 / bytes;  // per as many bytes as the product reads
      for (double& seconds : c[2].seconds) seconds /= kFloats * 6.0 / bytes;
      fmt::print("{:>24}", fmt::format("{} {} x {} x {}", name(dtype), m, n, k));
      for (const Contender* each : {&c[1], &c[0], &c[2]}) {
        fmt::print(" {:>15}", fmt::format("{:.1f} ({:.2f})", bytes / best(*each) / 1e9, median_ratio(*each, c[0])));
      }
      fmt::print("\n");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // rows as they are measured
  const int repetitions = argc > 1 ? std::max(1, std::atoi(argv[1])) : 7;
  products(repetitions);
  decode(repetitions);
}
