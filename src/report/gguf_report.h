// `llmperf limits --weights all-gguf`: a model in every GGUF file type.
#pragma once

#include <string>
#include <vector>

#include "estimate/gguf_study.h"
#include "report/document.h"

namespace llmperf::report {

struct GgufStudy {
  const model::Decoder* model = nullptr;
  std::vector<estimate::GgufStudyRow> rows;
};
// What holds for all of them.
struct GgufStudyInputs {
  const hardware::Device* device = nullptr;
  const hardware::Device* host = nullptr;
  std::int64_t context = 0;
  model::CacheScheme kv;
  model::GgufEra era;
  std::vector<std::string> notes;
};
Report gguf_report(const std::vector<GgufStudy>& studies, const GgufStudyInputs& inputs);

}  // namespace llmperf::report
