// What `llmperf list` and `llmperf show` answer: models, devices, runtime profiles, sets of measurements.
#pragma once

#include <string>
#include <vector>

#include "hardware/engine.h"
#include "hardware/runtime_profile.h"
#include "model/gguf/file.h"
#include "model/parameters.h"
#include "model/video/video_dit.h"
#include "model/weight_layout.h"
#include "result/field.h"

namespace llmperf::result {

struct TensorRow {
  std::string name;
  std::string type;                 // "Q4_K", "w4a16-g128", "4.5 bits"
  std::vector<std::int64_t> shape;  // outermost first: [experts, outputs, inputs]
  std::int64_t elements = 0;
  Bytes bytes;
};
Type fields_of(Fields<TensorRow> f);
// How much of a model is stored in which type.
struct TypeShare {
  std::string type;
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  Bytes bytes;
};
Type fields_of(Fields<TypeShare> f);

// What `show model` shows.
struct ModelShown {
  const model::Decoder& model;
  const model::WeightLayout& layout;
  model::CacheScheme kv;
  const std::vector<model::GgufTensor>* tensors = nullptr;  // of a GGUF layout
  const model::GgufFile* file = nullptr;                    // read; null: the sizes are predicted
  bool list_tensors = false;

  model::ParameterCounts parameters = model::count_parameters(model);
  Bytes weights = model::weight_bytes(model, layout);
  double bits_per_weight() const;
  // Of one token, all layers.
  Bytes kv_per_token() const;
  // Of recurrences, a sequence of any length; inputs of convolutions in 16 bits, of a GGUF layout in 32.
  Bytes state = Bytes{model::state_bytes_per_sequence(model, layout.gguf ? 4 : 2)};
  // Of the file: read, or what the tensors and the vocabulary would take.
  Bytes file_size() const;
  // In the order of the file; of a weight scheme by Hugging Face's names, embedding first.
  std::vector<TensorRow> rows() const;
  // Largest first.
  std::vector<TypeShare> types() const;
};
Type fields_of(Fields<ModelShown> f);

struct VideoModelShown {
  const model::VideoDit& model;
  model::VideoParameters parameters = model::count_parameters(model);
};
Type fields_of(Fields<VideoModelShown> f);

struct ModelListed {
  std::string name;
  std::string hf_id;
  std::string architecture;
  std::int64_t total = 0;
  std::int64_t activated = 0;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  bool video = false;
  std::string file = {};  // of LLMPERF_PATH, in place of the built-in one
};
Type fields_of(Fields<ModelListed> f);
struct ModelList {
  std::vector<ModelListed> models;
  void add(const model::Decoder& model);
  void add(const model::VideoDit& model);
};
Type fields_of(Fields<ModelList> f);

struct DeviceListed {
  hardware::Device device;
};
Type fields_of(Fields<DeviceListed> f);
struct DeviceList {
  std::vector<DeviceListed> hardware;
};
Type fields_of(Fields<DeviceList> f);

struct RuntimeListed {
  hardware::RuntimeProfile profile;
};
Type fields_of(Fields<RuntimeListed> f);
Type fields_of(Fields<hardware::EngineEra> f);
struct RuntimeList {
  std::vector<RuntimeListed> runtimes;
  std::vector<hardware::EngineEra> engines;
};
Type fields_of(Fields<RuntimeList> f);
struct RuntimeParameter {
  const hardware::RuntimeProfile* profile;
  std::size_t index;
  const hardware::ParameterInfo& info() const { return hardware::parameter_info(index); }
  bool fitted() const { return profile->provenance[index] == hardware::Provenance::fitted; }
};
Type fields_of(Fields<RuntimeParameter> f);
// All of them, formats included.
std::vector<RuntimeParameter> parameters_of(const hardware::RuntimeProfile& profile);

struct MeasurementSet {
  std::string name;
  std::int64_t rows = 0;
  std::string about = {};  // its comment lines
};
Type fields_of(Fields<MeasurementSet> f);
struct MeasurementList {
  std::vector<MeasurementSet> measurements;
};
Type fields_of(Fields<MeasurementList> f);

Type fields_of(Fields<model::ParameterCounts> f);
Type fields_of(Fields<hardware::Device> f);
Type fields_of(Fields<hardware::Price> f);
Type fields_of(Fields<hardware::FittedError> f);
Type fields_of(Fields<hardware::RuntimeProfile> f);

}  // namespace llmperf::result
