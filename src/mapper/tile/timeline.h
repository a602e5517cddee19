// A schedule drawn, as the simulation executes it: what the DRAM channel does for all tiles, the units of the first
// tile, and the first link of the groups that pass something on.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {

enum class Lane : unsigned char { load_a, load_b, joined, store, noc, matrix, vector };
inline constexpr std::size_t kLanes = 7;

struct Bar {
  double begin = 0;  // s
  double end = 0;
  std::int64_t step = 0;  // that it is for
};

struct Timeline {
  std::array<std::vector<Bar>, kLanes> lanes;  // each in order of time
  std::vector<double> ends;                    // of the steps
  double seconds = 0;
  std::int64_t steps = 0;  // of the whole schedule
  bool cut = false;  // of a long schedule few steps of every kind are played, so that only the first and the last count
  // To be called in order of time for each step; what follows on what it was for is one bar.
  void add(Lane lane, double begin, double end, std::int64_t step);
  const std::vector<Bar>& of(Lane lane) const { return lanes[static_cast<std::size_t>(lane)]; }
};
Timeline timeline_of(const Machine& machine, const Schedule& schedule);

}  // namespace llmperf::mapper::tile
