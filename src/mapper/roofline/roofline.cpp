#include "mapper/roofline/roofline.h"

#include <algorithm>

namespace llmperf::mapper {

std::string_view name(Bound bound) {
  switch (bound) {
    case Bound::matrix: return "matrix";
    case Bound::vector: return "vector";
    case Bound::memory: return "memory";
    case Bound::network: return "network";
    case Bound::launch: return "launch";
  }
  return "";
}

Roofline::Roofline(const hardware::Device& device) : bandwidth_(*device.dram().bandwidth) {
  vector_ = device.find_peak(hardware::Engine::vector, Dtype::fp32)->rate;
  for (std::size_t i = 0; i < matrix_.size(); ++i) {
    const hardware::Peak* peak = device.find_peak(hardware::Engine::matrix, static_cast<Dtype>(i));
    matrix_[i] = peak ? peak->rate : vector_;
  }
  // The scratch memory of a tile is not a cache shared by all cores; how a tile array reuses operands is its mapper's
  // business.
  const hardware::MemoryLevel* cache = device.last_level_cache();
  if (cache && !cache->per_tile && cache->capacity) cache_ = *cache->capacity;
}

OpTime Roofline::time(const cost::Work& work) const {
  OpTime t;
  t.matrix = work.matrix / matrix_rate(work.matrix_dtype);
  t.vector = work.vector / vector_;
  t.memory = work.bytes() / bandwidth_;
  t.total = std::max({t.matrix, t.vector, t.memory});
  t.roof = t.total;
  t.bound = t.total == t.memory ? Bound::memory : t.total == t.matrix ? Bound::matrix : Bound::vector;
  return t;
}

OpTime time_over_link(const cost::Work& work, BytesPerSecond rate) {
  OpTime t;
  t.network = t.total = t.roof = work.network / rate;
  t.bound = Bound::network;
  return t;
}

OpTime time_of(const cost::CollectiveCost& cost) {
  OpTime t;
  t.network = t.total = cost.time();
  t.roof = cost.transfer;
  t.bound = Bound::network;
  return t;
}

}  // namespace llmperf::mapper
