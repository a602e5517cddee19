#include "mapper/roofline/machine.h"

namespace llmperf::mapper {

Machine::Machine(const hardware::Device& device, const cost::Cluster& cluster, const hardware::Device* host,
                 BytesPerSecond link)
    : device_(device), link_(link), cluster_(cluster) {
  if (host) host_.emplace(*host);
}

OpTime Machine::time(const graph::Op& op, const cost::Work& work) const {
  switch (op.place) {
    case graph::Place::link: return time_over_link(work, link_);
    case graph::Place::network: return time_of(cost::collective_cost(cluster_, std::get<graph::Collective>(op.body)));
    default: return roofline(op.place).time(work);
  }
}

}  // namespace llmperf::mapper
