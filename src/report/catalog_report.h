// The outputs of `llmperf list` and `llmperf show`.
#pragma once

#include <vector>

#include "hardware/device.h"
#include "model/decoder.h"
#include "model/gguf_file.h"
#include "model/video_dit.h"
#include "model/weight_layout.h"
#include "report/document.h"

namespace llmperf::report {

// What `show model` shows.
struct ModelView {
  const model::Decoder& model;
  const model::WeightLayout& layout;
  model::CacheScheme kv;
  const std::vector<model::GgufTensor>* tensors = nullptr;  // of a GGUF layout
  const model::GgufFile* file = nullptr;                    // read; null: the sizes are predicted
  bool list_tensors = false;
};
Report model_report(const ModelView& view);
Report hardware_report(const hardware::Device& device);
Report model_list_report(const std::vector<model::Decoder>& models, const std::vector<model::VideoDit>& videos);
Report hardware_list_report(const std::vector<hardware::Device>& devices);

}  // namespace llmperf::report
