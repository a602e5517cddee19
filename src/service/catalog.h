// What there is to choose from: models, devices, runtime profiles, measurements and studies, and one of them by itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/model_file.h"
#include "request/request.h"
#include "result/catalog.h"
#include "result/study.h"

namespace llmperf::service {

result::ModelList list_models();
result::DeviceList list_devices();
result::RuntimeList list_runtimes();
result::MeasurementList list_measurements();
result::StudyList list_studies();

// A language model with the bytes of its weights and cache: in the formats that `request` asks for, else its own.
// Stays where it is: what is shown points into it.
class ShownModel {
 public:
  // Reads the fields weights, kv, assume, gguf_era and cache_type_k and _v. Throws Error(bad_input).
  ShownModel(const std::string& name, const request::Request& request, bool list_tensors);
  ShownModel(const ShownModel&) = delete;
  ShownModel& operator=(const ShownModel&) = delete;
  const result::ModelShown& shown() const { return *shown_; }

 private:
  model::ModelFile file_;
  model::WeightLayout layout_;
  std::vector<model::GgufTensor> tensors_;
  std::optional<result::ModelShown> shown_;
};

// A profile by its own name, or what an engine's era says by itself.
hardware::RuntimeProfile show_runtime(const std::string& name);

}  // namespace llmperf::service
