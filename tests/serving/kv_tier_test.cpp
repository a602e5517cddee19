// What a cache lets go of and a tier keeps, by hand.
#include "serving/kv_tier.h"

#include "base/error.h"
#include "catch.h"
#include "serving/simulation.h"
#include "serving/step_log.h"

namespace llmperf::kv_tier_test {

using namespace llmperf::serving;
using Content = std::vector<Segment>;

TEST_CASE("a tier has what was used last, from the first token on") {
  KvStore store(100);
  const Content a = {{1, 40}, {2, 60}};
  const Content b = {{1, 40}, {3, 70}};
  const Content c = {{4, 50}};
  store.keep(a, 60);
  CHECK(store.find(a, 1000) == 60);
  CHECK(store.find(a, 45) == 45);
  CHECK(store.find(b, 1000) == 40);  // what both begin with
  store.keep(b, 70);                 // 40 + 20 + 30
  CHECK(store.find(a, 1000) == 60);
  store.keep(c, 30);  // 120: the tail of b was used before that of a
  CHECK(store.find(b, 1000) == 40);
  CHECK(store.find(a, 1000) == 60);
  CHECK(store.find(c, 1000) == 30);
  store.keep(c, 50);  // a longer one of the same: 110, and of a sequence the end goes first
  CHECK(store.find(c, 1000) == 50);
  CHECK(store.find(a, 1000) == 40);
  store.keep({{{5, 101}}}, 101);  // more than there is room for
  CHECK(store.find({{{5, 101}}}, 101) == 0);
}

TEST_CASE("tiers are read with sizes and rates") {
  const std::vector<KvTier> tiers = parse_kv_tiers("host:200GB, pool:10TB:25GB/s");
  REQUIRE(tiers.size() == 2);
  CHECK(tiers[0].size.value == 200e9);
  CHECK_FALSE(tiers[0].rate.has_value());
  CHECK_FALSE(tiers[0].shared());
  CHECK(tiers[1].rate->value == 25e9);
  CHECK(tiers[1].shared());
  for (const char* bad : {"", "host", "host:0", "disk:3GB", "nvme:2TB", "host:1GB:fast", "host:1GB:1GB/s:2"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_kv_tiers(bad), Error);
  }
}

namespace {

// Steps of 10 ms and 1 ms for each token of a prompt; a token of 1 MB, read at 2 GB/s: 0.5 ms.
Deployment deployment(const char* tier) {
  Deployment d;
  d.pool.settings = steps::engine(EngineKind::vllm, 64, 4);
  d.pool.settings.asynchronous = false;
  d.pool.settings.prefix_caching = true;
  d.pool.cost = [](const estimate::StepShape& shape) {
    double ms = 10;
    for (const estimate::Chunk& c : shape.chunks) ms += static_cast<double>(c.tokens);
    return estimate::StepTime{Seconds{ms / 1e3}, Seconds{ms / 1e3}};
  };
  d.pool.blocks = 6;
  d.transfer.per_token = Bytes{1e6};
  if (*tier != 0) d.pool.tiers = {{.name = tier, .size = Bytes{1e9}, .rate = BytesPerSecond{2e9}}};
  return d;
}
// A of 16 tokens, B of 20 others, which take 5 of 6 blocks of 4, and C of 18, of which 16 are A's.
Workload three() {
  Workload w = steps::workload_of({{16, 1, 16, 1}, {20, 1}, {18, 1, 16, 1}});
  for (std::size_t i = 0; i < 3; ++i) w.requests[i].sent = Seconds{0.1 * static_cast<double>(i)};
  return w;
}

}  // namespace

TEST_CASE("what the cache lost is read from a tier, and the rest of the prompt computed") {
  const Served without = simulate(deployment(""), three()).requests[2];
  CHECK(without.reused == 4);  // the block that B left
  CHECK(without.ttft().value == Approx(0.010 + 0.014));
  const Served with = simulate(deployment("host"), three()).requests[2];
  CHECK(with.reused == 16);
  CHECK(with.fetched == 12);
  CHECK(with.ttft().value == Approx(12 * 0.0005 + 0.010 + 0.002));
  CHECK(with.causes[static_cast<std::size_t>(Cause::kv)] == Approx(0.006));
}

TEST_CASE("a pool is of all replicas, a host of one") {
  for (const char* tier : {"host", "pool"}) {
    Deployment d = deployment(tier);
    d.pool.replicas = 2;
    d.router = Router::round_robin;
    Workload w = three();
    w.requests.erase(w.requests.begin() + 1);  // A on one replica, C on the other
    const Served c = simulate(d, w).requests[1];
    CHECK(c.fetched == (d.pool.tiers[0].shared() ? 16 : 0));
  }
}

}  // namespace llmperf::kv_tier_test
