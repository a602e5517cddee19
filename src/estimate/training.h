// One training step on many devices: micro-batches through the pipeline, gradients over the replicas, the optimiser.
// docs/training.md explains the model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "estimate/band.h"
#include "estimate/phase.h"
#include "estimate/setup.h"
#include "graph/plan.h"
#include "graph/stage_split.h"
#include "graph/training_graph.h"

namespace llmperf::estimate {

// `global_batch` sequences of `sequence` tokens; every replica (Plan::data) takes its share in micro-batches.
struct TrainingScenario {
  std::int64_t global_batch = 1;
  std::int64_t micro_batch = 1;
  std::int64_t sequence = 2048;
  std::int64_t micro_batches(const graph::Plan& plan) const { return global_batch / (plan.data * micro_batch); }
  bool operator==(const TrainingScenario&) const = default;
};

// Whether batch, sequence and chunks of layers go into the plan, which is legal itself. Allocates nothing.
bool legal(const model::Decoder& model, const TrainingScenario& scenario, const graph::Plan& plan,
           const graph::TrainingOptions& options);
// The same with reasons: one message per broken rule, with the nearest legal values.
std::vector<graph::Problem> problems(const model::Decoder& model, const TrainingScenario& scenario,
                                     const graph::Plan& plan, const graph::TrainingOptions& options);

// Whether all matrices are kept in 16 or 32 bits, as what is trained must be.
bool trains_whole(const model::WeightLayout& weights);
// Throws Error(bad_input) for others, but where adapters are trained beside them.
void check_trained(const model::WeightLayout& weights, bool adapters);

// Of the device that needs most (of the first pipeline stage as a rule). The activations are what is kept between the
// passes, of all micro-batches in flight.
struct TrainingMemory : cost::Memory {
  Bytes layer_activations;  // of them, of one micro-batch in one layer (of the kind that keeps most)
  std::int64_t stage = 0;   // of that device
};

// Everything is of one step; times of one device. Phases, of run(): forward and backward of one micro-batch (steps:
// micro-batches) and update, ops of one device of the busiest stage.
struct TrainingEstimate : Outcome {
  TrainingScenario scenario;
  graph::Plan plan;
  graph::StageSplit split;  // balanced by the time of both passes where the plan's runs cannot be equal
  graph::TrainingOptions options;
  Bytes layer_activations;         // see TrainingMemory
  std::int64_t fullest_stage = 0;  // whose device the memory is of
  std::int64_t micro_batches = 0;  // of one replica

  // time = compute + bubble + gradient_exposed + optimizer
  Seconds compute;           // both passes of all micro-batches on the busiest stage, collectives that show included
  Seconds bubble;            // that stage's idle time while the pipeline fills and drains
  Seconds gradient_exposed;  // gradient and parameter collectives that nothing hides
  Seconds optimizer;         // the update itself
  Seconds time;
  Seconds host;        // of compute, what a layer waits for the host, or for the link to it
  Seconds overlapped;  // what collectives take beside ops
  std::int64_t busiest_stage = 0;
  Flops model_flops;     // of matrix products, all devices, without recomputation: 3 forward passes
  Flops hardware_flops;  // of all matrix products that devices compute
  double mfu = 0;        // model_flops over what the matrix peaks of all devices could do in `time`
  double hfu = 0;
  double tokens_per_second = 0;
};

// What the busiest stage of a pipeline waits in a step. With F and B the passes of a stage over one micro-batch and W
// the gradients of weights in B, over p stages alike
//
//   1F1B       (p - 1) (F + B) / m              (m runs of layers a stage; arXiv 2104.04473)
//   ZB-H1      (p - 1) (F + B - 2 W)            (arXiv 2412.19437, table 2)
//   DualPipe   (p / 2 - 1) (F + B + B - 3 W)    (likewise; two passes side by side hide exchanges alone)
//   ZB-V       as ZB-H1, which it equals where it was measured: none only where F, B - W and W take equally long
//   V-Half     (p - 1) (F + B) / 2, V-Min two thirds (arXiv 2405.15362, of F, B - W and W that do)
//
// and over unlike ones the sum over the other stages. Under 1F1B a stage runs ahead of those after it, which answer D
// later, the sum of their F and B, by as many micro-batches as they are: it waits for those before it, for D less the
// forward passes in between as it fills and less the backward ones as it drains, and the step takes as long as the
// stage that all this and its own work keeps longest.
struct StagePasses {
  Seconds forward;
  Seconds backward;
  Seconds weights;  // of it
  Seconds both() const { return forward + backward; }
};
Seconds pipeline_bubble(const graph::TrainingOptions& options, std::span<const StagePasses> stages,
                        std::int64_t micro_batches);

// The group that errors of a profile know it by: "training experts", "training adapters", "training nvfp4",
// "training narrow", else "training".
std::string kind_of_run(const Setup& setup, const TrainingEstimate& estimate);
// How far runs of its kind, else of any, were off under the setup's profile. Nothing where it says nothing of training.
std::optional<Band> band_of_run(const Setup& setup, const TrainingEstimate& estimate);

// Keeps its workspace between runs, so that a run allocates nothing once warm. One per thread. `setup` gives model,
// formats, runtime options, device and cluster; its plan is replaced by those of the runs.
class TrainingEstimator {
 public:
  // Throws Error(bad_input) for a model that has layers without a backward pass here; weights: check_trained().
  explicit TrainingEstimator(Setup setup);
  ~TrainingEstimator();

  // Plan, scenario and options must be legal. Memory alone, what a search over plans checks first; everything but the
  // phases; everything. Ops of a result point to formats that live as long as the estimator.
  TrainingMemory memory(const TrainingScenario& scenario, const graph::Plan& plan,
                        const graph::TrainingOptions& options);
  void summary(const TrainingScenario& scenario, const graph::Plan& plan, const graph::TrainingOptions& options,
               TrainingEstimate& result);
  void run(const TrainingScenario& scenario, const graph::Plan& plan, const graph::TrainingOptions& options,
           TrainingEstimate& result);
  const Setup& setup() const;
  const mapper::Machine& machine() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace llmperf::estimate
