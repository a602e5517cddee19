// The outputs of `llmperf parallel`.
#pragma once

#include <cstdint>
#include <vector>

#include "estimate/plan_search.h"
#include "estimate/strategy_formulas.h"
#include "report/document.h"

namespace llmperf::report {

struct ParallelStudy {
  const estimate::Setup* setup = nullptr;
  estimate::SearchSpace space;
  std::int64_t tried = 0;
  std::int64_t legal = 0;
  std::int64_t fitting = 0;
  std::vector<estimate::PlanCost> plans;                // those to show, best first
  std::vector<estimate::Communication> communications;  // of each of them
};
Report parallel_report(const ParallelStudy& study);

Report strategy_report(const estimate::Setup& setup, std::int64_t batch, std::int64_t sequence, std::int64_t devices,
                       const estimate::StrategyTable& table);

}  // namespace llmperf::report
