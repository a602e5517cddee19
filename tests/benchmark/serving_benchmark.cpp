// Speed of the simulation of serving, with a cost of steps that costs nothing itself. The figures to hold on one core:
// 1,000 requests shaped as Mooncake's, whose prompts share blocks in a tree, in at most 50 ms; an hour of Azure's
// conversations (19,366 requests) in at most 1 s. And of the search for the cheapest deployment of a model of 70 B
// parameters among all GPUs, on two cores: at most 1 s.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>

#include "service/capacity.h"
#include "serving/metrics.h"
#include "serving/random.h"
#include "serving/simulation.h"

namespace {

using namespace llmperf;
using namespace llmperf::serving;

// As a 70B model on four H100: 20 ms for the weights, 20,000 tokens of prompts a second.
Deployment deployment(std::int64_t replicas) {
  Deployment d;
  d.pool.blocks = 30000;
  d.pool.replicas = replicas;
  d.pool.cost = [](const estimate::StepShape& shape) {
    double ms = 20 + 0.02 * static_cast<double>(shape.decodes) + 1e-5 * static_cast<double>(shape.context_sum);
    for (const estimate::Chunk& c : shape.chunks) {
      ms += 0.05 * static_cast<double>(c.tokens) + 1e-8 * static_cast<double>(c.tokens * c.context);
    }
    return estimate::StepTime{Seconds{ms / 1e3}, Seconds{ms / 1e3}};
  };
  return d;
}

// Prompts of 12,000 tokens in the mean, the first blocks of 512 of which hang in a tree: each goes on with the blocks
// of a conversation before it, or begins one.
Workload mooncake() {
  constexpr std::int64_t kBlock = 512;
  Random random(1);
  Workload w;
  std::vector<std::vector<Segment>> conversations;
  std::uint64_t id = 0;
  double now = 0;
  for (int i = 0; i < 1000; ++i) {
    now += random.exponential() / 3;
    Request r;
    r.sent = Seconds{now};
    std::vector<Segment> content;
    if (!conversations.empty() && random.uniform() < 0.6) {
      content = conversations[static_cast<std::size_t>(random.uniform() * static_cast<double>(conversations.size()))];
      if (random.uniform() < 0.5) content.resize(content.size() / 2 + 1);
    }
    const std::int64_t begin = content.empty() ? 0 : content.back().end;
    r.input = std::max(begin + 1, static_cast<std::int64_t>(8700 * std::exp(0.8 * random.normal())));
    for (std::int64_t end = begin + kBlock; end <= r.input; end += kBlock) content.push_back({++id, end});
    r.output = static_cast<std::int64_t>(1 + 342 * random.exponential());
    r.first_segment = static_cast<std::int32_t>(w.segments.size());
    r.segments = static_cast<std::int32_t>(content.size());
    w.segments.insert(w.segments.end(), content.begin(), content.end());
    w.requests.push_back(r);
    if (!content.empty()) conversations.push_back(content);
  }
  return w;
}

Workload azure() {
  Load load;
  load.rate = 19366 / 3600.0;
  load.requests = 19366;
  load.input = {Lengths::Kind::lognormal, 1155, 0.5};
  load.output = {Lengths::Kind::lognormal, 211, 1};
  return make_workload(load);
}

void simulation(benchmark::State& state, const Workload& workload, EngineKind kind, std::int64_t replicas) {
  Deployment d = deployment(replicas);
  d.pool.settings.kind = kind;
  if (kind == EngineKind::sglang) {
    d.pool.settings.block_size = 1;
    d.pool.blocks *= 16;
  }
  Summary s;
  std::int64_t calls = 0;
  d.pool.cost = [&calls, cost = d.pool.cost](const estimate::StepShape& shape) {
    ++calls;
    return cost(shape);
  };
  for (auto _ : state) {
    calls = 0;
    const Run run = simulate(d, workload);
    state.PauseTiming();
    s = summarise(run, workload);
    state.ResumeTiming();
  }
  state.counters["steps"] = static_cast<double>(s.steps);
  state.counters["cost_calls"] = static_cast<double>(calls);
  state.counters["batch"] = s.mean_batch;
  state.counters["hits"] = s.prefix_hit_share;
  state.counters["busy"] = s.busy_share;
}

void mooncake_1000(benchmark::State& state, EngineKind kind, std::int64_t replicas) {
  simulation(state, mooncake(), kind, replicas);
}
void azure_hour(benchmark::State& state, EngineKind kind, std::int64_t replicas) {
  simulation(state, azure(), kind, replicas);
}

BENCHMARK_CAPTURE(mooncake_1000, vllm, EngineKind::vllm, 2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mooncake_1000, sglang, EngineKind::sglang, 2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(azure_hour, vllm, EngineKind::vllm, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(azure_hour, sglang, EngineKind::sglang, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(azure_hour, vllm_4_replicas, EngineKind::vllm, 4)->Unit(benchmark::kMillisecond);

void summary_of_an_hour(benchmark::State& state) {
  const Workload w = azure();
  const Run run = simulate(deployment(1), w);
  for (auto _ : state) benchmark::DoNotOptimize(summarise(run, w).itl.p99);
}
BENCHMARK(summary_of_an_hour)->Unit(benchmark::kMillisecond);

void capacity_70b(benchmark::State& state, const char* input, const char* output) {
  service::CapacityQuery query{.threads = 2};
  query.request.model = "llama-3.3-70b";
  query.request.rate = 20;
  query.request.slo = "ttft.p99=1s,tpot.p99=50ms";
  query.request.hw = "all";
  query.request.tp = "1,2,4,8";
  query.request.weights = "bf16,fp8";
  query.request.input = input;
  query.request.output = output;
  result::CapacityResult result;
  for (auto _ : state) {
    request::Sources sources;
    result = service::search_capacity(query, sources);
  }
  state.counters["candidates"] = static_cast<double>(result.candidates.size());
  state.counters["simulated"] =
      static_cast<double>(std::ranges::count(result.candidates, true, &result::Candidate::simulated));
}
BENCHMARK_CAPTURE(capacity_70b, fixed, "1024", "128")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(capacity_70b, azure, "lognormal:1155:0.5", "lognormal:211:1")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
