// Which batches, sequences and chunks of layers go into a plan.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "estimate/training.h"

namespace llmperf::estimate {
namespace {

// `value` must be a multiple of `of`.
struct Multiple {
  std::int64_t value = 0;
  std::int64_t of = 1;
  bool holds() const { return value % of == 0; }
  // "96 or 112"
  std::string nearest() const {
    const std::int64_t below = value / of * of;
    return below > 0 ? fmt::format("{} or {}", below, below + of) : fmt::format("{}", of);
  }
};

Multiple batch(const TrainingScenario& s, const graph::Plan& plan) {
  return {s.global_batch, plan.data * s.micro_batch};
}
// Every device of the sequence axes has as many tokens, and of these every device of the tensor axis under sequence
// parallelism.
Multiple sequence(const TrainingScenario& s, const graph::Plan& plan) {
  return {s.sequence, graph::sequence_multiple(plan)};
}
// Interleaved stages take micro-batches in groups of as many as there are stages (arXiv 2104.04473 section 2.2).
Multiple groups(const TrainingScenario& s, const graph::Plan& plan) { return {s.micro_batches(plan), plan.pipeline}; }

}  // namespace

bool legal(const model::Decoder& model, const TrainingScenario& s, const graph::Plan& plan,
           const graph::TrainingOptions& o) {
  if (!batch(s, plan).holds() || !sequence(s, plan).holds()) return false;
  return o.chunks == 1 || (plan.pipeline > 1 && graph::enough_layers(model.num_layers(), plan.pipeline, o.chunks) &&
                           groups(s, plan).holds());
}

std::vector<graph::Problem> problems(const model::Decoder& model, const TrainingScenario& s, const graph::Plan& plan,
                                     const graph::TrainingOptions& o) {
  std::vector<graph::Problem> found;
  const Multiple b = batch(s, plan);
  if (!b.holds()) {
    found.push_back({fmt::format("--global-batch: {} sequences do not divide into micro-batches of {} on {} replicas",
                                 s.global_batch, s.micro_batch, plan.data),
                     "nearest legal: " + b.nearest()});
  }
  const Multiple q = sequence(s, plan);
  if (!q.holds()) {
    found.push_back({fmt::format("--seq: {} tokens do not divide into the {} parts of the plan", s.sequence, q.of),
                     "nearest legal: " + q.nearest()});
  }
  if (o.chunks == 1) return found;
  if (plan.pipeline == 1) {
    found.push_back({"--interleave divides the layers of a pipeline stage, and the plan has no pipeline",
                     "give --pp, or leave it out"});
  } else if (!graph::enough_layers(model.num_layers(), plan.pipeline, o.chunks)) {
    found.push_back({fmt::format("--interleave: {} layers are too few for {} runs on each of {} stages: all but the "
                                 "first and the last run need one",
                                 model.num_layers(), o.chunks, plan.pipeline),
                     fmt::format("at most {}", (model.num_layers() + 2) / plan.pipeline)});
  } else if (b.holds() && !groups(s, plan).holds()) {
    const std::int64_t replica = plan.data * s.micro_batch;
    found.push_back({fmt::format("--interleave: {} micro-batches are no multiple of the {} pipeline stages",
                                 s.micro_batches(plan), plan.pipeline),
                     "nearest legal --global-batch: " + Multiple{s.global_batch, replica * plan.pipeline}.nearest()});
  }
  return found;
}

}  // namespace llmperf::estimate
