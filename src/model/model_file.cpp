#include "model/model_file.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "descriptor/catalog.h"
#include "model/gguf_decoder.h"
#include "model/video_dit.h"

namespace llmperf::model {
namespace {

namespace fs = std::filesystem;

// What a layout is called: general.file_type says less than the name people choose.
std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::vector<std::string> names(bool video) {
  std::vector<std::string> result = descriptor::names(descriptor::Kind::model);
  std::erase_if(result, [&](const std::string& name) { return is_video_dit(name) != video; });
  return result;
}

// config.json of the folder, where a folder is given.
std::string config_path(const std::string& name_or_path) {
  std::error_code ignored;
  if (!descriptor::is_path(name_or_path) || !fs::is_directory(name_or_path, ignored)) return name_or_path;
  std::string path = name_or_path + (name_or_path.ends_with('/') ? "config.json" : "/config.json");
  if (fs::exists(path, ignored)) return path;
  std::string index = (fs::path(name_or_path) / "model_index.json").string();  // of diffusers
  if (fs::exists(index, ignored)) return index;
  throw Error(ErrorKind::bad_input, {{{name_or_path, 0, 0},
                                      "the folder holds no config.json",
                                      "a model's folder has one; of a GGUF model give the file itself"}});
}

// The decoder of a descriptor or config. NVIDIA's checkpoints say how they are quantised in a file beside config.json.
Decoder load_described(const std::string& name_or_path, const std::string& assume) {
  const descriptor::Document document = descriptor::load(descriptor::Kind::model, name_or_path);
  const fs::path path(name_or_path);
  const std::string beside = (path.parent_path() / "hf_quant_config.json").string();
  std::error_code ignored;
  if (path.filename() != "config.json" || !fs::exists(beside, ignored)) return parse_decoder(document, nullptr, assume);
  const descriptor::Document quantization = descriptor::parse_file(beside, descriptor::kConfigRules);
  return parse_decoder(document, &quantization, assume);
}

}  // namespace

std::vector<std::string> decoder_names() { return names(false); }
std::vector<std::string> video_names() { return names(true); }

ModelFile load_model(const std::string& given, const std::string& assume) {
  const std::string name_or_path = config_path(given);
  const bool gguf = name_or_path.ends_with(".gguf") || (descriptor::is_path(name_or_path) && is_gguf(name_or_path));
  if (!gguf) {
    ModelFile file = {.decoder = load_described(name_or_path, assume), .stored = {}};
    const std::vector<std::string> known = descriptor::names(descriptor::Kind::model);
    if (descriptor::is_path(given) || descriptor::is_inline(given) || std::ranges::count(known, given) > 0) return file;
    const descriptor::ModelName name = descriptor::read_model_name(given);
    if (name.model == given && name.weights.empty()) return file;
    if (!name.weights.empty()) file.weights = name.weights;
    if (file.weights && gguf_weights(*file.weights) == nullptr) {
      file.decoder.default_weights = *file.weights;
      file.decoder.mixture.clear();
    }
    file.decoder.assumed = "taken for " + given;
    if (!name.weights.empty()) file.decoder.assumed += ", whose name says weights " + name.weights;
    return file;
  }
  if (!assume.empty())
    throw Error::bad_input("`assume` is for Hugging Face configs, not for GGUF files", "leave it out");
  GgufFile file = read_gguf(name_or_path);
  Decoder decoder = parse_gguf_decoder(file);
  std::vector<GgufTensor> tensors = match_tensors(decoder, file);
  WeightLayout layout = gguf_layout(decoder, tensors, file_name(name_or_path));
  return {.decoder = std::move(decoder),
          .stored = StoredModel{.file = std::move(file), .tensors = std::move(tensors), .layout = std::move(layout)}};
}

Decoder load_decoder(const std::string& name_or_path, const std::string& assume) {
  return load_model(name_or_path, assume).decoder;
}

}  // namespace llmperf::model
