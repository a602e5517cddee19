// What a request for an estimate is answered with, whoever asks: the command line, a program, a page.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/error.h"
#include "points/row.h"
#include "request/resolve.h"
#include "result/explanation.h"
#include "result/generation.h"
#include "result/row.h"

namespace llmperf::service {

// An estimate with all that it was made from, which its result points into. Of one thread at a time.
class Estimated {
 public:
  // Throws Error(bad_input).
  Estimated(const request::Request& request, request::Sources& sources);
  explicit Estimated(std::unique_ptr<request::Resolved> resolved);
  ~Estimated();
  Estimated(const Estimated&) = delete;
  Estimated& operator=(const Estimated&) = delete;

  struct Text {
    request::Generation* of;
    estimate::Estimate estimate = {};
    // With stages, rounds of a draft and room of a cache as a document has them; `curve`: and times over the context.
    result::Generation result(bool curve) const;
  };
  struct Film {
    std::unique_ptr<estimate::VideoEstimator> estimator;
    estimate::VideoEstimate estimate = {};
  };
  struct Trained {
    request::Training* of;
    estimate::TrainingEstimate estimate = {};
  };
  using Work = std::variant<Text, Film, Trained>;

  const request::Resolved& resolved() const { return *resolved_; }
  const Work& work() const { return work_; }
  // What does not fit, and which change would make it fit.
  std::optional<Error> infeasible() const;
  // The document, with the request as its last key.
  std::string json() const;
  // Its cells, as CSV and sweeps have them, and what these are.
  void fill(points::Row& row) const;
  std::vector<result::Column> columns() const;

 private:
  std::unique_ptr<request::Resolved> resolved_;
  Work work_;
};

// The document with the request as its last key.
std::string with_request(std::string json, const request::Request& request);

// Throws Error(bad_input) where something is asked for that an estimate says beside its own numbers: a step, the room
// of an engine's cache.
void refuse_beside(const request::Request& request);
// Throws Error(bad_input) for a request without a model or hardware; `hint`: what to do about it.
void check_complete(const request::Request& request, const std::string& hint);

// The document of where a number comes from, by its path ("ttft_s"); without one that of all paths.
struct Explained {
  std::optional<Explanation> one;
  result::Explainable all;
  std::string json() const;
};
// Throws Error(bad_input) also for what is no path of this estimate.
Explained explain(const request::Request& request, request::Sources& sources, const std::string& number);

}  // namespace llmperf::service
