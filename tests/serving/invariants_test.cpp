// What holds of every run, over random engines, replicas and workloads.
#include <algorithm>
#include <cmath>
#include <thread>

#include "catch.h"
#include "serving/metrics.h"
#include "serving/random.h"
#include "serving/simulation.h"
#include "serving/step_log.h"

namespace llmperf::invariants_test {

using namespace llmperf::serving;

namespace {

// 10 ms, 1 ms for each row and 10 us for each cached token: more of anything is never faster.
estimate::StepTime linear_cost(const estimate::StepShape& shape) {
  double ms = 10 + static_cast<double>(shape.decodes) + 0.01 * static_cast<double>(shape.context_sum);
  for (const estimate::Chunk& c : shape.chunks) {
    ms += static_cast<double>(c.tokens) + 0.01 * static_cast<double>(c.context);
  }
  return {Seconds{ms / 1e3}, Seconds{ms / 2e3}};
}

struct Case {
  Deployment deployment;
  Workload workload;
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, 77) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_.uniform() * d(high - low + 1));
  }
  bool chance(double p) { return random_.uniform() < p; }
  double uniform() { return random_.uniform(); }

 private:
  static double d(std::int64_t n) { return static_cast<double>(n); }
  Random random_;
};

Case random_case(std::uint64_t seed) {
  Draw draw(seed);
  const auto kind = static_cast<EngineKind>(draw.between(0, 3));
  EngineSettings s = steps::engine(kind, draw.between(16, 200), 1);
  if (kind == EngineKind::vllm || kind == EngineKind::trtllm) s.block_size = draw.between(1, 20);
  s.max_sequences = draw.between(1, 20);
  s.prefix_caching = draw.chance(0.7);
  s.max_prefill_tokens = draw.between(100, 400);
  s.mixes = draw.chance(0.3);
  s.conservativeness = draw.chance(0.5) ? 1 : 0.2;
  s.reserves_full_input = draw.chance(0.5);
  s.watermark = draw.chance(0.2) ? 0.05 : 0;
  s.asynchronous = draw.chance(0.5);
  s.host_step = Seconds{0.001};
  s.frontend = Seconds{draw.chance(0.3) ? 0.002 : 0};
  s.long_prefill_threshold = draw.chance(0.2) ? 32 : 0;
  if (draw.chance(0.5)) s.admission = Admission::max_utilisation;
  Case c;
  Deployment& d = c.deployment;
  d.pool = {.settings = s, .cost = linear_cost, .replicas = draw.between(1, 3)};
  if (draw.chance(0.3)) d.pool.stages = draw.between(2, 4);
  if (draw.chance(0.2)) d.pool.ranks = 2;
  // Room for one request, and not for many.
  d.pool.blocks = (400 + draw.between(0, 800)) / s.block_size + 2;
  if (draw.chance(0.3)) d.drafts = draw.between(1, 4);
  d.acceptance = estimate::Acceptance(0.6);
  d.router = static_cast<Router>(draw.between(0, 2));
  if (kind != EngineKind::llama_cpp && draw.chance(0.3)) {
    d.decode = d.pool;
    d.decode->replicas = draw.between(1, 3);
    d.transfer = {.per_token = Bytes{1e5}, .rate = BytesPerSecond{1e9}, .latency = Seconds{0.002}};
  }
  Load load;
  load.seed = seed;
  load.requests = 60;
  load.input = {Lengths::Kind::uniform, 1, 120};
  load.output = {Lengths::Kind::uniform, 1, 80};
  if (draw.chance(0.7)) load.rate = 0.3 + 10 * draw.uniform();
  if (!load.rate || draw.chance(0.2)) load.concurrency = draw.between(1, 15);
  if (draw.chance(0.4)) load.prefix = {draw.between(1, 100), draw.between(1, 4)};
  if (draw.chance(0.2)) load.turns = 2;
  c.workload = make_workload(load);
  return c;
}

double sum(const Causes& causes) {
  double s = 0;
  for (const double c : causes) s += c;
  return s;
}
Summary summary(const Deployment& d, const Load& load) {
  const Workload w = make_workload(load);
  return summarise(simulate(d, w), w);
}
template <class Of>
double median(Of of) {
  std::vector<double> values;
  for (std::uint64_t seed = 0; seed < 9; ++seed) values.push_back(of(seed));
  std::ranges::sort(values);
  return values[4];
}
Deployment vllm() {
  Deployment d;
  d.pool = {.settings = steps::engine(EngineKind::vllm, 512, 16), .cost = linear_cost, .blocks = 400};
  return d;
}
Load busy() {
  Load load;
  load.rate = 3;
  load.requests = 150;
  load.input = {Lengths::Kind::uniform, 50, 150};
  load.output = {Lengths::Kind::uniform, 5, 30};
  return load;
}

}  // namespace

TEST_CASE("requests and tokens are conserved, the cache is never over-full, and no more than all of the time is used") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    const Case c = random_case(seed);
    const Run run = simulate(c.deployment, c.workload, {.seed = seed, .timeline = true});
    const std::int64_t replicas =
        c.deployment.pool.replicas + (c.deployment.decode ? c.deployment.decode->replicas : 0);
    for (std::size_t i = 0; i < run.requests.size(); ++i) {
      const std::int32_t before = c.workload.requests[i].after;
      if (before >= 0) REQUIRE(run.requests[i].sent >= run.requests[static_cast<std::size_t>(before)].last);
    }
    std::int64_t after_first = 0, prompts = 0, reused = 0, preemptions = 0;
    double gap_time = 0, of_requests = 0;
    for (const Served& r : run.requests) {
      REQUIRE(r.ended);
      REQUIRE(r.sent < r.first);
      REQUIRE(r.first <= r.last);
      REQUIRE((r.output > 1 || c.deployment.decode || r.first == r.last));
      REQUIRE(r.reused < r.input * (c.deployment.decode ? 2 : 1));
      REQUIRE(r.replica < replicas);
      // What it waited for and was computed in is its TTFT.
      for (const double cause : r.causes) REQUIRE(cause > -1e-9);
      REQUIRE(std::abs(sum(r.causes) - r.ttft().value) < 1e-9 * (1 + r.ttft().value));
      after_first += r.output - 1;
      prompts += r.input;
      reused += r.reused;
      preemptions += r.preemptions;
      of_requests += (r.last - r.first).value;
    }
    REQUIRE(preemptions == run.preemptions);
    std::int64_t gaps = 0;
    for (const auto& [seconds, count] : run.gaps) {
      REQUIRE(seconds > 0);
      gaps += count;
      gap_time += seconds * static_cast<double>(count);
    }
    if (c.deployment.drafts == 0) {
      REQUIRE(gaps == after_first);
    } else {
      REQUIRE(gaps <= after_first);
    }
    REQUIRE(gap_time == Approx(of_requests));
    const GapCauses& g = run.gap_causes;
    if (c.deployment.pool.stages == 1) REQUIRE(g.decode + g.prefill + g.stall == Approx(gap_time));
    // Every token of a prompt is computed or was cached; what is preempted is computed again.
    if (run.preemptions == 0 && !c.deployment.decode) REQUIRE(run.prompt_tokens == prompts - reused);
    if (run.preemptions > 0) REQUIRE(run.prompt_tokens >= prompts - reused);
    REQUIRE(run.kv_peak_share <= 1);
    REQUIRE(run.busy <= (run.end.value + 1e-9) * static_cast<double>(run.replicas));
    std::int64_t steps = 0;
    for (const Interval& i : run.timeline) {
      steps += i.steps;
      REQUIRE(i.begin < i.end);
      const bool decodes = c.deployment.decode && i.replica >= c.deployment.pool.replicas;
      const Pool& pool = decodes ? *c.deployment.decode : c.deployment.pool;
      REQUIRE(i.blocks <= pool.blocks * pool.ranks);
      REQUIRE(i.kv_share == Approx(static_cast<double>(i.blocks) / static_cast<double>(pool.blocks * pool.ranks)));
      REQUIRE(i.prompt_tokens + i.decodes * (1 + c.deployment.drafts) <=
              std::max(c.deployment.pool.settings.max_batched_tokens, c.deployment.pool.settings.max_prefill_tokens) *
                      c.deployment.pool.ranks +
                  20 * (1 + c.deployment.drafts) * c.deployment.pool.ranks);
    }
    REQUIRE(steps == run.steps);
  }
}

TEST_CASE("steps that are taken at once are those that are taken one by one") {
  // The requests go to the first of 64 replicas in turn; between two of them the others get 63, each of whose arrivals
  // ends a run of steps.
  constexpr std::size_t kReplicas = 64;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    INFO("seed " << seed);
    Case c = random_case(seed);
    Deployment& d = c.deployment;
    if (!c.workload.open || c.workload.concurrency) continue;
    for (Request& r : c.workload.requests) r.after = -1;  // a turn that waits would go to another one
    d.decode.reset();
    d.drafts = 0;
    d.pool.stages = 1;
    d.pool.replicas = 1;
    d.pool.settings.frontend = {};
    const Run together = simulate(d, c.workload, {.timeline = true});
    Workload w = c.workload;
    w.requests.clear();
    for (std::size_t i = 0; i < c.workload.requests.size(); ++i) {
      const Request& r = c.workload.requests[i];
      w.requests.push_back(r);
      const double next = i + 1 < c.workload.requests.size() ? c.workload.requests[i + 1].sent.value : r.sent.value + 1;
      for (std::size_t k = 1; k < kReplicas; ++k) {
        Request other;
        other.sent = r.sent + Seconds{(next - r.sent.value) * static_cast<double>(k) / kReplicas};
        w.requests.push_back(other);
      }
    }
    d.pool.replicas = kReplicas;
    d.router = Router::round_robin;
    const Run apart = simulate(d, w, {.timeline = true});
    for (std::size_t i = 0; i < c.workload.requests.size(); ++i) {
      const Served& a = together.requests[i];
      const Served& b = apart.requests[i * kReplicas];
      REQUIRE(b.replica == 0);
      REQUIRE(a.first == b.first);
      REQUIRE(a.last == b.last);
      REQUIRE(a.reused == b.reused);
      REQUIRE(a.preemptions == b.preemptions);
    }
    const auto intervals = [](const Run& run) {
      return std::ranges::count_if(run.timeline, [](const Interval& i) { return i.replica == 0; });
    };
    REQUIRE(intervals(apart) >= intervals(together));
  }
}

TEST_CASE("no request is faster than alone") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    INFO("seed " << seed);
    Case c = random_case(seed);
    c.deployment.pool.settings.prefix_caching = false;
    if (c.deployment.decode) c.deployment.decode->settings.prefix_caching = false;
    c.deployment.drafts = 0;
    c.deployment.pool.ranks = 1;  // a rank's mean context is not a sequence's
    if (c.deployment.decode) c.deployment.decode->ranks = 1;
    const Run run = simulate(c.deployment, c.workload);
    for (std::size_t i = 0; i < 60; i += 7) {
      Workload alone = c.workload;
      alone.requests = {c.workload.requests[i]};
      alone.requests[0].sent = {};
      alone.requests[0].after = -1;
      const Served one = simulate(c.deployment, alone).requests[0];
      REQUIRE(run.requests[i].ttft().value >= one.ttft().value - 1e-9);
      REQUIRE(run.requests[i].latency().value >= one.latency().value - 1e-9);
    }
  }
}

TEST_CASE("Little's law: the requests that are there are the rate times the time that each is") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Load load = busy();
    load.seed = seed;
    load.requests = 600;
    const Workload w = make_workload(load);
    const Run run = simulate(vllm(), w, {.timeline = true});
    // Of vLLM's steps all that are admitted are part; who waits is counted at the end of a step, and has been there for
    // half of it where it came meanwhile.
    double there = 0;
    for (const Interval& i : run.timeline) {
      there += (i.end - i.begin).value * static_cast<double>(i.decodes + i.prompts + i.waiting);
    }
    double latency = 0, waited = 0;
    for (const Served& r : run.requests) {
      latency += r.latency().value;
      waited += r.causes[0];
    }
    CHECK(there == Approx(latency + waited).epsilon(0.06));
    CHECK(there >= latency * 0.999);
  }
}

TEST_CASE("a run is the same for the same seed, in any thread, with or without its timeline") {
  const Case c = random_case(11);
  const Run first = simulate(c.deployment, c.workload, {.seed = 4, .timeline = true});
  std::vector<Run> runs(4);
  {
    std::vector<std::jthread> threads;
    for (Run& r : runs) threads.emplace_back([&] { r = simulate(c.deployment, c.workload, {.seed = 4}); });
  }
  for (const Run& r : runs) {
    CHECK(r.steps == first.steps);
    CHECK(r.gaps == first.gaps);
    for (std::size_t i = 0; i < r.requests.size(); ++i) {
      CHECK(r.requests[i].first == first.requests[i].first);
      CHECK(r.requests[i].last == first.requests[i].last);
    }
  }
  // What drafts are kept depends on the seed, and on nothing that the workload draws.
  Deployment d = vllm();
  d.drafts = 3;
  d.acceptance = estimate::Acceptance(0.5);
  const Workload w = make_workload(busy());
  CHECK(simulate(d, w, {.seed = 1}).end != simulate(d, w, {.seed = 2}).end);
}

TEST_CASE("a turn waits for the answer to the one before it, and where answers take no time comes at its time") {
  Load load = busy();
  load.turns = 3;
  Deployment d = vllm();
  d.pool.replicas = 2;
  for (const double think : {0.0, 7.0}) {
    load.think = Seconds{think};
    const Workload w = make_workload(load);
    const Run slow = simulate(d, w);
    Deployment quick = d;
    quick.pool.cost = [](const estimate::StepShape&) { return estimate::StepTime{Seconds{1e-12}, Seconds{1e-12}}; };
    const Run at_once = simulate(quick, w);
    std::int64_t later = 0;
    for (std::size_t i = 0; i < w.requests.size(); ++i) {
      CHECK(at_once.requests[i].sent.value == Approx(w.requests[i].sent.value));
      if (w.requests[i].after < 0) {
        CHECK(slow.requests[i].sent == w.requests[i].sent);
        continue;
      }
      ++later;
      const auto before = static_cast<std::size_t>(w.requests[i].after);
      const Seconds pause = w.requests[i].sent - w.requests[before].sent;
      CHECK(slow.requests[i].sent.value == Approx((slow.requests[before].last + pause).value));
    }
    CHECK(later == 100);  // of 150 requests in 50 sessions
  }
  // In a closed loop there is no pause, and none is under way beside the turn before it.
  load.rate.reset();
  load.think = {};
  load.concurrency = 40;
  const Workload w = make_workload(load);
  const Run run = simulate(d, w);
  for (std::size_t i = 50; i < 150; ++i) CHECK(run.requests[i].sent >= run.requests[i - 50].last);
}

TEST_CASE("a session whose turn is rejected goes on") {
  Load load = busy();
  load.rate = 1000;
  load.turns = 2;
  Deployment d = vllm();
  d.pool.settings.max_queue = 1;
  const Workload w = make_workload(load);
  const Run run = simulate(d, w);
  const auto rejected = std::ranges::count_if(run.requests, &Served::rejected);
  CHECK(rejected > 0);
  CHECK(std::ranges::count_if(run.requests, &Served::ended) + rejected == 150);
}

TEST_CASE("a draft's steps give the tokens that its acceptance makes expect") {
  Deployment d = vllm();
  d.drafts = 3;
  d.acceptance = estimate::Acceptance(0.7);
  Load load;
  load.requests = 20;
  load.concurrency = 1;
  load.output = {Lengths::Kind::fixed, 2000, 0};
  const Run run = simulate(d, make_workload(load), {.seed = 5});
  // 1 + 0.7 + 0.49 + 0.343 of each step; 16,000 steps.
  CHECK(20 * 1999 / static_cast<double>(run.steps - 20) == Approx(2.533).epsilon(0.01));
}

TEST_CASE("more replicas are not slower, at the median over seeds") {
  for (const Router router : {Router::round_robin, Router::least_loaded, Router::prefix_aware}) {
    double before = 1e9;
    for (const std::int64_t replicas : {1, 2, 4}) {
      const double now = median([&](std::uint64_t seed) {
        Deployment d = vllm();
        d.router = router;
        d.pool.replicas = replicas;
        Load load = busy();
        load.seed = seed;
        return summary(d, load).e2e.mean;
      });
      CHECK(now <= before * 1.001);
      before = now;
    }
  }
}

TEST_CASE("a larger budget for prompts makes the first token come earlier, and a larger shared prefix too") {
  double before = 1e9;
  for (const std::int64_t budget : {32, 64, 128, 512}) {
    const double now = median([&](std::uint64_t seed) {
      Deployment d = vllm();
      d.pool.settings.max_batched_tokens = budget;
      Load load = busy();
      load.seed = seed;
      return summary(d, load).ttft.mean;
    });
    CHECK(now <= before * 1.02);
    before = now;
  }
  before = 1e9;
  double hits = -1;
  for (const std::int64_t tokens : {0, 32, 48, 96}) {
    Load load = busy();
    load.input = {Lengths::Kind::fixed, 100, 0};
    load.prefix.tokens = tokens;
    const double now = median([&](std::uint64_t seed) {
      load.seed = seed;
      return summary(vllm(), load).ttft.mean;
    });
    CHECK(now < before);
    before = now;
    const double share = summary(vllm(), load).prefix_hit_share;
    CHECK(share > hits);
    // All but the first have it, as far as blocks of 16 go.
    CHECK(share == Approx(static_cast<double>(tokens) / 100 * 149 / 150).margin(1e-9));
    hits = share;
  }
}

TEST_CASE("an overloaded engine is not stable, and one with room is") {
  Load load = busy();
  load.requests = 1000;
  load.rate = 2;
  CHECK(summary(vllm(), load).stable);
  CHECK(summary(vllm(), load).busy_share < 0.95);
  load.rate = 30;
  const Summary s = summary(vllm(), load);
  CHECK_FALSE(s.stable);
  CHECK(s.queue_growth == Approx(30 - s.requests_per_second).epsilon(0.1));
  CHECK(s.busy_share > 0.99);
}

}  // namespace llmperf::invariants_test
