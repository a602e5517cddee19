// The outputs of `llmperf map-collective`.
#pragma once

#include <optional>
#include <vector>

#include "cost/collective.h"
#include "report/document.h"

namespace llmperf::report {

// With one size every algorithm is shown, with several the fastest of each.
struct CollectiveStudy {
  const hardware::Device* device = nullptr;
  cost::Cluster cluster;
  graph::Collective collective;              // kind, ranks and stride
  std::vector<Bytes> sizes;                  // at least one
  std::optional<cost::Algorithm> algorithm;  // asked for; none: the fastest
  bool node_given = false;                   // devices per node was given, not read from the file
};
// Throws Error(bad_input) when the algorithm asked for does not exist for the collective.
Report collective_report(const CollectiveStudy& study);

}  // namespace llmperf::report
