// Everything an op can run on: the device, the host beside it, the link between the two, and the links to other
// devices.
#pragma once

#include <optional>

#include "cost/collective.h"
#include "cost/work.h"
#include "graph/op.h"
#include "hardware/device.h"
#include "mapper/roofline/roofline.h"

namespace llmperf::mapper {

class Machine {
 public:
  // The device, and the host if there is one, must outlive it.
  Machine(const hardware::Device& device, const cost::Cluster& cluster, const hardware::Device* host = nullptr,
          BytesPerSecond link = {});

  // Of the device or of the host.
  const Roofline& roofline(graph::Place place = graph::Place::device) const {
    return place == graph::Place::host && host_ ? *host_ : device_;
  }
  const cost::Cluster& cluster() const { return cluster_; }

  // Work and time of one execution where the op runs.
  cost::Work work(const graph::Op& op) const { return cost::work_of(op, roofline(op.place).cache()); }
  OpTime time(const graph::Op& op, const cost::Work& work) const;

 private:
  Roofline device_;
  std::optional<Roofline> host_;
  BytesPerSecond link_;
  cost::Cluster cluster_;
};

}  // namespace llmperf::mapper
