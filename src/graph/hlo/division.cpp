#include "graph/hlo/division.h"

#include <algorithm>

namespace llmperf::graph::hlo {

void Division::offer(const std::vector<int>& labels, const Sharding& sharding, const std::vector<std::int64_t>& dims) {
  for (std::size_t d = 0; d < std::min({labels.size(), sharding.dims.size(), dims.size()}); ++d) {
    const DeviceAxes& axes = sharding.dims[d];
    const std::int64_t parts = size_of(axes);
    if (labels[d] == kWhole || parts == 1 || parts > dims[d]) continue;
    const auto factor = static_cast<std::size_t>(labels[d]);
    if (!parts_[factor].empty() || (f_.divides[factor] > 0 && f_.divides[factor] % parts != 0)) continue;
    const bool taken =
        overlap(reserved_, axes) ||
        std::any_of(parts_.begin(), parts_.end(), [&](const DeviceAxes& other) { return overlap(other, axes); });
    if (!taken) parts_[factor] = axes;
  }
}

Sharding Division::of(const std::vector<int>& labels) const {
  Sharding sharding;
  sharding.dims.resize(labels.size());
  for (std::size_t d = 0; d < labels.size(); ++d) {
    if (labels[d] != kWhole) sharding.dims[d] = parts_[static_cast<std::size_t>(labels[d])];
  }
  return sharding;
}

DeviceAxes Division::summands() const {
  DeviceAxes axes;
  for (std::size_t factor = 0; factor < parts_.size(); ++factor) {
    const bool kept = std::any_of(f_.results.begin(), f_.results.end(), [&](const std::vector<int>& labels) {
      return std::find(labels.begin(), labels.end(), static_cast<int>(factor)) != labels.end();
    });
    if (!kept) axes.insert(axes.end(), parts_[factor].begin(), parts_[factor].end());
  }
  return axes;
}

}  // namespace llmperf::graph::hlo
