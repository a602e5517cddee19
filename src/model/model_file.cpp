#include "model/model_file.h"

#include "descriptor/catalog.h"
#include "model/gguf_decoder.h"

namespace llmperf::model {
namespace {

// What a layout is called: general.file_type says less than the name people choose.
std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

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
