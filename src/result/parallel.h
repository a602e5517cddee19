// What `llmperf parallel` answers: plans with their costs, or the formulas of strategies.
#pragma once

#include <string>
#include <vector>

#include "estimate/plan_search.h"
#include "estimate/strategy_formulas.h"
#include "result/parts.h"

namespace llmperf::result {

struct ParallelStudy {
  const estimate::Setup* setup = nullptr;
  estimate::SearchSpace space;
  std::int64_t tried = 0;
  std::int64_t legal = 0;
  std::int64_t fitting = 0;
  std::int64_t alike = 0;  // of them, those as fast as the first as far as predictions are off on the mean
  std::vector<estimate::PlanCost> plans;                // those to show, best first
  std::vector<estimate::Communication> communications;  // of each of them
};
struct ParallelPlan {
  const ParallelStudy* study;
  std::size_t index;
  const estimate::PlanCost& cost() const { return study->plans[index]; }
  const estimate::Communication& communication() const { return study->communications[index]; }
  const graph::Plan& plan() const { return cost().candidate.plan; }
  const graph::TrainingOptions& options() const { return cost().candidate.options; }

  // How far such predictions are off; nothing at the speed of light, and of a plan that does not fit.
  std::optional<estimate::Band> noise() const;
  std::optional<BandOf> band() const { return band_of(noise(), cost().time); }

  double tokens_per_second() const;  // of all devices
  // In the currency of the devices' price; nothing without one, and of a plan that does not fit.
  std::optional<double> cost_per_million_tokens() const;
  // The plan with what training adds to it.
  std::string name() const;
  // What each axis divides, inside attention / outside it.
  std::string divided() const;
  // How far each axis of the plan could be taken on its own, and by what.
  std::string up_to() const;
};
std::vector<ParallelPlan> plans_of(const ParallelStudy& study);

struct StrategyStudy {
  const estimate::Setup* setup = nullptr;
  std::int64_t batch = 1;
  std::int64_t sequence = 1;
  std::int64_t devices = 1;
  estimate::StrategyTable table;
};

Type fields_of(Fields<ParallelPlan> f);
Type fields_of(Fields<ParallelStudy> f);
Type fields_of(Fields<StrategyStudy> f);

}  // namespace llmperf::result
