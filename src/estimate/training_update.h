// What happens once a step: gradients over the replicas, the optimiser, and what ZeRO moves (arXiv 1910.02054).
// Internal to src/estimate.
#pragma once

#include <vector>

#include "estimate/training.h"
#include "estimate/training_parameters.h"

namespace llmperf::estimate {

// Time of one micro-batch that parameter collectives can run beside.
struct PassTimes {
  Seconds forward;
  Seconds backward;
};

// Replaces the ops of `phase`, of a device that holds `share` (and `tied` elements that another stage holds too). All
// are of one step: what ZeRO 2 and 3 move for every micro-batch is counted that often.
void build_update(const Setup& setup, const mapper::Machine& machine, const ParameterShare& share, double tied,
                  const graph::Plan& plan, const graph::TrainingOptions& options, std::int64_t micro_batches,
                  const PassTimes& passes, TrainingPhase& phase);

}  // namespace llmperf::estimate
