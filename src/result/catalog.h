// What `llmperf list` and `llmperf show` answer: models, devices, runtime profiles, sets of measurements.
#pragma once

#include <string>
#include <vector>

#include "hardware/runtime_profile.h"
#include "model/gguf_file.h"
#include "model/parameters.h"
#include "model/video_parameters.h"
#include "model/weight_layout.h"
#include "result/field.h"

namespace llmperf::result {

struct TensorRow {
  std::string name;
  std::string type;                 // "Q4_K", "w4a16-g128", "4.5 bits"
  std::vector<std::int64_t> shape;  // outermost first: [experts, outputs, inputs]
  std::int64_t elements = 0;
  Bytes bytes;
  static Type fields();
};
// How much of a model is stored in which type.
struct TypeShare {
  std::string type;
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  Bytes bytes;
  static Type fields();
};

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
  // Of the file: read, or what the tensors and the vocabulary would take.
  Bytes file_size() const;
  // In the order of the file; of a weight scheme by Hugging Face's names, embedding first.
  std::vector<TensorRow> rows() const;
  // Largest first.
  std::vector<TypeShare> types() const;
  static Type fields();
};

struct VideoModelShown {
  const model::VideoDit& model;
  model::VideoParameters parameters = model::count_parameters(model);
  static Type fields();
};

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
  static Type fields();
};
struct ModelList {
  std::vector<ModelListed> models;
  void add(const model::Decoder& model);
  void add(const model::VideoDit& model);
  static Type fields();
};

struct DeviceListed {
  hardware::Device device;
  static Type fields();
};
struct DeviceList {
  std::vector<DeviceListed> hardware;
  static Type fields();
};

struct RuntimeListed {
  hardware::RuntimeProfile profile;
  static Type fields();
};
struct RuntimeList {
  std::vector<RuntimeListed> runtimes;
  static Type fields();
};
struct RuntimeParameter {
  const hardware::RuntimeProfile* profile;
  std::size_t index;
  const hardware::ParameterInfo& info() const { return hardware::parameter_info(index); }
  bool fitted() const { return profile->provenance[index] == hardware::Provenance::fitted; }
  static Type fields();
};
// All of them, formats included.
std::vector<RuntimeParameter> parameters_of(const hardware::RuntimeProfile& profile);

struct MeasurementSet {
  std::string name;
  std::int64_t rows = 0;
  std::string about = {};  // its comment lines
  static Type fields();
};
struct MeasurementList {
  std::vector<MeasurementSet> measurements;
  static Type fields();
};

template <>
const Type& type_of<model::ParameterCounts>();
template <>
const Type& type_of<hardware::Device>();
template <>
const Type& type_of<hardware::RuntimeProfile>();

}  // namespace llmperf::result
