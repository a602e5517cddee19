// What the numbers of an estimate rest on: "1008 GB/s memory bandwidth", "datasheet".
#pragma once

#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "estimate/video.h"
#include "report/document.h"

namespace llmperf::estimate {
struct ProgramSetup;
}

namespace llmperf::report {

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
// The same as a block, each with its provenance.
Fields rests_on(const estimate::Platform& platform, const std::vector<Figure>& figures);
inline Fields rests_on(const estimate::Setup& setup) { return rests_on(setup, figures_used(setup)); }

}  // namespace llmperf::report
