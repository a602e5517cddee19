// What the search for the cheapest deployment promises of its answer.
#include "catch.h"
#include "request/traffic.h"
#include "result/document.h"
#include "service/capacity.h"
#include "service/serve.h"
#include "serving/capacity.h"

namespace llmperf::service::capacity_search_test {
namespace {

using result::Candidate;
using result::CapacityResult;

CapacityQuery query() {
  CapacityQuery q;
  q.request.model = "llama-3.1-8b";
  q.request.rate = 20;
  q.request.slo = "ttft.p99=1s,tpot.p99=50ms";
  q.request.hw = "h100-sxm,h100-nvl,a100-sxm-80gb,l40s,mi300x,b200-sxm";
  q.request.tp = "1,2";
  q.request.weights = "bf16,fp8";
  return q;
}
CapacityResult search(const CapacityQuery& q, const std::atomic<bool>* stop = nullptr,
                      const std::function<void(std::size_t, std::size_t)>& progress = {}) {
  request::Sources sources;
  return search_capacity(q, sources, stop, progress);
}

}  // namespace

TEST_CASE("The answer is the same whatever number of threads looks for it", "[capacity]") {
  CapacityQuery q = query();
  q.disaggregated = GENERATE(false, true);
  if (q.disaggregated) q.request.hw = "h100-sxm,l40s";
  q.threads = 1;
  const std::string one = result::document("llmperf.capacity", search(q));
  for (const unsigned threads : {2U, 7U}) {
    INFO(threads);
    q.threads = threads;
    CHECK(result::document("llmperf.capacity", search(q)) == one);
  }
}

TEST_CASE("A candidate that is near the best is what it is by itself, others cost more than that", "[capacity]") {
  const CapacityResult all = search(query());
  REQUIRE(all.best() != nullptr);
  const double near = kNear * *all.best()->cost_per_hour;
  int simulated = 0;
  int far = 0;
  for (const Candidate& k : all.candidates) {
    if (k.ceiling <= 0) continue;
    CapacityQuery q = query();
    q.request.hw = k.hardware;
    q.request.tp = k.replica_devices == 2 ? "2" : "1";
    q.request.weights = k.weights;
    const CapacityResult alone = search(q);
    INFO(k.hardware << ' ' << k.plan << ' ' << k.weights);
    REQUIRE(alone.candidates.size() == 1);
    const Candidate& own = alone.candidates.front();
    if (k.simulated) {
      ++simulated;
      CHECK(own.meets == k.meets);
      CHECK(own.max_requests_per_second == k.max_requests_per_second);
      CHECK(own.cost_per_hour == k.cost_per_hour);
    } else {
      ++far;
      CHECK_FALSE(k.meets);
      CHECK_FALSE(k.at);
      CHECK(*k.cost_per_hour > near);
      if (own.meets) CHECK(*own.cost_per_hour >= *k.cost_per_hour);
    }
  }
  CHECK(simulated > 1);
  CHECK(far > 0);
}

TEST_CASE("What was found before a search is stopped is kept, and nothing is said of the rest", "[capacity]") {
  const CapacityResult all = search(query());
  std::atomic<bool> stop = false;
  CapacityQuery q = query();
  q.threads = 1;
  const CapacityResult some = search(q, &stop, [&](std::size_t done, std::size_t) { stop = done == 1; });
  CHECK(some.interrupted);
  CHECK(some.candidates.size() == all.candidates.size());
  CHECK(some.simulations > 0);
  CHECK(some.simulations < all.simulations);
  for (const Candidate& k : some.candidates) {
    if (!k.simulated) CHECK_FALSE(k.meets);
  }
}

TEST_CASE("Pools of unlike plans and devices keep the promise where they are served, and one replica fewer does not",
          "[capacity]") {
  CapacityQuery q;
  q.request.model = "llama-3-70b";
  q.request.rate = 20;
  q.request.slo = "ttft.p99=2s,tpot.p95=30ms";
  q.request.hw = "h100-sxm,h200-sxm";
  q.request.input = "3000";
  q.request.output = "300";
  q.request.weights = "fp8";
  q.disaggregated = true;
  const CapacityResult found = search(q);
  REQUIRE(found.best() != nullptr);
  CHECK(found.best()->decode_plan == "tp 2");  // prompts are computed by devices of their own
  CHECK(found.best()->plan == "1 device");
  int unlike = 0;
  for (const Candidate& k : found.candidates) {
    if (!k.meets || k.decode_plan.empty()) continue;
    ++unlike;
    INFO(k.hardware << ' ' << k.plan << ", " << k.decode_hardware << ' ' << k.decode_plan);
    const auto served = [&](std::int64_t prompts, std::int64_t decodes) {
      request::Request one = k.request;
      one.prefill_replicas = prompts;
      one.decode_replicas = decodes;
      request::Sources sources;
      return Served(one, sources, {.drawn = false, .banded = false});
    };
    const Served as_found = served(k.replicas, k.decode_replicas);
    CHECK_FALSE(as_found.misses());
    CHECK(as_found.result().deployed->devices == k.devices);
    CHECK(as_found.result().cost_per_hour().value() == Approx(*k.cost_per_hour));
    if (k.replicas > 1) CHECK(served(k.replicas - 1, k.decode_replicas).misses());
    if (k.decode_replicas > 1) CHECK(served(k.replicas, k.decode_replicas - 1).misses());
  }
  CHECK(unlike > 1);
}

TEST_CASE("where nothing is decoded a queue survives up to the closed form, and no more", "[capacity]") {
  for (const char* model : {"bge-m3", "qwen3-0.6b"}) {
    for (const char* input : {"256", "64-1000", "6000"}) {
      INFO(model << ' ' << input);
      request::Request q;
      q.model = model;
      q.hw = "h100-sxm";
      q.rate = 1;
      q.input = input;
      if (q.model == "qwen3-0.6b") {
        q.output = "1";
        q.prefix_caching = "off";
      }
      request::Sources sources;
      const auto resolved = request::resolve_serving(q, sources);
      const request::Traffic traffic = request::read_traffic(*resolved);
      const estimate::Setup& setup = resolved->setup();
      const serving::Deployed deployed =
          request::deploy(*resolved, traffic, serving::choose_engine(traffic.engine, setup), 1000);
      const serving::Slo slo = serving::parse_slo("e2e.p99=10s");  // loose: what binds is throughput
      const serving::Capacity found = serving::max_rate(deployed, traffic.load, slo);
      CHECK(found.requests_per_second <= found.ceiling * 1.0001);
      CHECK(found.requests_per_second >= found.ceiling * 0.85);
    }
  }
}

}  // namespace llmperf::service::capacity_search_test
