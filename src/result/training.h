// What `llmperf estimate --training` answers.
#pragma once

#include <string>

#include "estimate/training.h"
#include "result/parts.h"

namespace llmperf::result {

// Setup and estimate must outlive it.
struct Training {
  Training(const estimate::Setup& s, const estimate::TrainingEstimate& e)
      : setup(&s), estimate(&e), label(training_label(s)), cluster(s.charged_cluster()) {}

  const estimate::Setup* setup;
  const estimate::TrainingEstimate* estimate;
  std::string label;
  cost::Cluster cluster;  // as exchanges are charged
};

// An op of a pass, and what of its time runs beside others.
struct TrainingOp {
  OpResult op;
  std::string_view phase;
  std::int64_t steps = 1;
  Seconds hidden;
};
// Of all passes; none when it does not fit.
std::vector<std::vector<TrainingOp>> ops_of(const Training& training);

template <>
const Type& type_of<TrainingOp>();
template <>
const Type& type_of<Training>();

}  // namespace llmperf::result
