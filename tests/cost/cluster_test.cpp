// Clusters made of the built-in devices, and collectives on them against measurements, which the model must stay below.
#include <string>

#include "base/error.h"
#include "catch.h"
#include "cost/collective.h"

namespace llmperf::cost::cluster_test {
namespace {

using graph::Collective;
using graph::CollectiveKind;
using hardware::Topology;

Collective collective(CollectiveKind kind, std::int64_t ranks, double bytes) {
  Collective c;
  c.kind = kind;
  c.ranks = ranks;
  c.rows = bytes;
  c.width = 1;
  c.element = {"int8", 8, 1};
  return c;
}

TEST_CASE("links of the built-in devices") {
  const hardware::Device a2 = hardware::load_device("atlas-800i-a2");
  const Cluster c = make_cluster(a2);
  CHECK(c.devices_per_node == 8);
  CHECK(c.node_provenance == hardware::Provenance::datasheet);
  CHECK(c.inside.topology == Topology::full_mesh);
  CHECK(c.inside.per_link.value == 28e9);
  CHECK(c.inside.latency_provenance == hardware::Provenance::assumed);
  CHECK(c.between.per_device.value == 25e9);
  CHECK(c.between.serial);
  // Half of the server is wired as the whole.
  CHECK(make_cluster(a2, 4).inside.per_link.value == 28e9);
  CHECK(make_cluster(a2, 4).devices_per_node == 4);
  CHECK_THROWS_WITH(make_cluster(a2, 16), Catch::Contains("7 links") && Catch::Contains("`devices-per-node` 8"));

  // Three of 21 links to each of seven peers.
  const hardware::Device gaudi = hardware::load_device("gaudi3");
  CHECK(make_cluster(gaudi).inside.per_link.value == 75e9);
  const hardware::Device h100 = hardware::load_device("h100-sxm");
  CHECK(make_cluster(h100).inside.per_link.value == 450e9);
  CHECK(make_cluster(h100).between.name == "InfiniBand NDR");
}

TEST_CASE("what a device file leaves out is assumed and says so") {
  const hardware::Device card = hardware::load_device("rtx4090");
  const Cluster cards = make_cluster(card);
  CHECK(cards.devices_per_node == 8);
  CHECK(cards.node_provenance == hardware::Provenance::assumed);
  CHECK(cards.inside.latency.value == 2e-6);
  CHECK(cards.between.provenance == hardware::Provenance::assumed);
  CHECK(cards.between.per_device.value == 12.5e9);  // 100 Gbit/s
  CHECK(cards.between.latency.value == 5e-6);
  const hardware::Device bridged = hardware::load_device("rtx3090");
  CHECK(make_cluster(bridged).devices_per_node == 2);  // one link
  const hardware::Device chip = hardware::load_device("tpu-v4");
  CHECK(make_cluster(chip).devices_per_node == kAnyDevices);
  CHECK(make_cluster(chip).inside.per_link.value == 45e9);
  const hardware::Device tx8 = hardware::load_device("tx8");
  CHECK(make_cluster(tx8).inside.topology == Topology::pcie_tree);
  CHECK(make_cluster(tx8).inside.provenance == hardware::Provenance::assumed);
  CHECK_FALSE(make_cluster(tx8).inside.host);  // its file does not say which devices share a switch
  const cost::Links l40s = make_cluster(hardware::load_device("l40s")).inside;
  REQUIRE(l40s.host);
  CHECK(l40s.host->direct == 2);
  CHECK(l40s.host->socket == 4);  // half of the eight that a server is taken to have
  CHECK(l40s.host->bridge.value == 32e9);
  CHECK(l40s.host->sockets.value == 32e9);
  hardware::Device mesh = tx8;
  mesh.interconnect = hardware::Interconnect{};
  mesh.interconnect->topology = Topology::tile_mesh;
  mesh.interconnect->per_direction = BytesPerSecond{40e9};
  CHECK(make_cluster(mesh).inside.latency.value == 10e-9);  // a hop
  CHECK(make_cluster(mesh).inside.per_link.value == 10e9);
}

TEST_CASE("all-reduce on the Atlas 800I A2 is faster than measured") {
  // Fitted to Llama-2-70B runs: 15 us + 1.75 bytes / 126 GB/s. The roof is 1.75 bytes / 196 GB/s over seven links, of
  // which 126 are 0.64.
  const hardware::Device device = hardware::load_device("atlas-800i-a2");
  const Cluster c = make_cluster(device);
  for (const double bytes : {16e3, 262e3, 4e6, 67e6, 134e6, 268e6}) {
    CAPTURE(bytes);
    const double measured = 15e-6 + 1.75 * bytes / 126e9;
    const double model = collective_cost(c, collective(CollectiveKind::all_reduce, 8, bytes)).time().value;
    CHECK(model < measured);
    if (bytes > 50e6) CHECK(model / measured == Approx(126.0 / 196).epsilon(0.02));
  }
}

TEST_CASE("rings on the A100 are faster than fitted to NCCL on 2 to 8 of them") {
  // Fitted: 8.7 us, 0.82 us a step and 0.82 of the bandwidth.
  const hardware::Device device = hardware::load_device("a100-sxm-80gb");
  const Cluster c = make_cluster(device);
  for (const std::int64_t ranks : {2, 4, 8}) {
    for (const double bytes : {4e3, 1e6, 64e6, 1e9}) {
      const CollectiveCost ring =
          collective_cost(c, collective(CollectiveKind::all_reduce, ranks, bytes), Algorithm::ring);
      const double fitted = 8.7e-6 + 0.82e-6 * ring.steps + ring.sent.value / (0.82 * 300e9);
      CAPTURE(ranks, bytes);
      CHECK(ring.time().value < fitted);
      if (bytes >= 1e9) CHECK(ring.time().value > 0.8 * fitted);
    }
  }
}

TEST_CASE("eight Gaudi 3 reach 98 % of the model") {
  // docs.habana.ai, Collectives Performance: 256 MiB all-reduce in 0.915792 ms (512.96 GB/s of 525, so Gaudi 3); 16 MiB
  // per rank all-gathered in 0.230642 ms.
  const hardware::Device device = hardware::load_device("gaudi3");
  const Cluster c = make_cluster(device);
  const double reduce = collective_cost(c, collective(CollectiveKind::all_reduce, 8, 256 * kMiB)).time().value;
  const double gather = collective_cost(c, collective(CollectiveKind::all_gather, 8, 8 * 16 * kMiB)).time().value;
  CHECK(reduce < 0.915792e-3);
  CHECK(reduce > 0.97 * 0.915792e-3);
  CHECK(gather < 0.230642e-3);
  CHECK(gather > 0.97 * 0.230642e-3);
}

}  // namespace
}  // namespace llmperf::cost::cluster_test
