// Which devices an explicit collective joins, from its attributes. Devices are numbered replica x partitions +
// partition; what the groups of a collective hold (replicas, partitions or these numbers) depends on its channel and on
// use_global_device_ids (StableHLO specification, "Execution of programs" and "Collective ops").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "program/program.h"
#include "program/sharding.h"

namespace llmperf::program {

struct ReplicaGroups {
  std::int64_t ranks = 1;   // of the largest group; of a permutation that moves anything, two
  std::int64_t stride = 1;  // between neighbours in a group, or the largest distance that its devices have in common
  std::int64_t groups = 1;
  bool uneven = false;  // groups of different sizes
  std::string text;     // "{0,1,2,3} x2": the first of the largest groups and their number; "0->1, 1->2, …"
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs = {};  // of a permutation: source, target
  std::int64_t devices = 1;                                       // the largest number named, and 1
  std::vector<Integers> members = {};  // devices of the groups that the text lists, or of the first

  // As a collective on nodes of that many devices, of which as many ranks share a node as in the group with most in
  // one; the pairs of a permutation are in one node, or in two.
  std::int64_t placed_stride(std::int64_t devices_per_node) const;
};

// What the module says of itself: mhlo.num_replicas and mhlo.num_partitions.
struct ModuleDevices {
  std::int64_t replicas = 1;
  std::int64_t partitions = 1;
  bool stated = false;
  std::int64_t total() const { return replicas * partitions; }
};
ModuleDevices module_devices(const Module& module);

// Of a collective of StableHLO or MHLO in a program for that many devices (which groups may leave out). Throws
// Error(bad_input) at the instruction when its groups name a device twice or one that there is not.
ReplicaGroups replica_groups(const Module& module, const Instruction& i, std::int64_t devices);

// Devices that a program is for: `given`, else what the module says, else as many as its collectives and annotations
// name. Throws Error(bad_input) when fewer are given than the collectives name.
std::int64_t device_count(const Program& program, std::optional<std::int64_t> given);

}  // namespace llmperf::program
