// A model as a user names it, with what its file knows beyond the dimensions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/decoder.h"
#include "model/gguf/file.h"
#include "model/gguf/tensors.h"
#include "model/weight_layout.h"

namespace llmperf::model {

struct StoredModel {
  GgufFile file;
  std::vector<GgufTensor> tensors;
  WeightLayout layout;
};

struct ModelFile {
  Decoder decoder;
  std::optional<StoredModel> stored;  // of a GGUF file
  // How its weights are stored as the name that was given says ("Qwen/Qwen3-8B-AWQ"): a scheme or a GGUF file type.
  std::optional<std::string> weights = std::nullopt;
};

// A built-in name, or the path of a YAML file, a Hugging Face config.json, the folder that holds one (with a
// hf_quant_config.json beside it, if there is one) or a GGUF file (known by its first bytes). Throws Error(bad_input)
// with every problem found. `assume`: the family that a Hugging Face config is read as (parse_decoder).
ModelFile load_model(const std::string& given, const std::string& assume = {});

// Names of the built-in (or search path's) models of one sort, sorted: language models, and video models (video_dit.h).
std::vector<std::string> decoder_names();
std::vector<std::string> video_names();

}  // namespace llmperf::model
