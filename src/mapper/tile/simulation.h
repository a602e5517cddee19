// A discrete-event simulation of the array: every request, step, hand-over and store of a schedule, on every tile.
//
// The DRAM channel serves one request at a time: of those that wait, the one whose data, or whose buffer, is needed by
// the earliest step. Requests go out when their slot is free. Links pass on what they receive while they receive it,
// one message after the other. Units of a tile work in program order. The channel is the only place where order is
// decided at run time, so that events are its decisions, and everything that follows from one is worked out at once.
#pragma once

#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {

struct Timeline;

constexpr double kPiece = 65536;  // bytes that the channel moves without a pause

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

}  // namespace llmperf::mapper::tile
