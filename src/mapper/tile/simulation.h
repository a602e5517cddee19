// A discrete-event simulation of the array: every request, step, hand-over and store of a schedule, on every tile.
//
// The DRAM channel serves one request at a time: of those that wait, the one whose data, or whose buffer, is needed by
// the earliest step. Requests go out when their slot is free. Links pass on what they receive while they receive it,
// one message after the other. Units of a tile work in program order. The channel is the only place where order is
// decided at run time, so that events are its decisions, and everything that follows from one is worked out at once.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {

struct Timeline;

struct Simulated {
  double seconds = 0;
  double dram_busy = 0;    // s
  double matrix_busy = 0;  // s, of one tile
  double vector_busy = 0;
  double link_busy = 0;       // of the busiest link
  std::int64_t requests = 0;  // pieces
};

// `timeline`, if any, gets what the channel, the first tile's units and the links of its groups do when.
Simulated simulate(const Machine& machine, const Schedule& schedule, Timeline* timeline = nullptr);

// The simulated time of a schedule of which only some is executed.
//
// Most of a long schedule is alike: blocks of a row, rows, the whole sequence. They are executed until one takes as
// long as the one before; the others then take as long, too. Of what differs all along, as rows under a mask, and of
// the steps of a block only some are executed where there are many, and the closed form says how much more all of them
// take.

// `requests`: of the DRAM channel, that are about as many as it may take. Adds what was simulated to `served`.
double simulated_seconds(const Machine& machine, const Schedule& schedule, std::int64_t requests = 6000,
                         std::int64_t* served = nullptr);

// A schedule drawn, as the simulation executes it: what the DRAM channel does for all tiles, the units of the first
// tile, and the first link of the groups that pass something on.

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
