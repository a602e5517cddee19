// What a schedule moves and keeps busy, all tiles together: a plain count of its requests, with nothing about time.
#pragma once

#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {

// Bytes of one operand.
struct StreamTraffic {
  double dram = 0;    // over the DRAM channel
  double passed = 0;  // from tile to tile
  double hops = 0;    // the same times the links that each byte goes over
};

struct Traffic {
  StreamTraffic a;
  StreamTraffic b;
  StreamTraffic sums;  // partial sums: `dram` is 0
  double start = 0;    // bytes over the DRAM channel
  double end = 0;
  double result = 0;
  double matrix = 0;  // s of a tile's units; a ring's waits for its next part included
  double vector = 0;
  double link = 0;      // s of the busiest link
  double requests = 0;  // of the channel

  double dram() const { return a.dram + b.dram + start + end + result; }
  double passed() const { return a.passed + b.passed + sums.passed; }
  double hops() const { return a.hops + b.hops + sums.hops; }
};
Traffic traffic_of(const Machine& machine, const Schedule& schedule);

// Messages of a slice that each link on a group's path carries; 0: none.
double messages_of(const Stream& stream, const Paths& paths);

}  // namespace llmperf::mapper::tile
