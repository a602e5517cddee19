// What holds for collectives on any links and under any profile: more bytes never take less time, and never so much
// more that time jumps; the algorithm is the cheapest as charged; predictions respect the speed of light; better links
// are never slower.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "catch.h"
#include "mapper/roofline/kernels.h"

namespace llmperf::mapper::collective_metamorphic_test {
namespace {

using cost::Cluster;
using cost::Links;
using graph::Collective;
using graph::CollectiveKind;
using hardware::Parameter;
using hardware::ParameterValues;
using hardware::Topology;

constexpr int kCases = 600;
constexpr double kRounding = 1e-9;

class Random {
 public:
  std::int64_t in(std::int64_t first, std::int64_t last) {
    return std::uniform_int_distribution<std::int64_t>(first, last)(engine_);
  }
  // Evenly over the orders of magnitude.
  double between(double low, double high) {
    return low * std::pow(high / low, std::uniform_real_distribution<double>(0, 1)(engine_));
  }

 private:
  std::mt19937_64 engine_{19};
};

Links random_links(Random& random, Topology topology) {
  Links l;
  l.topology = topology;
  l.per_link = BytesPerSecond{random.between(1e9, 1e11)};
  const bool neighbours = topology != Topology::fully_switched && topology != Topology::pcie_tree;
  l.per_device = (neighbours ? 7.0 : 1.0) * l.per_link;
  l.latency = Seconds{random.between(1e-7, 3e-4)};
  l.latency_stated = random.in(0, 1) == 1;
  return l;
}

struct Case {
  Cluster cluster;
  ParameterValues values;
  Collective op;
};
Case random_case(Random& random) {
  constexpr std::array kInside = {Topology::full_mesh, Topology::fully_switched, Topology::pcie_tree, Topology::ring,
                                  Topology::torus_2d,  Topology::torus_3d,       Topology::tile_mesh};
  Case c;
  c.cluster.inside = random_links(random, kInside[static_cast<std::size_t>(random.in(0, 6))]);
  c.cluster.between = random_links(random, Topology::fully_switched);
  c.cluster.between.serial = true;
  c.cluster.devices_per_node = random.in(1, 16);
  for (std::size_t i = 0; i < c.values.size(); ++i) {
    const hardware::ParameterInfo& p = hardware::parameter_info(i);
    c.values[i] = random.between(std::max(p.min, p.initial / 3), std::min(p.max, p.initial * 3));
  }
  c.op.kind = static_cast<CollectiveKind>(random.in(0, 6));
  c.op.ranks = random.in(2, 64);
  c.op.stride = random.in(1, 3);
  c.op.element = {"int8", 8, 1};
  c.op.width = 1;
  c.op.rows = random.between(1, 1e10);
  if (c.op.kind == CollectiveKind::all_to_all && random.in(0, 1) == 1) {
    c.op.routing.groups = random.in(1, 8);
    c.op.routing.groups_per_token = random.in(1, c.op.routing.groups);
    c.op.routing.experts = c.op.routing.groups * c.op.ranks * random.in(1, 4);
    c.op.routing.per_token = random.in(1, std::min<std::int64_t>(8, c.op.routing.experts / c.op.routing.groups));
  }
  return c;
}

// Calls `rule` with every case and the links as they are and as the profile's library drives them.
template <class Rule>
void everywhere(Rule rule) {
  Random random;
  for (int i = 0; i < kCases; ++i) {
    const Case c = random_case(random);
    CAPTURE(i, graph::name(c.op.kind), c.op.ranks, c.op.stride, c.op.rows, hardware::name(c.cluster.inside.topology),
            c.cluster.devices_per_node);
    rule(c.cluster, c.op);
    hardware::RuntimeProfile profile;
    profile.values = c.values;
    rule(driven(c.cluster, profile), c.op);
  }
}

double seconds(const Cluster& cluster, const Collective& op) { return cost::collective_cost(cluster, op).time().value; }

TEST_CASE("more bytes never take less time, nor more than in proportion: no size is a step up") {
  everywhere([](const Cluster& cluster, const Collective& op) {
    Collective larger = op;
    for (const double factor : {1 + 1e-6, 1.05, 2.0, 64.0}) {
      larger.rows = factor * op.rows;
      CHECK(seconds(cluster, larger) >= seconds(cluster, op) * (1 - kRounding));
      CHECK(seconds(cluster, larger) <= factor * seconds(cluster, op) * (1 + kRounding));
    }
  });
}

TEST_CASE("the algorithm that is taken is the cheapest of those there are, as they are charged") {
  everywhere([](const Cluster& cluster, const Collective& op) {
    for (const cost::CollectiveCost& other : cost::collective_costs(cluster, op)) {
      CHECK(seconds(cluster, op) <= other.time().value);
    }
  });
}

TEST_CASE("links of twice the rate, or of half the latency, are never slower") {
  everywhere([](const Cluster& cluster, const Collective& op) {
    for (Links Cluster::*level : {&Cluster::inside, &Cluster::between}) {
      Cluster faster = cluster;
      Links& links = faster.*level;
      links.per_device = 2 * links.per_device;
      links.per_link = 2 * links.per_link;
      CHECK(seconds(faster, op) <= seconds(cluster, op) * (1 + kRounding));
      Cluster quicker = cluster;
      (quicker.*level).latency = 0.5 * (quicker.*level).latency;
      CHECK(seconds(quicker, op) <= seconds(cluster, op) * (1 + kRounding));
    }
  });
}

TEST_CASE("a node of twice as many devices, on a switch that is no slower than the network, is never slower") {
  Random random;
  for (int i = 0; i < kCases; ++i) {
    Case c = random_case(random);
    c.cluster.inside = random_links(random, Topology::fully_switched);
    c.cluster.inside.per_device = c.cluster.inside.per_link = 8 * c.cluster.between.per_device;
    c.cluster.inside.latency = 0.1 * c.cluster.between.latency;
    c.op.stride = 1;
    c.op.routing = {};
    const std::int64_t nodes = std::int64_t{1} << random.in(1, 4);
    c.cluster.devices_per_node = std::int64_t{1} << random.in(0, 3);
    c.op.ranks = nodes * c.cluster.devices_per_node;
    CAPTURE(i, graph::name(c.op.kind), c.op.ranks, c.op.rows, c.cluster.devices_per_node);
    Cluster larger = c.cluster;
    larger.devices_per_node *= 2;
    CHECK(seconds(larger, c.op) <= seconds(c.cluster, c.op) * (1 + kRounding));
  }
}

}  // namespace
}  // namespace llmperf::mapper::collective_metamorphic_test
