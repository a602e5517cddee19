// What `llmperf estimate --training` answers.
#pragma once

#include <string>

#include "estimate/training.h"
#include "result/parts.h"

namespace llmperf::result {

// Setup and estimate must outlive it.
struct Training : Answer {
  static constexpr Also kAlso = Also::hidden;
  Training(const estimate::Setup& s, const estimate::TrainingEstimate& e)
      : Answer(s, training_label(s)), setup(&s), estimate(&e) {}
  std::vector<std::string> beyond() const;
  Bands bands() const;

  estimate::Spent spent() const;  // a step

  const estimate::Setup* setup;
  const estimate::TrainingEstimate* estimate;
};

Type fields_of(const Fields<Training>&);

}  // namespace llmperf::result
