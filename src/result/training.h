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

template <>
const Type& type_of<Training>();

}  // namespace llmperf::result
