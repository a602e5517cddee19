// What `llmperf capacity` answers: deployments that serve a rate of requests within bounds, best first.
#pragma once

#include "request/capacity_search.h"
#include "result/field.h"
#include "result/serving.h"

namespace llmperf::result {

struct CapacityCandidate {
  const request::CapacityResult* all;
  std::size_t index;
  const request::Candidate& of() const { return all->candidates[index]; }
  // What is minimised over that of the best, less one; nothing of one that does not meet the bounds.
  std::optional<double> beyond_best() const;
};
std::vector<CapacityCandidate> candidates_of(const request::CapacityResult& result);

Type fields_of(Fields<CapacityCandidate> f);
Type fields_of(Fields<request::CapacityResult> f);

}  // namespace llmperf::result
