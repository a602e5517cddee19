// Time of a collective on a set of links: alpha-beta, steps * latency + bytes / bandwidth, for every algorithm that the
// topology allows; the fastest is taken. The derivations are in collective.cpp, of devices that one kind of
// link joins and of levels of links. Links that a collective library drives (mapper/roofline/kernels.h) carry
// what it costs, so that the algorithm is chosen by what is charged.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "graph/op.h"
#include "hardware/device.h"

namespace llmperf::cost {

// The links between equal neighbours: the dies of a package, the devices of a node, or the nodes.
struct Links {
  std::string_view name;  // "HCCS", "PCIe4 x16"; of the device's storage
  hardware::Topology topology = hardware::Topology::fully_switched;
  BytesPerSecond per_device;  // all links of one device together, one direction
  BytesPerSecond per_link;    // to one neighbour, one direction; a switch: per_device
  Seconds latency;            // of one step: a message to a neighbour
  // Messages of one device to different others leave one after the other, each with its latency, as from a network
  // card; inside a node they are under way together.
  bool serial = false;
  hardware::Provenance provenance = hardware::Provenance::datasheet;        // of the rates
  hardware::Provenance latency_provenance = hardware::Provenance::assumed;  // of the latency
  bool latency_stated = false;  // by the device's file, so that no library is faster than it
  bool reduces = false;         // the switch adds up what it is sent, and who drives the links has it do so
  // What a library adds; nothing at the speed of light.
  Seconds launch;                                        // of every call
  Bytes small{std::numeric_limits<double>::infinity()};  // up to which a call starts at once
  Seconds setup;                                         // of a larger one, beside the launch
  double reduce = 1;                                     // of the rates, for bytes that are added up on arrival
  // Rings of chunks, the only algorithm of a library that has them: the rate at which a rank copies its own part, and
  // the latency of a chunk, by which filling the pipeline takes longer.
  struct Chunks {
    BytesPerSecond copy;
    Seconds fill;
    // Of all-reduces that the switch adds up, where it does: the tensor's rate, and what they take beside a launch.
    BytesPerSecond in_switch = {};
    Seconds switch_launch = {};
  };
  std::optional<Chunks> chunks;
  // All-reduces up to a size by kernels of the stack's own.
  struct Custom {
    Bytes most;
    bool fastest = false;  // of one shot and two; else by sizes
    Seconds launch;
    Seconds rank;
    BytesPerSecond one_shot;
    Seconds second;
    BytesPerSecond two_shot;
    double with_norm = 1;  // of that time, what a kernel takes that has the norm in it
  };
  std::optional<Custom> custom;
  // Of a PCIe tree whose devices reach each other through the host, but for the few behind one switch: what such a
  // device gets through the bridges, and all of them together between two sockets.
  struct Host {
    std::int64_t direct = 1;  // devices behind one switch
    std::int64_t socket = 1;  // devices of one socket
    BytesPerSecond bridge;
    BytesPerSecond sockets;
    Seconds latency;  // of a step that passes the host
  };
  std::optional<Host> host;
};

// Links without nodes: those of a torus, a ring or a mesh join as many devices as there are.
inline constexpr std::int64_t kAnyDevices = std::numeric_limits<std::int64_t>::max();

// Levels of links, near to far.
enum class Level : unsigned char { package, node, supernode, network };
inline constexpr std::size_t kLevels = 4;
std::string_view name(Level level);  // "inside a node", "between nodes"

// Devices in nodes. The device must outlive it.
struct Cluster {
  Links inside;
  Links between;
  Links package = {};    // of the dies of a card, nearer than a node's devices, which have ports of their own each
  Links supernode = {};  // between nodes, through the ports that the devices have inside theirs
  std::int64_t devices_per_package = 1;                                  // 1: there are no packages
  std::int64_t devices_per_node = 1;                                     // kAnyDevices: one node
  std::int64_t devices_per_supernode = 1;                                // 1: there are no supernodes
  hardware::Provenance node_provenance = hardware::Provenance::assumed;  // of the file's devices_per_node
  // One kernel that takes a device's tokens to their experts, and one that takes results back, up to so many tokens.
  struct ExpertExchange {
    double tokens = 0;
    Seconds launch;
    Seconds there;  // beside it, on the way there
    Seconds round;  // of every doubling of the ranks
    double share = 1;
    double network = 0;  // the same between nodes; 0: not there
  };
  std::optional<ExpertExchange> experts = {};

  const Links& links(Level level) const;
  std::int64_t devices(Level level) const;  // that it joins; those of the level before where there is no such level
};

// From the device's file. Where it names no interconnect the devices of a node talk over their host links (a PCIe
// tree, assumed); where it names no network a node has what class defaults say (assumed); where it says nothing of
// nodes, links between neighbours join all devices, a full mesh as many as it has links for, and anything else eight
// (assumed). `devices_per_node` overrides the file. Throws Error(bad_input) when a full mesh has too few links for it.
Cluster make_cluster(const hardware::Device& device, std::optional<std::int64_t> devices_per_node = std::nullopt);

// How a collective lies in a cluster: `inside` ranks in each of `nodes` nodes.
struct Placement {
  std::int64_t inside = 1;
  std::int64_t nodes = 1;
};
Placement place(const Cluster& cluster, const graph::Collective& collective);
// The levels whose links it uses, near to far; empty for one rank.
std::vector<Level> levels_of(const Cluster& cluster, const graph::Collective& collective);

enum class Algorithm : unsigned char {
  none,              // a single device
  ring,              // neighbours only
  one_shot,          // everyone (broadcast: the root) to everyone, once
  two_shot,          // reduce-scatter (broadcast: scatter) and all-gather, each everyone to everyone
  halving_doubling,  // the same two in log2(ranks) rounds each
  tree,              // double binary tree; broadcast over neighbours: the shortest ways from the root
  bruck,             // all-to-all in log2(ranks) rounds
  dimensions,        // tori and meshes: one dimension after the other
  hierarchical,      // inside nodes (packages, supernodes), between them, inside again
  direct,            // one message
  in_switch          // the switch adds up what everyone sends it once
};
std::string_view name(Algorithm algorithm);

struct CollectiveCost {
  Algorithm algorithm = Algorithm::none;
  double steps = 0;           // messages that follow one another
  Bytes sent;                 // by one device (the one that sends most), all its links together
  Bytes busiest_link;         // over the link that limits the exchange, one direction
  Level level = Level::node;  // of that link
  Seconds latency;            // of the steps, and of launching and filling what a library runs
  Seconds transfer;           // busiest_link at that link's rate; hierarchical: of all stages
  Seconds time() const { return latency + transfer; }
};

// The fastest algorithm, or the one asked for. Allocates nothing. Throws Error(bad_input) when `algorithm` does not
// exist for this collective on these links (names those that do).
CollectiveCost collective_cost(const Cluster& cluster, const graph::Collective& collective,
                               std::optional<Algorithm> algorithm = std::nullopt);
// Every algorithm that exists for it, fastest first.
std::vector<CollectiveCost> collective_costs(const Cluster& cluster, const graph::Collective& collective);

// Sizes from `from` on, up to the next range, for which `algorithm` is the fastest.
struct SizeRange {
  Bytes from;
  Algorithm algorithm = Algorithm::none;
};
// Of this collective at any size between 1 B and 1 TiB.
std::vector<SizeRange> fastest_by_size(const Cluster& cluster, const graph::Collective& collective);

// The bytes that one device cannot avoid sending (docs/formulas.md, Collectives), as every bandwidth-optimal algorithm:
// all-reduce 2 (n-1)/n S, all-gather and reduce-scatter (n-1)/n S, all-to-all (n-1)/n S, send S, ring pass (n-1) S,
// broadcast S (of the rank that has it).
Bytes sent_bytes(const graph::Collective& collective);

}  // namespace llmperf::cost
