// What `llmperf compare` answers of two sets of options. Setup, of the first set, and comparison must outlive it.
#pragma once

#include <string>

#include "estimate/compare.h"
#include "result/parts.h"

namespace llmperf::result {

struct TextComparison {
  const estimate::Setup* setup;
  estimate::Scenario scenario;
  std::string execution;  // as asked for, empty for the runtime's own
  const estimate::Comparison<estimate::Setup>* comparison;
};
struct VideoComparison {
  const estimate::VideoSetup* setup;
  const estimate::Comparison<estimate::VideoSetup>* comparison;
};

// A step of one; its columns are those of the CSV.
using TextCompareStep = estimate::Comparison<estimate::Setup>::Step;
using VideoCompareStep = estimate::Comparison<estimate::VideoSetup>::Step;
Type fields_of(const Fields<TextCompareStep>&);
Type fields_of(const Fields<VideoCompareStep>&);
Type fields_of(Fields<TextComparison> f);
Type fields_of(Fields<VideoComparison> f);

}  // namespace llmperf::result
