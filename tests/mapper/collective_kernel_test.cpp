// Collectives as a library runs them, by hand.
#include "catch.h"
#include "kernel_values.h"
#include "mapper/roofline/kernels.h"

namespace llmperf::mapper::collective_kernel_test {
namespace {

using enum hardware::Parameter;
using cost::Algorithm;
using cost::Cluster;
using cost::CollectiveCost;
using graph::CollectiveKind;
using hardware::ParameterValues;
using hardware::Topology;

// 9 us, 1 us a step, half of 100 GB/s, the own part at 200 GB/s; between nodes 20 us a step, half of 10 GB/s.
ParameterValues values() {
  return values_with({{collective_launch, 9e-6},
                      {collective_step, 1e-6},
                      {collective_share, 0.5},
                      {collective_copy_share, 2},
                      {network_step, 20e-6},
                      {network_share, 0.5}});
}

// Links of 100 GB/s a device and 10 GB/s between nodes of eight; latencies are assumed.
Cluster nodes(Topology topology = Topology::fully_switched, double per_link = 100e9) {
  Cluster c;
  c.inside.topology = topology;
  c.inside.per_device = BytesPerSecond{100e9};
  c.inside.per_link = BytesPerSecond{per_link};
  c.inside.latency = Seconds{2e-6};
  c.between.per_device = c.between.per_link = BytesPerSecond{10e9};
  c.between.latency = Seconds{5e-6};
  c.between.serial = true;
  c.devices_per_node = 8;
  return c;
}

graph::Collective collective(CollectiveKind kind, std::int64_t ranks, double bytes) {
  return {.kind = kind, .ranks = ranks, .rows = bytes, .width = 1, .element = {"int8", 8, 1}};
}
hardware::RuntimeProfile profile_of(const ParameterValues& v) {
  hardware::RuntimeProfile profile;
  profile.values = v;
  return profile;
}
CollectiveCost cost_of(const Cluster& c, const ParameterValues& v, const graph::Collective& op) {
  return cost::collective_cost(driven(c, profile_of(v)), op);
}
double of(CollectiveKind kind, std::int64_t ranks, double bytes, const ParameterValues& v = values(),
          const Cluster& c = nodes()) {
  return cost_of(c, v, collective(kind, ranks, bytes)).time().value;
}

TEST_CASE("a ring sends all parts but the own one, and an all-reduce sends them twice") {
  // 4 MB on 4 ranks: 3 steps and 3 MB at 50 GB/s are 63 us, the own 1 MB takes 5 us.
  CHECK(of(CollectiveKind::all_gather, 4, 4e6) == Approx(9e-6 + 3e-6 + 60e-6 + 5e-6));
  CHECK(of(CollectiveKind::reduce_scatter, 4, 4e6) == Approx(9e-6 + 3e-6 + 60e-6 + 5e-6));
  CHECK(of(CollectiveKind::all_reduce, 4, 4e6) == Approx(9e-6 + 6e-6 + 120e-6 + 5e-6));
}

TEST_CASE("an all-to-all posts all its messages at once") {
  CHECK(of(CollectiveKind::all_to_all, 4, 4e6) == Approx(9e-6 + 4e-6 + 60e-6 + 5e-6));
  CHECK(of(CollectiveKind::all_to_all, 2, 8) == Approx(of(CollectiveKind::all_to_all, 8, 8)).epsilon(1e-4));
}

TEST_CASE("a send is one message, and a ring pass one per other rank") {
  CHECK(of(CollectiveKind::send, 2, 5e6) == Approx(9e-6 + 1e-6 + 100e-6));
  CHECK(of(CollectiveKind::ring_pass, 4, 5e6) == Approx(3 * of(CollectiveKind::send, 2, 5e6)));
}

TEST_CASE("a broadcast passes all bytes on, a step for each other rank") {
  CHECK(of(CollectiveKind::broadcast, 4, 5e6) == Approx(9e-6 + 3e-6 + 100e-6));
}

TEST_CASE("filling the pipeline costs twice the geometric mean of a chunk's latency and the transfer") {
  ParameterValues v = values();
  v[index(collective_fill)] = 4e-6;
  // The transfer takes 100 us: 2 sqrt(4 us x 100 us) = 40 us.
  CHECK(of(CollectiveKind::send, 2, 5e6, v) == Approx(9e-6 + 1e-6 + 100e-6 + 40e-6));
}

TEST_CASE("a single rank exchanges nothing") {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_to_all, CollectiveKind::send}) {
    CHECK(of(kind, 1, 1e9) == 0);
  }
}

TEST_CASE("two of the eight devices of a full mesh have one link of seven between them") {
  // An all-reduce of 2 MB sends 2 MB over a link of 14 GB/s, of which half is reached.
  CHECK(of(CollectiveKind::all_reduce, 2, 2e6, values(), nodes(Topology::full_mesh, 14e9)) ==
        Approx(9e-6 + 2e-6 + 2e6 / 7e9 + 1e6 / 200e9));
}

TEST_CASE("a step is as long as a latency that the file states, and as the profile has it where that is longer") {
  Cluster c = nodes();
  c.inside.latency = Seconds{100e-6};
  const double assumed = of(CollectiveKind::all_reduce, 8, 8e6, values(), c);
  CHECK(assumed == of(CollectiveKind::all_reduce, 8, 8e6));
  c.inside.latency_stated = true;
  CHECK(of(CollectiveKind::all_reduce, 8, 8e6, values(), c) == Approx(assumed + 14 * 99e-6));
  c.inside.latency = Seconds{0.5e-6};
  CHECK(of(CollectiveKind::all_reduce, 8, 8e6, values(), c) == assumed);
}

TEST_CASE("two devices in two nodes: a launch, the steps of the network and its share of the rate") {
  Cluster c = nodes();
  c.devices_per_node = 1;
  // One-shot: 5 MB each way at 5 GB/s.
  CHECK(of(CollectiveKind::all_reduce, 2, 5e6, values(), c) == Approx(9e-6 + 20e-6 + 1e-3));
  c.between.latency = Seconds{50e-6};
  c.between.latency_stated = true;
  CHECK(of(CollectiveKind::all_reduce, 2, 5e6, values(), c) == Approx(9e-6 + 50e-6 + 1e-3));
}

TEST_CASE("between nodes the algorithm is the one that is the cheapest as charged") {
  // Two nodes of eight, 4 MB. Stages: two rings inside, 3.5 MB at 50 GB/s and the own 0.5 MB at 200 GB/s after 9 + 7 us
  // each, and 0.5 MB at 5 GB/s after 9 + 20 us between. One ring: 7.5 MB / 8 at 5 GB/s and the own 0.25 MB at 200 GB/s
  // after 9 us, 4 steps of 20 us and 26 of 1 us.
  const double stages = 2 * (16e-6 + 70e-6 + 2.5e-6) + 29e-6 + 100e-6;
  const double ring = 9e-6 + 80e-6 + 26e-6 + 187.5e-6 + 1.25e-6;
  const graph::Collective op = collective(CollectiveKind::all_reduce, 16, 4e6);
  const Cluster charged = driven(nodes(), profile_of(values()));
  CHECK(cost::collective_cost(charged, op, Algorithm::hierarchical).time().value == Approx(stages));
  CHECK(cost::collective_cost(charged, op, Algorithm::ring).time().value == Approx(ring));
  CHECK(cost_of(nodes(), values(), op).algorithm == Algorithm::ring);
  // At the links' own rates and latencies the stages are the faster: 129 us, and 166 us by one ring.
  CHECK(cost::collective_cost(nodes(), op).algorithm == Algorithm::hierarchical);
}

TEST_CASE("a switch adds up at its share of the links, where the library has it do so") {
  hardware::RuntimeProfile profile = profile_of(values());
  profile.values[index(switch_launch)] = 30e-6;
  profile.values[index(switch_share)] = 0.8;
  const graph::Collective op = collective(CollectiveKind::all_reduce, 8, 800e6);
  Cluster able = nodes();
  able.inside.reduces = true;
  CHECK(cost::collective_cost(driven(able, profile), op).algorithm == Algorithm::ring);
  profile.choices.switch_reduces = true;
  CHECK(cost::collective_cost(driven(nodes(), profile), op).algorithm == Algorithm::ring);
  // 800 MB at 80 GB/s.
  const CollectiveCost cost = cost::collective_cost(driven(able, profile), op);
  CHECK(cost.algorithm == Algorithm::in_switch);
  CHECK(cost.time().value == Approx(9e-6 + 30e-6 + 10e-3));
}

TEST_CASE("a stack's own all-reduces are charged by its numbers, up to the size that it has them for") {
  hardware::RuntimeProfile profile = profile_of(values());
  for (const auto& [p, value] :
       {std::pair{custom_launch, 4e-6}, std::pair{custom_rank, 1e-7}, std::pair{custom_share, 0.5},
        std::pair{custom_second, 3e-6}, std::pair{custom_second_share, 0.8}}) {
    profile.values[index(p)] = value;
  }
  const auto time = [&](std::int64_t ranks, double bytes) {
    return cost::collective_cost(driven(nodes(), profile), collective(CollectiveKind::all_reduce, ranks, bytes)).time();
  };
  const Seconds library = time(4, 1e5);
  CHECK(library.value == of(CollectiveKind::all_reduce, 4, 1e5));
  profile.choices.custom_all_reduce = 8'000'000;
  // Three times 100 kB at 50 GB/s; 2 x 7/8 of 8 MB at 80 GB/s.
  CHECK(time(4, 1e5).value == Approx(4e-6 + 3e-7 + 6e-6));
  CHECK(time(8, 8e6).value == Approx(4e-6 + 7e-7 + 3e-6 + 175e-6));
  CHECK(time(8, 8.1e6).value == of(CollectiveKind::all_reduce, 8, 8.1e6));
  CHECK(time(16, 1e5).value == of(CollectiveKind::all_reduce, 16, 1e5));  // of two nodes
}

// Dies in pairs on links of 200 GB/s and 1 us, eight to a node, 64 to a supernode at 10 us a step.
Cluster dies() {
  Cluster c = nodes();
  c.package = c.supernode = c.inside;
  c.package.topology = Topology::full_mesh;
  c.package.per_device = c.package.per_link = BytesPerSecond{200e9};
  c.package.latency = Seconds{1e-6};
  c.supernode.latency = Seconds{10e-6};
  c.supernode.latency_stated = true;
  c.devices_per_package = 2;
  c.devices_per_supernode = 64;
  return c;
}

TEST_CASE("packages and supernodes are levels below and above a node") {
  using cost::Level;
  const auto levels = [](std::int64_t ranks, std::int64_t stride) {
    graph::Collective op = collective(CollectiveKind::all_gather, ranks, 1);
    op.stride = stride;
    return cost::levels_of(dies(), op);
  };
  CHECK(levels(2, 1) == std::vector{Level::package});
  CHECK(levels(2, 2) == std::vector{Level::node});
  CHECK(levels(8, 1) == std::vector{Level::package, Level::node});
  CHECK(levels(16, 2) == std::vector{Level::node, Level::supernode});
  CHECK(levels(128, 1) == std::vector{Level::package, Level::node, Level::supernode, Level::network});
  // Two dies: 1 us and half of 2 MB at 200 GB/s.
  const auto time = [](std::int64_t ranks, double bytes) {
    return cost::collective_cost(dies(), collective(CollectiveKind::all_gather, ranks, bytes), Algorithm::one_shot)
        .time()
        .value;
  };
  CHECK(time(2, 2e6) == Approx(1e-6 + 5e-6));
  // Sixteen, of two nodes: everyone to everyone through their ports, at the farther level's latency.
  CHECK(time(16, 16e6) == Approx(10e-6 + 150e-6));
  double last = 0;
  for (double bytes = 1; bytes < 1e9; bytes *= 2) {
    const double now = cost::collective_cost(dies(), collective(CollectiveKind::all_reduce, 32, bytes)).time().value;
    CHECK(now >= last);
    last = now;
  }
}

TEST_CASE("eight L40S add up at what NCCL gets from one socket to the other, two at their links' rate") {
  const hardware::Device l40s = hardware::load_device("l40s");
  const hardware::RuntimeProfile profile = hardware::load_runtime_profile(l40s, "vllm");
  const cost::Cluster cluster = driven(cost::make_cluster(l40s), profile);
  // Of 256 MB, as nccl-tests counts: 2 (n-1)/n of the bytes in the time without launch and chunks.
  const auto bus = [&](std::int64_t ranks) {
    graph::Collective c = collective(CollectiveKind::all_reduce, ranks, 256e6);
    c.library = true;
    const double copy = 256e6 / static_cast<double>(ranks) / cluster.inside.chunks->copy.value;
    return 2 * static_cast<double>(ranks - 1) / static_cast<double>(ranks) * 256e6 /
           (cost::collective_cost(cluster, c).transfer.value - copy);
  };
  CHECK(bus(2) == Approx(0.75 * 32e9));
  CHECK(bus(4) == Approx(0.45 * 32e9));
  CHECK(bus(8) == Approx(0.08 * 32e9));
  // A pair has vLLM's own kernel as well.
  CHECK(cost::collective_cost(cluster, collective(CollectiveKind::all_reduce, 2, 16384)).algorithm ==
        Algorithm::one_shot);
  CHECK(cost::collective_cost(cluster, collective(CollectiveKind::all_reduce, 4, 16384)).algorithm == Algorithm::ring);
}

TEST_CASE("what is added up on arrival is slower, and large collectives take longer to start") {
  ParameterValues v = values();
  v[index(collective_reduce)] = 0.8;
  v[index(collective_setup)] = 70e-6;
  hardware::RuntimeProfile profile = profile_of(v);
  profile.choices.rings = false;
  profile.choices.small_collective = 1000;
  const auto time = [&](CollectiveKind kind, double bytes) {
    return cost::collective_cost(driven(nodes(), profile), collective(kind, 4, bytes)).time().value;
  };
  // 4 MB on 4 ranks: 3 MB at 50 GB/s are 60 us, 75 us where they are added up; one step.
  CHECK(time(CollectiveKind::all_gather, 4e6) == Approx(9e-6 + 70e-6 + 1e-6 + 60e-6));
  CHECK(time(CollectiveKind::reduce_scatter, 4e6) == Approx(9e-6 + 70e-6 + 1e-6 + 75e-6));
  CHECK(time(CollectiveKind::all_reduce, 4e6) == Approx(9e-6 + 70e-6 + 2e-6 + 60e-6 + 75e-6));
  CHECK(time(CollectiveKind::all_gather, 1000) == Approx(9e-6 + 1e-6 + 15e-9));
}

TEST_CASE("tokens go to their experts and back by one kernel each way, up to a number of tokens") {
  ParameterValues v = values();
  v[index(exchange_launch)] = 30e-6;
  v[index(exchange_there)] = 40e-6;
  v[index(exchange_round)] = 5e-6;
  v[index(exchange_share)] = 0.8;
  hardware::RuntimeProfile profile = profile_of(v);
  profile.choices.exchange_tokens = 100;
  graph::Collective op = collective(CollectiveKind::all_to_all, 8, 0);
  op.routing = {.experts = 64, .per_token = 4};
  op.width = 1000;
  const auto time = [&](double tokens, bool returns) {
    op.routing.returns = returns;
    op.rows = tokens * 8 * graph::reached(op.routing, 8);
    return cost::collective_cost(driven(nodes(), profile), op).time().value;
  };
  // 100 tokens to 4 experts each, 7/8 of them elsewhere, 1000 B: 350 kB at 80 GB/s; three doublings.
  CHECK(time(100, false) == Approx(30e-6 + 40e-6 + 15e-6 + 350e3 / 80e9));
  CHECK(time(100, true) == Approx(30e-6 + 15e-6 + 350e3 / 80e9));
  // Over the network only where the stack has kernels for that, at the network's rate.
  const auto far = [&] {
    graph::Collective wide = collective(CollectiveKind::all_to_all, 16, 0);
    wide.routing = {.experts = 64, .per_token = 4, .returns = true};
    wide.width = 1000;
    wide.rows = 100 * 16 * graph::reached(wide.routing, 4);
    return cost::collective_cost(driven(nodes(), profile), wide);
  };
  CHECK(far().algorithm != cost::Algorithm::one_shot);
  profile.choices.exchange_network = true;
  CHECK(far().algorithm == cost::Algorithm::one_shot);
  const double rate = driven(nodes(), profile).between.per_device.value * 0.8 / v[index(network_share)];
  CHECK(far().time().value == Approx(30e-6 + 4 * 5e-6 + 100 * 4 * 15 / 16.0 * 1000 / rate));
  profile.choices.exchange_tokens = 99;
  CHECK(time(100, true) == Approx(time(100, false)));
}

}  // namespace
}  // namespace llmperf::mapper::collective_kernel_test
