// The outputs of `llmperf list` and `llmperf show`.
#pragma once

#include <vector>

#include "hardware/device.h"
#include "model/decoder.h"
#include "model/quantization.h"
#include "report/document.h"

namespace llmperf::report {

Report model_report(const model::Decoder& model, const model::WeightScheme& scheme, Dtype kv);
Report hardware_report(const hardware::Device& device);
Report model_list_report(const std::vector<model::Decoder>& models);
Report hardware_list_report(const std::vector<hardware::Device>& devices);

}  // namespace llmperf::report
