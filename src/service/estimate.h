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
    std::optional<estimate::KvCapacity> room = {};  // of an engine's memory, where that was asked for
    std::optional<estimate::EngineLog> log = {};
    // With stages and rounds of a draft as a document has them; `curve`: and times over the context.
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
  // Sets what an engine's log says of its memory beside what is predicted, of an engine with all its defaults where the
  // request tells it nothing. Of text alone, else Error(bad_input).
  void compare(estimate::EngineLog log);
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

// What the engine's pool holds, where that was asked for; the largest batch and the longest context are then the
// engine's.
std::optional<estimate::KvCapacity> pool_of(const request::Generation& text, const estimate::Scenario& scenario,
                                            estimate::Estimate& estimate);
// Throws Error(bad_input) where something is asked for that an estimate says beside its own numbers: a step, and with
// `pools` what an engine's memory holds.
void refuse_beside(const request::Request& request, bool pools);
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
