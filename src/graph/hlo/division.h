// How the factors of one op (op_factors.h) are divided over devices. Used by partition.cpp only.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/hlo/op_factors.h"
#include "graph/hlo/sharding.h"

namespace llmperf::graph::hlo {

class Division {
 public:
  explicit Division(OpFactors factors) : f_(std::move(factors)), parts_(static_cast<std::size_t>(f_.count)) {}

  const OpFactors& factors() const { return f_; }
  // Takes over what `sharding` says of a tensor with these extents and factors, where it contradicts nothing that was
  // taken before.
  void offer(const std::vector<int>& labels, const Sharding& sharding, const std::vector<std::int64_t>& dims);
  // Devices that operands have summands on, and that nothing is divided over.
  void reserve(const DeviceAxes& axes) { reserved_ = axes; }
  Sharding of(const std::vector<int>& labels) const;
  // Devices that have summands of the results: those along factors that no result has.
  DeviceAxes summands() const;

 private:
  OpFactors f_;
  DeviceAxes reserved_;
  std::vector<DeviceAxes> parts_;  // by factor
};

}  // namespace llmperf::graph::hlo
