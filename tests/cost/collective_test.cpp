// Collectives by hand on every topology, and rules that hold on all of them.
#include "cost/collective.h"

#include <array>
#include <string>

#include "base/error.h"
#include "catch.h"

namespace llmperf::cost::collective_test {
namespace {

using graph::Collective;
using graph::CollectiveKind;
using hardware::Topology;

constexpr double kMega = 1e6;
constexpr double kMicro = 1e-6;

// Links of 10 GB/s to a neighbour and 1 us a step.
Links links(Topology topology, double per_device) {
  Links l;
  l.name = "test";
  l.topology = topology;
  l.per_device = BytesPerSecond{per_device};
  l.per_link = BytesPerSecond{10e9};
  l.latency = Seconds{kMicro};
  return l;
}

// Nodes of `devices` and a network of 1 GB/s and 5 us.
Cluster cluster(const Links& inside, std::int64_t devices = kAnyDevices) {
  Cluster c;
  c.inside = inside;
  c.between = links(Topology::fully_switched, 1e9);
  c.between.per_link = c.between.per_device;
  c.between.latency = Seconds{5 * kMicro};
  c.between.serial = true;
  c.devices_per_node = devices;
  return c;
}

Cluster mesh8() { return cluster(links(Topology::full_mesh, 70e9), 8); }
Cluster switch8() { return cluster(links(Topology::fully_switched, 10e9), 8); }
Cluster pcie8() { return cluster(links(Topology::pcie_tree, 10e9), 8); }
Cluster ring() { return cluster(links(Topology::ring, 20e9)); }
Cluster torus_2d() { return cluster(links(Topology::torus_2d, 40e9)); }
Cluster torus_3d() { return cluster(links(Topology::torus_3d, 60e9)); }
Cluster tiles() { return cluster(links(Topology::tile_mesh, 40e9)); }

Collective collective(CollectiveKind kind, std::int64_t ranks, double bytes, std::int64_t stride = 1) {
  Collective c;
  c.kind = kind;
  c.ranks = ranks;
  c.stride = stride;
  c.rows = bytes;
  c.width = 1;
  c.element = {"int8", 8, 1};
  return c;
}

// Steps, bytes sent and bytes over the busiest link of one algorithm.
void check(const Cluster& c, const Collective& op, Algorithm algorithm, double steps, double sent, double busiest) {
  const CollectiveCost cost = collective_cost(c, op, algorithm);
  CAPTURE(name(op.kind), op.ranks, name(algorithm), cost.steps, cost.sent.value, cost.busiest_link.value);
  CHECK(cost.steps == Approx(steps));
  CHECK(cost.sent.value == Approx(sent));
  CHECK(cost.busiest_link.value == Approx(busiest));
}

constexpr std::array kKinds = {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                               CollectiveKind::all_to_all, CollectiveKind::send,       CollectiveKind::ring_pass,
                               CollectiveKind::broadcast};

struct Named {
  std::string name;
  Cluster cluster;
};

std::vector<Named> clusters() {
  return {{"full mesh", mesh8()},   {"switch", switch8()},    {"PCIe tree", pcie8()}, {"ring", ring()},
          {"torus 2d", torus_2d()}, {"torus 3d", torus_3d()}, {"tile mesh", tiles()}};
}

// Calls `rule` for every cluster and kind, several counts of ranks and sizes.
template <class Rule>
void everywhere(Rule rule) {
  for (const Named& c : clusters()) {
    for (const CollectiveKind kind : kKinds) {
      for (const std::int64_t ranks : {2, 3, 4, 6, 7, 8, 9, 16, 24, 27, 64}) {
        for (const std::int64_t stride : {1, 2, 8}) {
          for (const double bytes : {1.0, 4096.0, kMega, 1000 * kMega}) {
            CAPTURE(c.name, name(kind), ranks, stride, bytes);
            rule(c.cluster, collective(kind, ranks, bytes, stride));
          }
        }
      }
    }
  }
}

// ---- formulas ----

TEST_CASE("ring all-reduce sends 2 M (N-1), all-gather M (N-1), Bruck M N log2(N) / 2") {
  const double block = 3 * kMega;
  for (const std::int64_t n : {2, 4, 8}) {
    const double size = block * static_cast<double>(n);
    const double others = static_cast<double>(n - 1);
    const double log2 = n == 2 ? 1 : n == 4 ? 2 : 3;
    for (const Cluster& c : {mesh8(), switch8()}) {
      CHECK(collective_cost(c, collective(CollectiveKind::all_reduce, n, size), Algorithm::ring).sent.value ==
            Approx(2 * block * others));
      CHECK(collective_cost(c, collective(CollectiveKind::all_gather, n, size), Algorithm::ring).sent.value ==
            Approx(block * others));
      CHECK(collective_cost(c, collective(CollectiveKind::all_to_all, n, size), Algorithm::one_shot).sent.value ==
            Approx(block * others));
      CHECK(collective_cost(c, collective(CollectiveKind::all_to_all, n, size), Algorithm::bruck).sent.value ==
            Approx(block * static_cast<double>(n) * log2 / 2));
    }
  }
}

TEST_CASE("Bruck's all-to-all of 6 ranks sends the 7 set bits of 1 to 5") {
  check(switch8(), collective(CollectiveKind::all_to_all, 6, 6 * kMega), Algorithm::bruck, 3, 7 * kMega, 7 * kMega);
}

TEST_CASE("bytes that no algorithm avoids") {
  const double s = 8 * kMega;
  CHECK(sent_bytes(collective(CollectiveKind::all_reduce, 8, s)).value == Approx(14 * kMega));
  CHECK(sent_bytes(collective(CollectiveKind::all_gather, 8, s)).value == Approx(7 * kMega));
  CHECK(sent_bytes(collective(CollectiveKind::reduce_scatter, 8, s)).value == Approx(7 * kMega));
  CHECK(sent_bytes(collective(CollectiveKind::all_to_all, 8, s)).value == Approx(7 * kMega));
  CHECK(sent_bytes(collective(CollectiveKind::send, 8, s)).value == Approx(8 * kMega));
  CHECK(sent_bytes(collective(CollectiveKind::ring_pass, 8, s)).value == Approx(56 * kMega));
  CHECK(sent_bytes(collective(CollectiveKind::broadcast, 8, s)).value == Approx(8 * kMega));
}

TEST_CASE("full mesh of 8: one shot loads each of seven links with the tensor, two shots with 2/8 of it") {
  const Collective all_reduce = collective(CollectiveKind::all_reduce, 8, 8 * kMega);
  check(mesh8(), all_reduce, Algorithm::one_shot, 1, 56 * kMega, 8 * kMega);
  check(mesh8(), all_reduce, Algorithm::two_shot, 2, 14 * kMega, 2 * kMega);
  check(mesh8(), all_reduce, Algorithm::ring, 14, 14 * kMega, 2 * kMega);              // seven rings
  check(mesh8(), all_reduce, Algorithm::halving_doubling, 6, 14 * kMega, 14 * kMega);  // one link at a time
  const CollectiveCost two_shot = collective_cost(mesh8(), all_reduce, Algorithm::two_shot);
  CHECK(two_shot.latency.value == Approx(2e-6));
  CHECK(two_shot.transfer.value == Approx(2 * kMega / 10e9));
  check(mesh8(), collective(CollectiveKind::all_gather, 8, 8 * kMega), Algorithm::one_shot, 1, 7 * kMega, kMega);
  check(mesh8(), collective(CollectiveKind::all_to_all, 8, 8 * kMega), Algorithm::one_shot, 1, 7 * kMega, kMega);
}

TEST_CASE("four ranks of a full mesh use three links each and have two edge-disjoint rings") {
  const Collective all_reduce = collective(CollectiveKind::all_reduce, 4, 4 * kMega);
  check(mesh8(), all_reduce, Algorithm::two_shot, 2, 6 * kMega, 2 * kMega);
  check(mesh8(), all_reduce, Algorithm::ring, 6, 6 * kMega, 3 * kMega);
}

TEST_CASE("small messages take one shot, large ones two, and they meet where both take as long") {
  // 1 us + S / 10 GB/s = 2 us + 2 S / 8 / 10 GB/s at S = 40/3 kB.
  const std::vector<SizeRange> ranges = fastest_by_size(mesh8(), collective(CollectiveKind::all_reduce, 8, 1));
  REQUIRE(ranges.size() == 2);
  CHECK(ranges[0].from.value == 1);
  CHECK(ranges[0].algorithm == Algorithm::one_shot);
  CHECK(ranges[1].algorithm == Algorithm::two_shot);
  CHECK(ranges[1].from.value == 13334);
}

TEST_CASE("switch of 8: all bytes of a device leave by its one port") {
  const Collective all_reduce = collective(CollectiveKind::all_reduce, 8, 8 * kMega);
  check(switch8(), all_reduce, Algorithm::one_shot, 1, 56 * kMega, 56 * kMega);
  check(switch8(), all_reduce, Algorithm::two_shot, 2, 14 * kMega, 14 * kMega);
  check(switch8(), all_reduce, Algorithm::ring, 14, 14 * kMega, 14 * kMega);
  check(switch8(), all_reduce, Algorithm::halving_doubling, 6, 14 * kMega, 14 * kMega);
  check(switch8(), all_reduce, Algorithm::tree, 6, 16 * kMega, 16 * kMega);
  check(switch8(), collective(CollectiveKind::reduce_scatter, 8, 8 * kMega), Algorithm::ring, 7, 7 * kMega, 7 * kMega);
}

TEST_CASE("a network card sends its messages one after the other, so halving and Bruck save steps") {
  const Cluster c = cluster(links(Topology::fully_switched, 10e9), 1);
  check(c, collective(CollectiveKind::all_to_all, 8, 8 * kMega), Algorithm::one_shot, 7, 7 * kMega, 7 * kMega);
  CHECK(collective_cost(c, collective(CollectiveKind::all_to_all, 64, 64)).algorithm == Algorithm::bruck);
  CHECK(collective_cost(c, collective(CollectiveKind::all_to_all, 64, 64 * kMega)).algorithm == Algorithm::one_shot);
  CHECK(collective_cost(c, collective(CollectiveKind::all_gather, 64, 64)).algorithm == Algorithm::halving_doubling);
}

TEST_CASE("PCIe tree of 8: 16 pairs cross one uplink, a ring crosses it once") {
  const Collective all_reduce = collective(CollectiveKind::all_reduce, 8, 8 * kMega);
  check(pcie8(), all_reduce, Algorithm::ring, 14, 14 * kMega, 14 * kMega);
  check(pcie8(), all_reduce, Algorithm::one_shot, 1, 56 * kMega, 128 * kMega);
  check(pcie8(), all_reduce, Algorithm::two_shot, 2, 14 * kMega, 32 * kMega);
  check(pcie8(), all_reduce, Algorithm::tree, 6, 16 * kMega, 16 * kMega);
  check(pcie8(), collective(CollectiveKind::all_to_all, 8, 8 * kMega), Algorithm::one_shot, 1, 7 * kMega, 16 * kMega);
  CHECK(collective_cost(pcie8(), collective(CollectiveKind::all_reduce, 8, 1000 * kMega)).algorithm == Algorithm::ring);
  // Pairs four devices apart: four of them share the uplink.
  check(pcie8(), collective(CollectiveKind::all_reduce, 2, 2 * kMega, 4), Algorithm::ring, 2, 2 * kMega, 8 * kMega);
}

TEST_CASE("PCIe tree with a host: pairs behind a switch, bridges of a socket, and what joins two sockets") {
  Cluster c = pcie8();
  c.inside.host = {.direct = 2,
                   .socket = 4,
                   .bridge = BytesPerSecond{5e9},
                   .sockets = BytesPerSecond{2e9},
                   .latency = Seconds{3 * kMicro}};
  const auto ring = [&](CollectiveKind kind, std::int64_t ranks, double bytes, std::int64_t stride = 1) {
    return collective_cost(c, collective(kind, ranks, bytes, stride), Algorithm::ring);
  };
  // 2 MB of which a pair sends all over its own links, of 10 GB/s, in two steps of 1 us.
  CHECK(ring(CollectiveKind::all_reduce, 2, 2 * kMega).time().value == Approx(200e-6 + 2e-6));
  // Four of a socket: 6 MB through bridges at 5 GB/s, in six steps of 3 us.
  CHECK(ring(CollectiveKind::all_reduce, 4, 4 * kMega).time().value == Approx(1.2e-3 + 18e-6));
  // Eight: of the ring's 14 MB all pass between the sockets, at 2 GB/s.
  CHECK(ring(CollectiveKind::all_reduce, 8, 8 * kMega).time().value == Approx(7e-3 + 42e-6));
  // Four pairs at once, each of one device a socket: 8 MB.
  CHECK(ring(CollectiveKind::all_reduce, 2, 2 * kMega, 4).transfer.value == Approx(4e-3));
  // Everyone to everyone: 16 blocks cross while a device sends 7.
  const CollectiveCost all = collective_cost(c, collective(CollectiveKind::all_to_all, 8, 8 * kMega));
  CHECK(all.transfer.value == Approx(8e-3));
  CHECK(all.busiest_link.value == Approx(16 * kMega));
  CHECK(collective_cost(c, collective(CollectiveKind::send, 2, 2 * kMega)).transfer.value == Approx(200e-6));
  CHECK(collective_cost(c, collective(CollectiveKind::send, 2, 2 * kMega, 4)).transfer.value == Approx(4e-3));
  // Files that do not say which devices share a switch have the one link's rate everywhere.
  c.inside.host.reset();
  CHECK(ring(CollectiveKind::all_reduce, 8, 8 * kMega).transfer.value == Approx(1.4e-3));
}

TEST_CASE("ring of links: half of each block either way, half way round") {
  check(ring(), collective(CollectiveKind::all_gather, 8, 8 * kMega), Algorithm::ring, 4, 7 * kMega, 3.5 * kMega);
  check(ring(), collective(CollectiveKind::all_reduce, 8, 8 * kMega), Algorithm::ring, 8, 14 * kMega, 7 * kMega);
  check(ring(), collective(CollectiveKind::all_reduce, 2, 2 * kMega), Algorithm::ring, 2, 2 * kMega, 2 * kMega);
  // Of 8 places 1 + 2 + 3 blocks pass a link one way, and half of those for the place opposite, 4 / 2: 8 in all.
  check(ring(), collective(CollectiveKind::all_to_all, 8, 8 * kMega), Algorithm::ring, 4, 16 * kMega, 8 * kMega);
  check(ring(), collective(CollectiveKind::send, 8, kMega), Algorithm::direct, 1, kMega, kMega);
  check(ring(), collective(CollectiveKind::ring_pass, 8, kMega), Algorithm::ring, 7, 7 * kMega, 7 * kMega);
  // Every other device: two hops a step, and the groups of even and odd numbers share the links.
  check(ring(), collective(CollectiveKind::all_gather, 8, 8 * kMega, 2), Algorithm::ring, 8, 7 * kMega, 7 * kMega);
}

TEST_CASE("2-D torus of 16: both dimensions work on half of the tensor at a time") {
  // A phase: 3/4 of a half, then 3/4 of a quarter of a half, each over two ways: 16 MB * (3/16 + 3/64).
  const Collective all_reduce = collective(CollectiveKind::all_reduce, 16, 16 * kMega);
  check(torus_2d(), all_reduce, Algorithm::dimensions, 8, 30 * kMega, 7.5 * kMega);
  check(torus_2d(), all_reduce, Algorithm::ring, 16, 30 * kMega, 15 * kMega);
  // All four links carry what the device sends.
  CHECK(collective_cost(torus_2d(), all_reduce).transfer.value == Approx(30 * kMega / 40e9));
  // Each line of 4 carries 4 blocks per ordered pair, 4^2 / 8 pairs over a link.
  check(torus_2d(), collective(CollectiveKind::all_to_all, 16, 16 * kMega), Algorithm::dimensions, 4, 32 * kMega,
        8 * kMega);
}

TEST_CASE("3-D torus of 64 is 4 x 4 x 4 and keeps all six links busy") {
  const Collective all_gather = collective(CollectiveKind::all_gather, 64, 64 * kMega);
  const CollectiveCost cost = collective_cost(torus_3d(), all_gather);
  CHECK(cost.algorithm == Algorithm::dimensions);
  CHECK(cost.steps == 6);
  CHECK(cost.transfer.value == Approx(63 * kMega / 60e9));
  // 12 = 2 x 2 x 3: a side of 2 has one way only.
  check(torus_3d(), collective(CollectiveKind::all_gather, 12, 12 * kMega), Algorithm::dimensions, 3, 11 * kMega,
        12 * kMega / 3 * (1.0 / 2 + 1.0 / 4 + 1.0 / 12));
}

TEST_CASE("on a ring of many devices an all-to-all takes a quarter of the time of an all-gather of all its bytes") {
  // The array that all hold together: V; gathered whole, or exchanged with V / n on each device.
  const double n = 1000;
  const double v = 1e12;
  const Seconds gather = collective_cost(ring(), collective(CollectiveKind::all_gather, 1000, v)).transfer;
  const Seconds exchange = collective_cost(ring(), collective(CollectiveKind::all_to_all, 1000, v / n)).transfer;
  CHECK(exchange / gather == Approx(0.25).epsilon(0.002));
}

TEST_CASE("tile mesh of 16: lines do not wrap, so a link carries the whole of what a ring of links halves") {
  const Collective all_gather = collective(CollectiveKind::all_gather, 16, 16 * kMega);
  check(tiles(), all_gather, Algorithm::dimensions, 6, 15 * kMega, 7.5 * kMega);
  check(tiles(), all_gather, Algorithm::ring, 8, 15 * kMega, 7.5 * kMega);  // a closed walk over the mesh, both ways
  check(tiles(), collective(CollectiveKind::all_gather, 9, 9 * kMega), Algorithm::ring, 5, 8 * kMega, 8 * kMega);
  // A line of 5: four hops, and the link at the end carries four blocks one way.
  check(tiles(), collective(CollectiveKind::all_gather, 5, 5 * kMega), Algorithm::ring, 4, 4 * kMega, 4 * kMega);
  // Over the middle of a line of 4: 2 * 2 ordered pairs, 4 blocks each.
  check(tiles(), collective(CollectiveKind::all_to_all, 16, 16 * kMega), Algorithm::dimensions, 6, 32 * kMega,
        16 * kMega);
  check(tiles(), collective(CollectiveKind::ring_pass, 5, kMega), Algorithm::ring, 8, 4 * kMega, 4 * kMega);
}

TEST_CASE("a broadcast is one shot of the root, a scatter and an all-gather, or passed on from rank to rank") {
  const Collective op = collective(CollectiveKind::broadcast, 8, 8 * kMega);
  check(mesh8(), op, Algorithm::one_shot, 1, 56 * kMega, 8 * kMega);
  check(mesh8(), op, Algorithm::two_shot, 2, 14 * kMega, 2 * kMega);
  check(mesh8(), op, Algorithm::ring, 7, 8 * kMega, 8 * kMega / 7);  // seven chains with a seventh each
  check(mesh8(), op, Algorithm::halving_doubling, 6, 14 * kMega, 14 * kMega);
  check(switch8(), op, Algorithm::one_shot, 1, 56 * kMega, 56 * kMega);
  check(switch8(), op, Algorithm::two_shot, 2, 14 * kMega, 14 * kMega);
  check(switch8(), op, Algorithm::ring, 7, 8 * kMega, 8 * kMega);
  check(switch8(), op, Algorithm::tree, 3, 8 * kMega, 8 * kMega);  // half of the tensor to either child
  // Seven messages leave the root's port; four blocks and then 16 pairs cross the uplink; a chain crosses it once.
  check(pcie8(), op, Algorithm::one_shot, 1, 56 * kMega, 56 * kMega);
  check(pcie8(), op, Algorithm::two_shot, 2, 14 * kMega, (7 + 16) * kMega);
  check(pcie8(), op, Algorithm::ring, 7, 8 * kMega, 8 * kMega);
  check(pcie8(), op, Algorithm::tree, 3, 8 * kMega, 8 * kMega);
}

TEST_CASE(
    "a broadcast over neighbours goes half round either way, by the shortest ways, or as scatter and all-gather") {
  const Collective op = collective(CollectiveKind::broadcast, 8, 8 * kMega);
  check(ring(), op, Algorithm::ring, 7, 8 * kMega, 4 * kMega);
  check(ring(), op, Algorithm::tree, 4, 16 * kMega, 8 * kMega);
  check(ring(), collective(CollectiveKind::broadcast, 2, kMega), Algorithm::ring, 1, kMega, kMega);
  check(ring(), collective(CollectiveKind::broadcast, 4, kMega, 2), Algorithm::ring, 6, kMega, kMega);
  const Collective of_16 = collective(CollectiveKind::broadcast, 16, 16 * kMega);
  check(torus_2d(), of_16, Algorithm::ring, 15, 16 * kMega, 8 * kMega);
  check(torus_2d(), of_16, Algorithm::tree, 4, 64 * kMega, 16 * kMega);
  check(torus_2d(), of_16, Algorithm::dimensions, 8, 30 * kMega, 7.5 * kMega);
  check(tiles(), of_16, Algorithm::tree, 6, 32 * kMega, 16 * kMega);  // from a corner
  check(tiles(), collective(CollectiveKind::broadcast, 9, 9 * kMega), Algorithm::ring, 8, 9 * kMega, 9 * kMega);
  check(tiles(), collective(CollectiveKind::broadcast, 5, kMega), Algorithm::ring, 4, kMega, kMega);  // a line
}

TEST_CASE("a broadcast over nodes is sliced first when it is large, so that all network ports carry it") {
  // Small: 5 us to the other node, 1 us inside.
  const CollectiveCost small = collective_cost(mesh8(), collective(CollectiveKind::broadcast, 16, 8));
  CHECK(small.algorithm == Algorithm::hierarchical);
  CHECK(small.steps == 2);
  CHECK(small.latency.value == Approx(6 * kMicro));
  // Large: 1/8 over each link inside, an eighth to the other node, 1/8 over each link there.
  const Collective op = collective(CollectiveKind::broadcast, 16, 8 * kMega);
  const CollectiveCost large = collective_cost(mesh8(), op, Algorithm::hierarchical);
  CHECK(large.transfer.value == Approx(2 * kMega / 10e9 + kMega / 1e9));
  CHECK(large.latency.value == Approx((1 + 5 + 1) * kMicro));
  CHECK(large.sent.value == Approx(2 * 7 * kMega + kMega));
  const CollectiveCost flat = collective_cost(mesh8(), op, Algorithm::ring);
  CHECK(flat.steps == 15);
  CHECK(flat.sent.value == Approx(8 * kMega));
  CHECK(flat.busiest_link.value == Approx(kMega));  // an eighth of the tensor over each port
}

TEST_CASE("ranks lie in as few nodes as their stride allows") {
  const auto at = [](std::int64_t ranks, std::int64_t stride) {
    const Placement p = place(mesh8(), collective(CollectiveKind::all_reduce, ranks, 1, stride));
    return std::pair(p.inside, p.nodes);
  };
  CHECK(at(8, 1) == std::pair<std::int64_t, std::int64_t>(8, 1));
  CHECK(at(32, 1) == std::pair<std::int64_t, std::int64_t>(8, 4));
  CHECK(at(4, 8) == std::pair<std::int64_t, std::int64_t>(1, 4));
  CHECK(at(4, 16) == std::pair<std::int64_t, std::int64_t>(1, 4));
  CHECK(at(8, 4) == std::pair<std::int64_t, std::int64_t>(2, 4));
  CHECK(at(4, 2) == std::pair<std::int64_t, std::int64_t>(4, 1));
}

TEST_CASE("16 ranks in two nodes: reduce-scatter inside, an eighth between the nodes, all-gather inside") {
  const Collective all_reduce = collective(CollectiveKind::all_reduce, 16, 16 * kMega);
  const CollectiveCost cost = collective_cost(mesh8(), all_reduce, Algorithm::hierarchical);
  // Inside 16 MB / 8 over each link, twice; between nodes 2 MB to the other.
  CHECK(cost.sent.value == Approx(2 * 14 * kMega + 2 * kMega));
  CHECK(cost.level == Level::network);
  CHECK(cost.busiest_link.value == Approx(2 * kMega));
  CHECK(cost.transfer.value == Approx(2 * 2 * kMega / 10e9 + 2 * kMega / 1e9));
  CHECK(cost.latency.value == Approx((1 + 5 + 1) * kMicro));  // two nodes swap their summands in one message
  // Eight rings: a network port carries an eighth of the 30 MB that a device sends. Two of 15 steps cross, twice.
  const CollectiveCost flat = collective_cost(mesh8(), all_reduce, Algorithm::ring);
  CHECK(flat.steps == 30);
  CHECK(flat.busiest_link.value == Approx(30 * kMega / 8));
  CHECK(flat.transfer.value == Approx(30 * kMega / 8 / 1e9));
  CHECK(flat.latency.value == Approx(2 * (2 * 5 + 13) * kMicro));
}

TEST_CASE("an all-to-all over nodes sends as much between them whether by pairs or by node") {
  const Collective op = collective(CollectiveKind::all_to_all, 32, 32 * kMega);
  const CollectiveCost pairs = collective_cost(mesh8(), op, Algorithm::one_shot);
  const CollectiveCost nodes = collective_cost(mesh8(), op, Algorithm::hierarchical);
  CHECK(pairs.busiest_link.value == Approx(24 * kMega));
  CHECK(nodes.busiest_link.value == Approx(24 * kMega));
  CHECK(pairs.steps == 24);  // messages to devices of other nodes
  CHECK(nodes.steps < pairs.steps);
}

// `tokens` bytes of tokens, a byte each, from every rank to their experts.
Collective routed(std::int64_t ranks, double tokens, const graph::Routing& routing) {
  const double devices = static_cast<double>(ranks) * reached(routing, routing.experts / ranks);
  Collective c = collective(CollectiveKind::all_to_all, ranks, tokens * devices);
  c.routing = routing;
  return c;
}

TEST_CASE("tokens for experts cross to a node once and are passed on inside, both at the same time") {
  // Four devices in two nodes, an expert each, two of four per token: a device is reached by 1/2 of the tokens and a
  // node by 1 - 1/6. A rank's 6 MB make 3 MB for each of four devices; 5 MB go to the other node. Inside half of 12 MB.
  const Collective op = routed(4, 6 * kMega, {.experts = 4, .per_token = 2});
  CHECK(op.bytes().value == Approx(12 * kMega));
  CHECK(sent_bytes(op).value == Approx(9 * kMega));
  Cluster two = switch8();
  two.devices_per_node = 2;
  const CollectiveCost nodes = collective_cost(two, op, Algorithm::hierarchical);
  CHECK(nodes.sent.value == Approx(11 * kMega));
  CHECK(nodes.level == Level::network);
  CHECK(nodes.transfer.value == Approx(5 * kMega / 1e9));  // 6 MB over 10 GB/s are done before
  CHECK(nodes.latency.value == Approx((1 + 5) * kMicro));
  // Device by device 3 MB go to each of two others in the other node.
  const CollectiveCost pairs = collective_cost(two, op, Algorithm::one_shot);
  CHECK(pairs.sent.value == Approx(9 * kMega));
  CHECK(pairs.transfer.value == Approx(6 * kMega / 1e9));
  CHECK(collective_cost(two, op).algorithm == Algorithm::hierarchical);
}

TEST_CASE("in one node, and with one device in each, a token goes to each of its devices once") {
  const Collective op = routed(4, 6 * kMega, {.experts = 4, .per_token = 2});
  CHECK(collective_cost(switch8(), op, Algorithm::one_shot).sent.value == Approx(9 * kMega));
  Cluster apart = switch8();
  apart.devices_per_node = 1;
  CHECK(collective_cost(apart, op, Algorithm::one_shot).sent.value == Approx(9 * kMega));
}

TEST_CASE("a pipeline or a ring over nodes waits for its neighbour in the next node") {
  const CollectiveCost send = collective_cost(mesh8(), collective(CollectiveKind::send, 4, kMega, 4));
  CHECK(send.algorithm == Algorithm::direct);
  CHECK(send.time().value == Approx(5e-6 + kMega / 1e9));
  const CollectiveCost pass = collective_cost(mesh8(), collective(CollectiveKind::ring_pass, 16, kMega));
  CHECK(pass.time().value == Approx(15 * (5e-6 + kMega / 1e9)));
  const CollectiveCost inside = collective_cost(mesh8(), collective(CollectiveKind::ring_pass, 8, kMega));
  CHECK(inside.time().value == Approx(7 * (1e-6 + kMega / 10e9)));
}

// ---- rules ----

// A switch of 8 whose library takes 9 us to launch a call and copies a rank's own part at 20 GB/s.
Cluster library8(double fill) {
  Cluster c = switch8();
  c.inside.launch = Seconds{9 * kMicro};
  c.inside.chunks = {.copy = BytesPerSecond{20e9}, .fill = Seconds{fill}};
  return c;
}

TEST_CASE("a library posts an all-to-all in four steps however many ranks there are, and rings step by step") {
  const auto check_steps = [](CollectiveKind kind, std::int64_t ranks, double calls, double steps) {
    const CollectiveCost cost = collective_cost(library8(0), collective(kind, ranks, 8 * kMega));
    CAPTURE(name(kind), ranks);
    CHECK(cost.steps == steps);
    CHECK(cost.latency.value == Approx((calls * 9 + steps) * kMicro));
  };
  check_steps(CollectiveKind::all_to_all, 2, 1, 4);
  check_steps(CollectiveKind::all_to_all, 8, 1, 4);
  check_steps(CollectiveKind::send, 8, 1, 1);
  check_steps(CollectiveKind::broadcast, 8, 1, 7);
  check_steps(CollectiveKind::all_gather, 8, 1, 7);
  check_steps(CollectiveKind::all_reduce, 8, 1, 14);
  check_steps(CollectiveKind::ring_pass, 8, 7, 7);
}

TEST_CASE("filling a library's pipeline takes twice the geometric mean of a chunk's latency and the transfer") {
  // Of 8 MB 7 go at 10 GB/s, the own 1 at 20 GB/s: 750 us, and 2 sqrt(30 us x 750 us) = 300 us.
  const CollectiveCost all =
      collective_cost(library8(30 * kMicro), collective(CollectiveKind::all_to_all, 8, 8 * kMega));
  CHECK(all.transfer.value == Approx(750 * kMicro));
  CHECK(all.latency.value == Approx((9 + 4 + 300) * kMicro));
  // Three passes of 1.2 MB, each 120 us and filled for itself: 2 sqrt(30 us x 120 us) = 120 us.
  const CollectiveCost passes =
      collective_cost(library8(30 * kMicro), collective(CollectiveKind::ring_pass, 4, 1.2 * kMega));
  CHECK(passes.transfer.value == Approx(3 * 120 * kMicro));
  CHECK(passes.latency.value == Approx(3 * (9 + 1 + 120) * kMicro));
}

TEST_CASE("a single device has nothing to exchange") {
  for (const Named& c : clusters()) {
    for (const CollectiveKind kind : kKinds) {
      CAPTURE(c.name, name(kind));
      const CollectiveCost cost = collective_cost(c.cluster, collective(kind, 1, kMega));
      CHECK(cost.algorithm == Algorithm::none);
      CHECK(cost.time().value == 0);
      CHECK(cost.sent.value == 0);
      CHECK(sent_bytes(collective(kind, 1, kMega)).value == 0);
    }
  }
}

TEST_CASE("the chosen algorithm is never slower than another, and the list is sorted") {
  everywhere([](const Cluster& c, const Collective& op) {
    const Seconds chosen = collective_cost(c, op).time();
    const std::vector<CollectiveCost> all = collective_costs(c, op);
    REQUIRE_FALSE(all.empty());
    CHECK(all.front().time() == chosen);
    for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i - 1].time() <= all[i].time());
    for (const CollectiveCost& cost : all) CHECK(collective_cost(c, op, cost.algorithm).time() == cost.time());
  });
}

TEST_CASE("no algorithm sends less than it must or faster than all links of a device together") {
  everywhere([](const Cluster& c, const Collective& op) {
    const Bytes must = sent_bytes(op);
    const Placement at = place(c, op);
    BytesPerSecond rate{0};
    if (at.inside > 1) rate = rate + c.inside.per_device;
    if (at.nodes > 1) rate = rate + c.between.per_device;
    for (const CollectiveCost& cost : collective_costs(c, op)) {
      CAPTURE(name(cost.algorithm));
      CHECK(cost.sent.value >= must.value * (1 - 1e-12));
      CHECK(cost.transfer.value >= (must / rate).value * (1 - 1e-12));
      CHECK(cost.busiest_link.value <= cost.sent.value * static_cast<double>(op.ranks * op.stride));
      CHECK(cost.steps >= 1);
    }
  });
}

TEST_CASE("time grows with the size") {
  everywhere([](const Cluster& c, const Collective& op) {
    Collective larger = op;
    larger.rows *= 2;
    CHECK(collective_cost(c, op).time() < collective_cost(c, larger).time());
  });
}

TEST_CASE("an all-reduce is never slower than a reduce-scatter and an all-gather") {
  everywhere([](const Cluster& c, const Collective& op) {
    if (op.kind != CollectiveKind::all_reduce) return;
    Collective scatter = op;
    scatter.kind = CollectiveKind::reduce_scatter;
    Collective gather = op;
    gather.kind = CollectiveKind::all_gather;
    const Seconds parts = collective_cost(c, scatter).time() + collective_cost(c, gather).time();
    CHECK(collective_cost(c, op).time().value <= parts.value * (1 + 1e-12));
    // By rings the three are made of the same steps.
    const auto ring_time = [&](const Collective& x) { return collective_cost(c, x, Algorithm::ring).time().value; };
    CHECK(ring_time(op) == Approx(ring_time(scatter) + ring_time(gather)));
  });
}

TEST_CASE("what fits in a node does not see the network") {
  for (const Named& c : clusters()) {
    Cluster one = c.cluster;
    Cluster slow = c.cluster;
    one.devices_per_node = kAnyDevices;
    slow.between.per_device = BytesPerSecond{1};
    for (const CollectiveKind kind : kKinds) {
      const Collective op = collective(kind, 8, kMega);
      CAPTURE(c.name, name(kind));
      CHECK(collective_cost(one, op).time() == collective_cost(slow, op).time());
      CHECK(collective_cost(slow, op).level != Level::network);
    }
  }
}

TEST_CASE("an algorithm that does not exist for a collective is answered with those that do") {
  try {
    collective_cost(mesh8(), collective(CollectiveKind::all_gather, 8, kMega), Algorithm::tree);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    CHECK_THAT(std::string(error.what()),
               Catch::Contains("no tree all-gather of 8 ranks") && Catch::Contains("one-shot, ring"));
  }
}

// Kernels of a stack's own: 4 us, 0.1 us for every other rank, 5 GB/s in one shot; 3 us more and 8 GB/s in two.
Cluster custom8() {
  Cluster c = switch8();
  c.inside.chunks = {.copy = BytesPerSecond{1e12}, .fill = Seconds{kMicro}};
  c.inside.launch = Seconds{9 * kMicro};
  c.inside.custom = {.most = Bytes{8 * kMega},
                     .launch = Seconds{4 * kMicro},
                     .rank = Seconds{0.1 * kMicro},
                     .one_shot = BytesPerSecond{5e9},
                     .second = Seconds{3 * kMicro},
                     .two_shot = BytesPerSecond{8e9}};
  return c;
}

TEST_CASE("a stack's own kernels all-reduce in one shot or in two, by size and ranks") {
  const auto cost = [](std::int64_t ranks, double bytes) {
    return collective_cost(custom8(), collective(CollectiveKind::all_reduce, ranks, bytes));
  };
  // Two ranks: everything to the other, of any size: 1 MB / 5 GB/s = 200 us.
  CHECK(cost(2, kMega).algorithm == Algorithm::one_shot);
  CHECK(cost(2, kMega).time().value == Approx((4 + 0.1 + 200) * kMicro));
  // Four, below 512 KiB: three times 100 kB; from there on 2 x 3/4 of it in two shots.
  CHECK(cost(4, 1e5).time().value == Approx((4 + 0.3 + 60) * kMicro));
  CHECK(cost(4, 512 * 1024 - 1).algorithm == Algorithm::one_shot);
  CHECK(cost(4, 512 * 1024).algorithm == Algorithm::two_shot);
  CHECK(cost(4, 1.6e6).time().value == Approx((4 + 0.3 + 3 + 300) * kMicro));
  // Eight: from 256 KiB on.
  CHECK(cost(8, 256 * 1024 - 1).algorithm == Algorithm::one_shot);
  CHECK(cost(8, 256 * 1024).algorithm == Algorithm::two_shot);
  CHECK(cost(8, 256 * 1024).sent.value == Approx(2 * 7 / 8.0 * 256 * 1024));
}

TEST_CASE("an engine that looks up its own timings takes the faster of one shot and two") {
  Cluster c = custom8();
  c.inside.custom->fastest = true;
  const auto cost = [&](std::int64_t ranks, double bytes) {
    return collective_cost(c, collective(CollectiveKind::all_reduce, ranks, bytes));
  };
  // Eight: 7 S / 5 GB/s = 3 us + 1.75 S / 8 GB/s where S is 2,540 bytes.
  CHECK(cost(8, 2500).algorithm == Algorithm::one_shot);
  CHECK(cost(8, 2500).time().value == Approx((4 + 0.7 + 3.5) * kMicro));
  CHECK(cost(8, 2600).algorithm == Algorithm::two_shot);
  CHECK(cost(8, 8000).time().value == Approx((4 + 0.7 + 3 + 1.75) * kMicro));
  CHECK(cost(2, kMega).algorithm == Algorithm::one_shot);  // to the only other rank
  for (double bytes = 64; bytes <= 8 * kMega; bytes *= 2) {
    CHECK(cost(4, bytes).time() <=
          collective_cost(custom8(), collective(CollectiveKind::all_reduce, 4, bytes)).time() * (1 + 1e-12));
  }
}

TEST_CASE("a stack's all-reduce that takes the norm along may be another kernel, at a factor") {
  Cluster c = custom8();
  c.inside.custom->with_norm = 0.5;
  graph::Collective sum = collective(CollectiveKind::all_reduce, 4, 1e5);
  CHECK(collective_cost(c, sum).time().value == Approx((4 + 0.3 + 60) * kMicro));
  sum.with_norm = true;
  CHECK(collective_cost(c, sum).time().value == Approx((4 + 0.3 + 60) * kMicro / 2));
}

TEST_CASE("a switch that adds up takes the tensor once, where more than four ranks make that the faster") {
  Cluster c = switch8();
  c.inside.launch = Seconds{9 * kMicro};
  c.inside.reduces = true;
  c.inside.chunks = {.copy = BytesPerSecond{1e12},
                     .fill = Seconds{kMicro},
                     .in_switch = BytesPerSecond{8e9},
                     .switch_launch = Seconds{30 * kMicro}};
  const auto cost = [&](std::int64_t ranks, double bytes) {
    return collective_cost(c, collective(CollectiveKind::all_reduce, ranks, bytes));
  };
  // 80 MB at 8 GB/s: 10 ms, and 2 sqrt(1 us x 10 ms) = 200 us of filling; a ring sends 140 MB at 10 GB/s.
  CHECK(cost(8, 80 * kMega).algorithm == Algorithm::in_switch);
  CHECK(cost(8, 80 * kMega).time().value == Approx((9 + 30 + 10000 + 200) * kMicro));
  CHECK(cost(8, 1000).algorithm == Algorithm::ring);
  CHECK(cost(4, 80 * kMega).algorithm == Algorithm::ring);
  CHECK(collective_cost(c, collective(CollectiveKind::all_gather, 8, 80 * kMega)).algorithm == Algorithm::ring);
}

TEST_CASE("a switch that adds up bounds an all-reduce by the tensor sent once, up to 2 (n-1)/n times the links' rate") {
  const Cluster h100 = make_cluster(hardware::load_device("h100-sxm"));
  const auto bus = [&](const Cluster& c, double bytes) {
    const CollectiveCost cost = collective_cost(c, collective(CollectiveKind::all_reduce, 8, bytes));
    return 2 * 7 / 8.0 * bytes / cost.time().value;
  };
  const double size = 8.0 * 1024 * 1024 * 1024;
  // NCCL measures 476 GB/s of eight H100 with NVLink SHARP (nccl-tests, issue 290), over links of 450.
  CHECK(bus(h100, size) > 476e9);
  CHECK(bus(h100, size) == Approx(2 * 7 / 8.0 * 450e9).epsilon(1e-3));
  CHECK(collective_cost(h100, collective(CollectiveKind::all_reduce, 8, size)).algorithm == Algorithm::in_switch);
  // The switches before add nothing up; nor is there anything to add up in other collectives.
  CHECK(bus(make_cluster(hardware::load_device("a100-sxm-80gb")), size) < 300e9);
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_to_all}) {
    CHECK(collective_cost(h100, collective(kind, 8, size)).time().value >= 7 / 8.0 * size / 450e9);
  }
}

TEST_CASE("what a stack has no kernel for is its library's") {
  Cluster library = custom8();
  library.inside.custom.reset();
  const auto as_library = [&](Collective c) {
    return collective_cost(custom8(), c).time() == collective_cost(library, c).time();
  };
  CHECK_FALSE(as_library(collective(CollectiveKind::all_reduce, 8, 8 * kMega)));
  CHECK(as_library(collective(CollectiveKind::all_reduce, 8, 8 * kMega + 1)));
  CHECK(as_library(collective(CollectiveKind::all_reduce, 3, 1000)));
  CHECK(as_library(collective(CollectiveKind::all_reduce, 16, 1000)));
  CHECK(as_library(collective(CollectiveKind::all_gather, 8, 1000)));
  Collective measured = collective(CollectiveKind::all_reduce, 8, 1000);
  measured.library = true;
  CHECK(as_library(measured));
}

}  // namespace
}  // namespace llmperf::cost::collective_test
