// What the numbers of an estimate rest on: "1008 GB/s memory bandwidth", "datasheet".
#pragma once

#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "estimate/video.h"

namespace llmperf::estimate {
struct ProgramSetup;
}

namespace llmperf::result {

struct Figure {
  std::string key;  // JSON: "memory_bandwidth_bytes_per_s"
  std::string label;
  std::string text;  // value for people
  double value = 0;  // SI
  hardware::Provenance provenance = hardware::Provenance::assumed;
};
std::vector<Figure> figures_used(const estimate::Setup& setup);
std::vector<Figure> figures_used(const estimate::VideoSetup& setup);
// `products`: the type that most of its products run in.
std::vector<Figure> figures_used(const estimate::ProgramSetup& setup, Dtype products);

}  // namespace llmperf::result
