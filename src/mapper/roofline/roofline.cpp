#include "mapper/roofline/roofline.h"

#include <algorithm>

namespace llmperf::mapper {

std::string_view name(Bound bound) {
  constexpr std::array<std::string_view, kBounds> kNames = {"matrix",  "vector", "memory",
                                                            "network", "launch", "operand feed"};
  return kNames[static_cast<std::size_t>(bound)];
}

Roofline::Roofline(const hardware::Device& device) : bandwidth_(*device.dram().bandwidth) {
  const double clock = device.clock_ratio();
  vector_ = device.find_peak(hardware::Engine::vector, Dtype::fp32)->rate * clock;
  for (std::size_t i = 0; i < matrix_.size(); ++i) {
    const hardware::Peak* peak = device.find_peak(hardware::Engine::matrix, static_cast<Dtype>(i));
    matrix_[i] = peak ? peak->rate * clock : vector_;
  }
  const hardware::Peak* narrow = device.fastest_peak(Dtype::fp16);
  narrow_ = narrow ? narrow->rate * clock : vector_;
  integer_ = std::max(matrix_[static_cast<std::size_t>(Dtype::int8)],
                      device.find_peak(hardware::Engine::vector, Dtype::int8)->rate * clock);
  // The scratch memory of a tile is not a cache shared by all cores; how a tile array reuses operands is its mapper's
  // business.
  const hardware::MemoryLevel* cache = device.last_level_cache();
  if (cache && !cache->per_tile && cache->capacity) cache_ = *cache->capacity;
}

FlopsPerSecond Roofline::matrix_rate(Dtype dtype, cost::Sums sums) const {
  const FlopsPerSecond wide = matrix_[static_cast<std::size_t>(dtype)];
  if (sums == cost::Sums::wide || dtype != Dtype::fp16) return wide;
  return sums == cost::Sums::narrow ? narrow_ : std::max(narrow_, integer_);
}

OpTime Roofline::time(const cost::Work& work) const {
  OpTime t;
  t.matrix = work.matrix / matrix_rate(work);
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
