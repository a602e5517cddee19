// What traffic on a serving engine is answered with: the simulation of what a request asks for, and what is said of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "request/traffic.h"
#include "result/serving.h"

namespace llmperf::service {

struct ServeOptions {
  bool drawn = true;   // the timeline and percentiles, which documents and traces have
  bool banded = true;  // how far the numbers go, which takes two runs more
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::int64_t done, std::int64_t all)> progress = {};  // requests, of all runs
  std::vector<std::string> notes = {};                                     // of where the request was read
};

// Stays where it is: the result points into it.
class Served {
 public:
  // Throws Error(bad_input).
  Served(const request::Request& request, request::Sources& sources, const ServeOptions& options);
  ~Served();
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  const result::Serving& result() const { return *result_; }
  // Whether it was interrupted before a request had ended: there is nothing to tell.
  bool nothing() const { return study_->run.interrupted && study_->summary.requests == 0; }
  // How far it came where it was interrupted: "300 of 1,000 requests had ended".
  std::string progress_text() const;
  // Whether a bound of what was promised is missed.
  bool misses() const;
  // The document, with the request as its last key.
  std::string json() const;

 private:
  std::unique_ptr<request::Resolved> resolved_;
  request::Traffic traffic_;
  std::unique_ptr<serving::Deployed> deployed_;
  std::unique_ptr<serving::Study> study_;
  std::unique_ptr<result::Serving> result_;
};

// The highest rate at which every bound of its `slo` holds (without one, at which the queue does not grow). Throws
// Error(infeasible) where a request alone misses one, and as Served does.
double highest_rate(request::Request request, request::Sources& sources, const std::atomic<bool>* stop = nullptr);

}  // namespace llmperf::service
