// The outputs of `llmperf map`.
#pragma once

#include <optional>
#include <string>

#include "graph/op.h"
#include "hardware/device.h"
#include "mapper/tile/published_choice.h"
#include "mapper/tile/study.h"
#include "report/document.h"

namespace llmperf::report {

struct MappingStudy {
  const hardware::Device* device = nullptr;
  Dtype dtype = Dtype::bf16;
  const graph::Op* op = nullptr;  // a gemm, an attention or a vector op
  std::string_view name;          // of the vector op's kind, or of what is joined to the product; may be empty
  const mapper::tile::Study* study = nullptr;
  bool whole = false;                                    // the best was simulated from the first step to the last
  std::optional<mapper::tile::PublishedTime> published;  // asked for
  std::optional<mapper::tile::Recost> recost;            // of its choice on the machine of the mappings
};
struct MappingReport {
  Report report;
  std::string svg;  // the schedule of the best mapping
};
MappingReport mapping_report(const MappingStudy& study);

}  // namespace llmperf::report
