// Every way to spread a model over a number of devices: enumerated, checked, costed and ranked.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "estimate/estimate.h"
#include "estimate/training.h"
#include "graph/plan.h"

namespace llmperf::estimate {

// What is to be done on `devices` devices, by all of them: one forward pass over `batch` sequences of `sequence` tokens
// and the cache they leave (prefill), a decode step after that (where the setup serves decode alone), or a training
// step over them in micro-batches of one of `micro_batches`.
struct SearchSpace {
  std::int64_t devices = 1;
  std::int64_t batch = 1;
  std::int64_t sequence = 2048;
  bool training = false;
  bool decode = false;  // a step of decode, whose tokens are too few for Megatron's sequence parallelism
  // Training: each plan is tried with each of them.
  std::vector<std::int64_t> micro_batches = {1};
  std::vector<graph::TrainingOptions> options = {{}};
  bool shard_embedding = true;  // of all plans
};

struct Candidate {
  graph::Plan plan;
  std::int64_t micro_batch = 1;
  graph::TrainingOptions options = {};
};

struct Enumeration {
  std::vector<Candidate> legal;
  std::int64_t tried = 0;  // combinations of degrees whose product is the number of devices
};

// All plans whose axes multiply to `space.devices`, divide the model, the batch and the sequence, and, in training,
// go with the options (ZeRO needs replicas, interleaving stages).
Enumeration enumerate_plans(const model::Decoder& model, const SearchSpace& space);

inline constexpr std::size_t kCollectiveKinds = 7;

// Of one device (memory: of the fullest pipeline stage) and one step.
struct PlanCost {
  Candidate candidate;
  cost::Memory memory;
  bool fits = false;
  Seconds time;    // of the step; 0 when it does not fit
  double mfu = 0;  // training
  Bytes activations() const { return memory.activation + memory.workspace; }
};

// What a device exchanges in one step, by graph::CollectiveKind: a device of the pipeline stage that sends most
// (prefill) or is busiest (training).
struct Communication {
  std::array<Bytes, kCollectiveKinds> sent{};
  std::array<std::int64_t, kCollectiveKinds> count{};
  Seconds time;
  Seconds overlapped;  // of it
  Bytes sent_bytes() const;
};

// Costs candidates one after the other. Keeps its workspace, so that a candidate costs no allocation worth telling.
class PlanSearch {
 public:
  // `setup` gives everything but the plan. Throws as TrainingEstimator does.
  PlanSearch(const Setup& setup, const SearchSpace& space);

  PlanCost cost(const Candidate& candidate);
  Communication communication(const Candidate& candidate);
  // Those that fit first, the fastest first, then the smallest.
  std::vector<PlanCost> rank(const std::vector<Candidate>& candidates);

 private:
  // The prefill, or with a cache of its sequences a step of decode.
  const Phase& step_of_inference();
  Scenario scenario() const { return {.batch = space_.batch, .prompt = space_.sequence, .generate = 0}; }
  TrainingScenario scenario_of(const Candidate& c) const { return {space_.batch, c.micro_batch, space_.sequence}; }

  SearchSpace space_;
  std::optional<Estimator> inference_;  // one of the two
  std::optional<TrainingEstimator> training_;
  Phase inference_step_;
  TrainingEstimate training_step_;
};

}  // namespace llmperf::estimate
