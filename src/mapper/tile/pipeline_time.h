// The closed form of a schedule's time; the derivation is in pipeline_time.cpp.
#pragma once

#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {

PipelineTime pipeline_time(const Machine& machine, const Schedule& schedule);

}  // namespace llmperf::mapper::tile
