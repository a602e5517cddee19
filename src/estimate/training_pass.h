// Forward and backward pass of one micro-batch as lists of timed ops, and their sums by the part of the pipeline that
// they belong to. Internal to src/estimate.
#pragma once

#include <cstdint>
#include <vector>

#include "estimate/training.h"

namespace llmperf::estimate {

// Where in the pipeline an op runs.
enum class Region : unsigned char { layer, first_stage, last_stage };

// Of one pass, all executions of the step's one micro-batch in one region.
struct PassSum {
  Seconds ops;
  Seconds hidden;
  Flops matrix;
  Seconds time() const { return ops - hidden; }
};

struct Pass {
  std::vector<OpEstimate> ops;  // layer ops: counts of one layer of their kind
  std::vector<Region> regions;
  std::vector<Seconds> hidden;  // of one execution
  std::vector<PassSum> layers;  // by kind, of one layer
  PassSum first;
  PassSum last;
};

// Share of an exchange's time that it can run beside an op at no cost to it. NCCL copies and sums in thread blocks that
// hold a core each, 24 of them on an A100: beside an exchange of C seconds an op of W seconds ends after
// max(C, W + C 24 / cores). 1 without a profile.
double hideable_share(const Setup& setup);

// What one device keeps between the passes for one micro-batch, by region.
struct KeptBytes {
  std::vector<Bytes> layers;      // by kind, of one layer
  std::vector<Bytes> recomputed;  // given up by one layer
  std::vector<Bytes> largest;     // kept by a single op of the layer
  Bytes first;
  Bytes last;
  Bytes logits;    // the largest tensor of the last stage, as its gradient
  Bytes residual;  // the residual stream
};

// Ops depend on the plan's data and pipeline axes in nothing but stage sends, which are made apart: plans that differ
// in these alone share their passes.
class TrainingPasses {
 public:
  TrainingPasses(const Setup& setup, const mapper::Machine& machine);

  // Makes the passes below those of a micro-batch of this plan. Allocates nothing once warm.
  void prepare(const TrainingScenario& scenario, const graph::Plan& plan, const graph::TrainingOptions& options);
  // Times too; prepare() comes first.
  void prepare_times(const graph::TrainingOptions& options);
  // Another number whenever the times are others.
  std::int64_t version() const { return version_; }

  const KeptBytes& kept() const { return kept_; }
  const Pass& forward() const { return forward_; }
  const Pass& backward() const { return backward_; }
  // What takes the residual stream from one stage to the next, on one device. Without sequence parallelism all devices
  // of a stage hold the same: under a profile each sends its share, which the receivers gather.
  struct StageExchange {
    OpEstimate send;
    std::optional<OpEstimate> gather;
    Seconds time() const { return gather ? send.time.total + gather->time.total : send.time.total; }
  };
  enum class Direction : bool { forward, backward };
  StageExchange stage_exchange(const graph::Plan& plan, Direction direction) const;
  // FLOPs of matrix products of a forward pass over one sequence, on whatever number of devices.
  Flops model_flops(std::int64_t sequence);

 private:
  void keep(graph::Recompute recompute);
  void time(const graph::Graph& graph, Pass& pass) const;
  OpEstimate exchange(std::string_view name, const graph::Collective& collective) const;

  graph::Execution execution_;
  const mapper::Machine& machine_;
  graph::Kernels kernels_;
  double hideable_;  // share of an exchange that can run beside an op without costing it anything
  graph::Graph ideal_graph_;
  graph::Graph forward_graph_;
  graph::Graph backward_graph_;
  std::vector<Region> forward_regions_;
  KeptBytes kept_;
  Pass forward_;
  Pass backward_;
  // What the above was made of.
  graph::SequenceGroup group_{.count = 0};
  std::optional<graph::Recompute> kept_recompute_;
  bool forward_timed_ = false;
  std::int64_t version_ = 0;
  std::optional<graph::TrainingOptions> backward_options_;
  std::int64_t counted_sequence_ = 0;
  Flops counted_flops_;
};

}  // namespace llmperf::estimate
