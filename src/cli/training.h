// `llmperf estimate --training`: one training step instead of a generation.
#pragma once

#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/request.h"
#include "estimate/training.h"
#include "report/estimate_report.h"

namespace llmperf::cli {

struct TrainingFlags {
  bool training = false;
  std::string global_batch;  // empty: a micro-batch for every replica and pipeline stage
  std::string micro_batch = "1";
  std::string sequence = "2048";
  std::string recompute = "none";
  std::string zero = "0";
  std::string interleave = "1";
  std::string gradients;       // empty: the weights' type; with a runtime fp32
  std::string optimizer_bits;  // empty: Adam's two moments, and a copy of 16-bit weights
  bool separate_gradients = false;
  bool exposed_sums = false;
};

// After the request's flags: those that mean nothing to training exclude --training.
void add_training_flags(CLI::App& command, TrainingFlags& flags);
// A loaded request; the estimator points into it.
struct TrainingRequest {
  Request request;
  estimate::Choices choices;
  std::unique_ptr<estimate::TrainingEstimator> estimator;
  graph::TrainingOptions options;
  estimate::TrainingScenario scenario;
  void run(estimate::TrainingEstimate& estimate) { estimator->run(scenario, choices.plan, options, estimate); }
};
// Throws Error(bad_input).
std::unique_ptr<TrainingRequest> load_training_request(const RequestFlags& request, const TrainingFlags& flags,
                                                       Sources& sources);
// Prints the estimate and returns the exit status. Throws Error: infeasible when it does not fit.
int training_action(const RequestFlags& request, const TrainingFlags& flags, report::Detail detail,
                    const OutputFlags& output);

}  // namespace llmperf::cli
