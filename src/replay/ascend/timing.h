// How long a sequence of ops takes on the device.
//
// Passes are enqueued while the stream waits for an event that the host records last, so that the device never waits
// for the host; the time is between two events on that stream, around the passes. A queue holds about a hundred
// launches, so many passes are timed in several parts, which are summed. A sequence of several launches is captured as
// a graph, where CANN can do that, and the graph is launched instead.
#pragma once

#include <cstdint>
#include <span>

#include "base/units.h"
#include "replay/ascend/op.h"

namespace llmperf::replay::ascend {

struct Timing {
  Seconds seconds;
  bool graph = false;  // launched as a graph
};

// Ops of one device.
Timing time_on_device(Device& device, std::span<Op* const> sequence, std::int64_t passes, bool graphs);

// Ops of which some are on several devices; those on one are on the first. Of the slowest rank.
Timing time_on_ranks(RankGroup& group, std::span<Op* const> sequence, std::int64_t passes);

}  // namespace llmperf::replay::ascend
