// The simulated time of a long schedule from short ones.
//
// A schedule repeats itself: steps within a block, blocks within a row, rows, products; or changes little from one to
// the next, as under a mask. It is simulated with few of each kind, and again with fewer of one kind at a time. That
// says how the simulation compares with the closed form in what is added of a kind; what was left out takes the closed
// form's time for it, corrected by that.
#pragma once

#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {

// Simulates in full what needs no more than about `requests` of the DRAM channel.
double simulated_seconds(const Machine& machine, const Schedule& schedule, std::int64_t requests = 6000);

}  // namespace llmperf::mapper::tile
