#include "service/catalog.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "hardware/device.h"
#include "hardware/engine.h"
#include "model/quantization.h"
#include "model/video/video_dit.h"
#include "points/study_file.h"

namespace llmperf::service {

using descriptor::Kind;

namespace {

// Rows and comment of a built-in set, without reading its columns.
result::MeasurementSet measurement_set(const std::string& name) {
  result::MeasurementSet set;
  set.name = name;
  const descriptor::Text text = descriptor::load_text(descriptor::Kind::measurements, name);
  for (const std::string_view line : split(text.text, '\n')) {
    if (line.starts_with('#')) {
      set.about += (set.about.empty() ? "" : " ") + std::string(trim(line.substr(1)));
    } else if (!trim(line).empty()) {
      ++set.rows;
    }
  }
  --set.rows;  // the header
  return set;
}

}  // namespace

result::ModelList list_models() {
  result::ModelList list;
  for (const std::string& name : model::decoder_names()) list.add(model::load_decoder(name));
  for (const std::string& name : model::video_names()) list.add(model::load_video_dit(name));
  return list;
}

result::DeviceList list_devices() {
  result::DeviceList list;
  for (const std::string& name : descriptor::names(Kind::device))
    list.hardware.push_back({hardware::load_device(name)});
  return list;
}

result::RuntimeList list_runtimes() {
  result::RuntimeList list;
  for (hardware::RuntimeProfile& profile : hardware::all_runtime_profiles()) list.runtimes.push_back({profile});
  list.engines = hardware::all_engines();
  return list;
}

result::MeasurementList list_measurements() {
  result::MeasurementList list;
  for (const std::string& name : descriptor::names(Kind::measurements))
    list.measurements.push_back(measurement_set(name));
  return list;
}

result::StudyList list_studies() {
  result::StudyList list;
  for (const std::string& name : descriptor::names(Kind::scenario))
    list.studies.push_back({name, points::load_study(name)});
  return list;
}

ShownModel::ShownModel(const std::string& name, const request::Request& given, bool list_tensors)
    : file_(model::load_model(name, given.assume.value_or(""))) {
  request::Request asked = given;
  if (!asked.weights) asked.weights = file_.weights;
  const model::Decoder& decoder = file_.decoder;
  const model::GgufEra era = asked.gguf_era ? model::parse_gguf_era(*asked.gguf_era) : model::GgufEra::v2026;

  const bool stored = file_.stored && !asked.weights;
  if (stored) {
    layout_ = file_.stored->layout;
  } else if (!asked.weights) {
    layout_ = model::checkpoint_layout(decoder, Dtype::bf16);
  } else if (const model::GgufFileType* type = model::gguf_weights(*asked.weights)) {
    tensors_ = model::quantised_tensors(decoder, *type, era);
    layout_ = model::gguf_layout(decoder, tensors_, std::string(type->name));
  } else {
    layout_ = model::make_layout(decoder, *asked.weights, Dtype::bf16, era);
  }
  if (asked.gguf_era && (stored || !layout_.gguf)) {
    throw Error::bad_input("`gguf-era` is for a GGUF type as `weights`", "q4_k_m");
  }
  const std::string own_kv = layout_.gguf ? "fp16" : decoder.default_kv.empty() ? "bf16" : decoder.default_kv;
  const model::ElementFormat kv = model::parse_kv_scheme(asked.kv.value_or(own_kv));
  shown_.emplace(result::ModelShown{.model = decoder,
                                    .layout = layout_,
                                    .kv = {asked.cache_type_k ? model::parse_kv_scheme(*asked.cache_type_k) : kv,
                                           asked.cache_type_v ? model::parse_kv_scheme(*asked.cache_type_v) : kv},
                                    .tensors = stored         ? &file_.stored->tensors
                                               : layout_.gguf ? &tensors_
                                                              : nullptr,
                                    .file = stored ? &file_.stored->file : nullptr,
                                    .list_tensors = list_tensors});
}

hardware::RuntimeProfile show_runtime(const std::string& name) {
  const std::vector<std::string> eras = descriptor::names(Kind::engine);
  if (std::find(eras.begin(), eras.end(), name) != eras.end()) return hardware::by_itself(hardware::load_engine(name));
  return hardware::parse_runtime_profile(descriptor::load(Kind::runtime, name));
}

}  // namespace llmperf::service
