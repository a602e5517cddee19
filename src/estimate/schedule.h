// When the ops of a step run: one after the other, but for collectives beside the op before them and for pipeline
// stages that work on different micro-batches at the same time.
#pragma once

#include <cstdint>
#include <span>

#include "base/units.h"
#include "estimate/estimate.h"

namespace llmperf::estimate {

struct Schedule {
  Seconds time;
  Seconds ops;  // the times of all ops; ops = time + overlapped + pipelined
  Seconds overlapped;
  Seconds pipelined;
  Seconds bubble;  // of the busiest stage
};

// `seconds`: what each op takes in the step, all executions of all micro-batches. Ops before the layers belong to the
// first stage and those after them to the last; a stage has its share of the layers of each kind and sends once less
// than there are stages.
Schedule schedule_step(std::span<const OpEstimate> ops, std::span<const double> seconds, std::span<const Stage> stages,
                       std::int64_t micro_batches, Steady steady);

// What of op `i` is hidden: a collective that can run while the op before it does, as long as that takes.
double hidden_seconds(std::span<const OpEstimate> ops, std::span<const double> seconds, std::size_t i);
// The residual stream on its way to the next pipeline stage.
bool is_stage_send(const graph::Op& op);

}  // namespace llmperf::estimate
