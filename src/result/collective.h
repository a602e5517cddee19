// What `llmperf map-collective` answers: a collective by each algorithm, or by size.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cost/collective.h"
#include "result/field.h"

namespace llmperf::result {

// A size by an algorithm. Bandwidths are as nccl-tests defines them: size over time, and that times the factor which
// makes it the rate of the links when all are busy, so unavoidable bytes over time; nothing where nothing moves.
struct CollectiveLine {
  Bytes size;
  cost::CollectiveCost cost;
  bool chosen = false;
  std::string_view busiest;  // links
  Bytes unavoidable;
  bool moves() const { return cost.time().value > 0; }
  bool latency_bound() const { return cost.latency > cost.transfer; }
  BytesPerSecond algorithm_bandwidth() const { return moves() ? size / cost.time() : BytesPerSecond{}; }
  BytesPerSecond bus_bandwidth() const { return moves() ? unavoidable / cost.time() : BytesPerSecond{}; }
};
Type fields_of(Fields<CollectiveLine> f);

struct CollectiveStudy {
  const hardware::Device* device = nullptr;
  cost::Cluster cluster;
  graph::Collective collective;              // kind, ranks and stride
  std::vector<Bytes> sizes;                  // at least one
  std::optional<cost::Algorithm> algorithm;  // asked for; none: the fastest
  bool node_given = false;                   // devices per node was given, not read from the file

  // Filled in by study_collective().
  std::vector<CollectiveLine> lines;     // with one size of every algorithm, with several of the fastest of each
  std::vector<cost::SizeRange> fastest;  // by size
  cost::Placement placement() const { return place(cluster, collective); }
};
Type fields_of(Fields<CollectiveStudy> f);
// Throws Error(bad_input) when the algorithm asked for does not exist for the collective.
void study_collective(CollectiveStudy& study);

}  // namespace llmperf::result
