// Where measured loads put experts on the devices that share them, and what the busiest of these then gets.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/expert_load.h"

namespace llmperf::graph {

// Experts and copies of them on devices, a layer at a time. Of layers that differ everything is the mean, as all of
// them are in a step.
struct Placement {
  double imbalance = 0;  // tokens of the busiest device over the mean
  double by_number = 0;  // … as engines start: experts and then copies in the order of their numbers
  double reached = 0;    // … of tokens that a device is sent once for all of its experts
  std::vector<std::vector<Chances>> layers = {};  // by device

  // Of a device, when `tokens` tokens pick experts of all devices: the most experts and the most tiles. A step waits
  // for the slowest device, and the slower of reading and multiplying is the slowest of either.
  ExpertLoad load(std::int64_t tokens) const;
};

// Tokens of each expert, a row for every layer that has experts, or one for all of them. Threads may share them.
class MeasuredLoads {
 public:
  MeasuredLoads(std::string name, std::vector<std::vector<double>> layers)
      : name_(std::move(name)), layers_(std::move(layers)) {}
  const std::string& name() const { return name_; }
  // A token picks `per_token` experts; experts and copies divide by `ranks`.
  const Placement& placed(double per_token, std::int64_t ranks, std::int64_t copies) const;

 private:
  std::string name_;
  std::vector<std::vector<double>> layers_;
  mutable std::mutex mutex_;
  mutable std::map<std::tuple<double, std::int64_t, std::int64_t>, Placement> placed_;
};

}  // namespace llmperf::graph
