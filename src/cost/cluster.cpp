// The links of a device's file, with what the file leaves out.
//
// Latencies, where a file has none, are assumptions: of one small message to a neighbour, software included. NCCL's own
// tuning table (src/graph/tuning.cc) has 0.6 to 3.4 us a step over NVLink, 1.0 to 5.7 over PCIe and 2.7 to 14 over a
// network, by protocol; TPU links are simulated with 1 us (ASTRA-sim's validation, as told by the TPU research team).
// What a library really takes belongs to a runtime profile.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/number.h"
#include "cost/collective.h"

namespace llmperf::cost {
namespace {

using hardware::Provenance;
using hardware::Topology;

constexpr Seconds kNetworkLatency{5e-6};
constexpr BytesPerSecond kNetworkRate{12.5e9};  // 100 Gbit/s
constexpr BytesPerSecond kHostRate{32e9};       // PCIe4 x16
constexpr std::int64_t kCardsPerServer = 8;

Seconds default_latency(Topology topology) { return Seconds{topology == Topology::pcie_tree ? 2e-6 : 1e-6}; }

// Links to neighbours of one device where the topology fixes their number.
double neighbour_links(Topology topology) {
  switch (topology) {
    case Topology::ring: return 2;
    case Topology::torus_2d:
    case Topology::tile_mesh: return 4;
    case Topology::torus_3d: return 6;
    default: return 1;
  }
}

bool joins_any_number(Topology topology) { return neighbour_links(topology) > 1; }

// What a file without devices_per_node means by its interconnect.
std::int64_t default_devices_per_node(const hardware::Interconnect& net) {
  if (joins_any_number(net.topology)) return kAnyDevices;
  if (net.topology == Topology::full_mesh && net.links) return *net.links + 1;
  return kCardsPerServer;
}

// Rate between two devices of a full mesh of `devices`.
BytesPerSecond mesh_link(const hardware::Device& device, const hardware::Interconnect& net, std::int64_t devices) {
  const std::int64_t peers = std::max<std::int64_t>(1, devices - 1);
  if (net.links && *net.links < peers) {
    throw Error::bad_input(fmt::format("{} has {} links, which make a full mesh of at most {} devices, not {}",
                                       device.name, *net.links, *net.links + 1, devices),
                           fmt::format("`devices-per-node` {}", *net.links + 1));
  }
  if (!net.links) return *net.per_direction / static_cast<double>(peers);
  const BytesPerSecond one = net.per_link.value_or(*net.per_direction / static_cast<double>(*net.links));
  const std::int64_t each = *net.links / peers;  // whole links
  return static_cast<double>(each) * one;
}

// Of one level: of a package, a node or nodes.
Links level_links(const hardware::Device& device, const hardware::Interconnect& net, std::int64_t devices) {
  Links links;
  links.name = net.name;
  links.topology = net.topology;
  links.per_device = *net.per_direction;
  links.reduces = net.reduces;
  if (net.direct > 0) {
    constexpr std::int64_t kSockets = 2;
    links.host = {.direct = net.direct,
                  .socket = std::max(net.direct, devices / kSockets),
                  .bridge = links.per_device,
                  .sockets = links.per_device,
                  .latency = net.latency.value_or(default_latency(net.topology))};
  }
  links.provenance = net.provenance;
  links.latency = net.latency.value_or(default_latency(net.topology));
  links.latency_provenance = net.latency ? net.latency_provenance : Provenance::assumed;
  links.latency_stated = net.latency.has_value();
  if (!net.latency && net.topology == Topology::tile_mesh && device.tile_array) {
    links.latency = device.tile_array->hop_latency;  // a mesh of chips goes on where the mesh of tiles ends
  }
  if (net.topology == Topology::full_mesh) {
    links.per_link = mesh_link(device, net, devices);
  } else {
    const BytesPerSecond even = *net.per_direction / neighbour_links(net.topology);
    links.per_link = joins_any_number(net.topology) ? net.per_link.value_or(even) : even;
  }
  return links;
}

Links host_links(const hardware::Device& device) {
  Links links;
  links.name = device.host_link ? std::string_view(device.host_link->name) : "PCIe4 x16";
  links.topology = Topology::pcie_tree;
  links.per_device = device.host_link ? device.host_link->per_direction : kHostRate;
  links.per_link = links.per_device;
  links.latency = default_latency(Topology::pcie_tree);
  links.provenance = Provenance::assumed;
  return links;
}

Links network_links(const hardware::Device& device) {
  Links links;
  links.name = "100 GbE";
  links.per_device = kNetworkRate;
  links.latency = kNetworkLatency;
  links.serial = true;
  links.provenance = Provenance::assumed;
  if (device.network) {
    links.name = device.network->name;
    links.per_device = device.network->per_direction;
    links.provenance = device.network->provenance;
    links.latency = device.network->latency.value_or(kNetworkLatency);
    links.latency_provenance = device.network->latency ? device.network->latency_provenance : Provenance::assumed;
    links.latency_stated = device.network->latency.has_value();
  }
  links.per_link = links.per_device;
  return links;
}

}  // namespace

Cluster make_cluster(const hardware::Device& device, std::optional<std::int64_t> devices_per_node) {
  Cluster cluster;
  cluster.between = network_links(device);
  const bool joined = device.interconnect && device.interconnect->topology != Topology::none;
  const bool stated = device.devices_per_node > 1;
  cluster.devices_per_node = stated   ? device.devices_per_node
                             : joined ? default_devices_per_node(*device.interconnect)
                                      : kCardsPerServer;
  cluster.node_provenance = stated || devices_per_node ? Provenance::datasheet : Provenance::assumed;
  // Fewer devices than the file's leave the links as they are wired; more must share them.
  const std::int64_t wired = std::max(cluster.devices_per_node, devices_per_node.value_or(1));
  cluster.inside = joined ? level_links(device, *device.interconnect, wired) : host_links(device);
  if (devices_per_node) cluster.devices_per_node = *devices_per_node;
  if (device.package && cluster.devices_per_node > device.package->devices) {
    cluster.devices_per_package = device.package->devices;
    cluster.package = level_links(device, *device.package, cluster.devices_per_package);
  }
  if (device.supernode && device.supernode->devices > cluster.devices_per_node) {
    cluster.devices_per_supernode = device.supernode->devices;
    cluster.supernode = level_links(device, *device.supernode, cluster.devices_per_supernode);
  }
  return cluster;
}

std::string_view name(Level level) {
  constexpr std::array<std::string_view, kLevels> kNames = {"inside a package", "inside a node",
                                                            "between nodes of a supernode", "between nodes"};
  return kNames[static_cast<std::size_t>(level)];
}

const Links& Cluster::links(Level level) const {
  switch (level) {
    case Level::package: return package;
    case Level::supernode: return supernode;
    case Level::network: return between;
    case Level::node: break;
  }
  return inside;
}

std::int64_t Cluster::devices(Level level) const {
  switch (level) {
    case Level::package: return devices_per_package;
    case Level::supernode: return std::max(devices_per_node, devices_per_supernode);
    case Level::network: return kAnyDevices;
    case Level::node: break;
  }
  return devices_per_node;
}

}  // namespace llmperf::cost
