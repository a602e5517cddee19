// Speed of the mapper for arrays of tiles. The figures to hold, on one core: over 200 products from 1 x 1 x 16 to 65536
// cubed a search takes at most 1 ms in the median and 8 ms at worst, a selection 1 ms and 11 ms; a search of an
// attention at most 20 ms.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <vector>

#include "hardware/device.h"
#include "mapper/tile/attention.h"
#include "mapper/tile/gemm.h"
#include "mapper/tile/search.h"
#include "mapper/tile/simulation.h"
#include "mapper/tile/vector.h"

namespace {

using namespace llmperf;
using namespace llmperf::mapper::tile;

constexpr std::size_t kKeep = 3;  // as many as `map` shows

Machine tx8() { return make_machine(hardware::load_device("tx8"), Dtype::bf16); }

double milliseconds(std::chrono::steady_clock::duration passed) {
  return std::chrono::duration<double, std::milli>(passed).count();
}

// 200 products, every order of magnitude alike; the smallest and the largest among them.
std::vector<GemmProblem> products() {
  std::mt19937_64 random(5);
  const auto size = [&](double least) {
    return std::llround(std::exp(std::uniform_real_distribution<double>(std::log(least), std::log(65536.0))(random)));
  };
  std::vector<GemmProblem> result = {{.m = 1, .n = 1, .k = 16}, {.m = 65536, .n = 65536, .k = 65536}};
  while (result.size() < 200) result.push_back({.m = size(1), .n = size(1), .k = size(16)});
  return result;
}

// Runs `work` on every product; the median and the worst time become counters.
template <typename Work>
void over_products(benchmark::State& state, const Work& work) {
  const std::vector<GemmProblem> problems = products();
  std::vector<double> times(problems.size(), 1e30);  // the best of all runs
  for (auto _ : state) {
    for (std::size_t i = 0; i < problems.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      work(problems[i]);
      times[i] = std::min(times[i], milliseconds(std::chrono::steady_clock::now() - start));
    }
  }
  std::sort(times.begin(), times.end());
  state.counters["median_ms"] = times[times.size() / 2];
  state.counters["worst_ms"] = times.back();
}

void search_products(benchmark::State& state) {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Search<GemmProblem> search(machine, grids);
  over_products(state, [&](const GemmProblem& p) { benchmark::DoNotOptimize(search.best(p, kKeep)); });
}
BENCHMARK(search_products)->Unit(benchmark::kMillisecond);

// A user's wait: the search, the best and what is near to them simulated.
void select_products(benchmark::State& state) {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Search<GemmProblem> search(machine, grids);
  over_products(state, [&](const GemmProblem& p) { benchmark::DoNotOptimize(search.select(p, 1)); });
}
BENCHMARK(select_products)->Unit(benchmark::kMillisecond);

void search_attention(benchmark::State& state, const AttentionProblem& problem) {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Search<AttentionProblem> search(machine, grids);
  for (auto _ : state) benchmark::DoNotOptimize(search.best(problem, kKeep));
}
AttentionProblem attention(std::int64_t kv_heads, std::int64_t group, std::int64_t queries, std::int64_t keys,
                           bool causal) {
  AttentionProblem p;
  p.kv_heads = kv_heads;
  p.group = group;
  p.queries = queries;
  p.keys = keys;
  p.causal = causal;
  return p;
}
BENCHMARK_CAPTURE(search_attention, prefill_4k, attention(32, 1, 4096, 4096, false))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search_attention, causal_4k, attention(32, 1, 4096, 4096, true))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search_attention, causal_8k_grouped, attention(8, 8, 8192, 8192, true))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search_attention, causal_32k, attention(32, 1, 32768, 32768, true))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search_attention, causal_128k, attention(8, 8, 131072, 131072, true))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search_attention, decode, attention(8, 8, 1, 32768, true))->Unit(benchmark::kMillisecond);

void search_vector(benchmark::State& state) {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  Search<VectorProblem> search(machine, grids);
  const VectorProblem norm{216000, 1152, 2, 2, 2, 4, true};
  for (auto _ : state) benchmark::DoNotOptimize(search.best(norm, kKeep));
}
BENCHMARK(search_vector)->Unit(benchmark::kMillisecond);

void simulate_product(benchmark::State& state) {
  const Machine machine = tx8();
  const std::vector<Grid> grids = all_grids(machine);
  const GemmProblem p{.m = 4096, .n = 4096, .k = 4096};
  const Choice<GemmProblem> best = Search<GemmProblem>(machine, grids).best(p, 1).front();
  Schedule schedule;
  lower(machine, as_mapped(p, best.mapping), best.mapping, schedule);
  std::int64_t requests = 0;
  for (auto _ : state) requests += simulate(machine, schedule).requests;
  state.counters["requests_per_s"] = benchmark::Counter(static_cast<double>(requests), benchmark::Counter::kIsRate);
}
BENCHMARK(simulate_product)->Unit(benchmark::kMillisecond);

}  // namespace
