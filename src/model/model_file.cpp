#include "model/model_file.h"

#include "descriptor/catalog.h"
#include "model/gguf_decoder.h"
#include "model/video_dit.h"

namespace llmperf::model {
namespace {

// What a layout is called: general.file_type says less than the name people choose.
std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::vector<std::string> names(bool video) {
  std::vector<std::string> result = descriptor::names(descriptor::Kind::model);
  std::erase_if(result, [&](const std::string& name) { return is_video_dit(name) != video; });
  return result;
}

}  // namespace

std::vector<std::string> decoder_names() { return names(false); }
std::vector<std::string> video_names() { return names(true); }

ModelFile load_model(const std::string& name_or_path) {
  const bool gguf = name_or_path.ends_with(".gguf") || (descriptor::is_path(name_or_path) && is_gguf(name_or_path));
  if (!gguf) return {.decoder = parse_decoder(descriptor::load(descriptor::Kind::model, name_or_path)), .stored = {}};
  GgufFile file = read_gguf(name_or_path);
  Decoder decoder = parse_gguf_decoder(file);
  std::vector<GgufTensor> tensors = match_tensors(decoder, file);
  WeightLayout layout = gguf_layout(decoder, tensors, file_name(name_or_path));
  return {.decoder = std::move(decoder),
          .stored = StoredModel{.file = std::move(file), .tensors = std::move(tensors), .layout = std::move(layout)}};
}

Decoder load_decoder(const std::string& name_or_path) { return load_model(name_or_path).decoder; }

}  // namespace llmperf::model
