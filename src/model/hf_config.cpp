#include "model/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "model/hf_family.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

struct Family {
  std::string_view model_type;
  void (*read)(HfModel&);
};

constexpr std::array<Family, 19> kFamilies = {{
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"mixtral", read_mixtral},
    {"qwen", read_qwen},
    {"qwen2", read_qwen2},
    {"qwen2_moe", read_qwen2_moe},
    {"qwen3", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"phi", read_phi},
    {"phi3", read_phi3},
    {"deepseek_v2", read_deepseek_v2},
    {"deepseek_v3", read_deepseek_v3},
    {"chatglm", read_chatglm},
    {"glm4", read_glm4},
    {"gpt_oss", read_gpt_oss},
    {"yi", read_llama},
    {"Yi", read_llama},  // the spelling of the first Yi files, which otherwise are Llama's
}};

std::vector<std::string> model_types() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) {
    if (family.model_type != "Yi") names.emplace_back(family.model_type);
  }
  return names;
}

const Family* find_family(descriptor::Reader& reader, const std::string& model_type) {
  const auto found = std::find_if(kFamilies.begin(), kFamilies.end(),
                                  [&](const Family& family) { return family.model_type == model_type; });
  if (found != kFamilies.end()) return found;
  const std::vector<std::string> known = model_types();
  std::string hint;
  if (!nearest_names(model_type, known).empty()) hint = name_hint(model_type, known) + " ";
  reader.problem("model_type", fmt::format("model_type {} is not supported", quote(model_type)),
                 hint + "supported: " + join(known, ", "));
  return nullptr;
}

// A head other than a language model's would change what the output costs.
void check_architectures(descriptor::Reader& reader) {
  for (const std::string& name : reader.optional_strings("architectures")) {
    const bool language_model = name.ends_with("ForCausalLM") || name.ends_with("LMHeadModel") ||
                                name == "ChatGLMModel" || name == "ChatGLMForConditionalGeneration";
    if (!language_model) {
      reader.problem("architectures",
                     fmt::format("architecture {} is not a decoder with a language model head", quote(name)));
    }
  }
}

// "…/Qwen2-7B/config.json" is called Qwen2-7B, "my-model.json" my-model.
std::string name_from_file(std::string_view file) {
  const std::size_t slash = file.rfind('/');
  const std::string_view base = slash == std::string_view::npos ? file : file.substr(slash + 1);
  const std::string_view stem = base.substr(0, base.rfind('.'));
  if (stem != "config" || slash == std::string_view::npos) return std::string(stem);
  const std::string_view folder = file.substr(0, slash);
  const std::string_view last = folder.substr(folder.rfind('/') + 1);
  return std::string(last.empty() || last == "." || last == ".." ? stem : last);
}

void assemble_layers(HfModel& model) {
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const auto index = static_cast<std::size_t>(i);
    Layer layer = model.layer;
    if (model.sliding.empty() || model.sliding[index]) layer.attention.window = model.window;
    if (!model.dense_layers.empty() && model.dense_layers[index]) layer.feed_forward = model.dense;
    model.decoder.add_layer(layer);
  }
}

}  // namespace

bool is_hf_config(const descriptor::Document& document) {
  const auto& entries = document.root.entries;
  return document.file.ends_with(".json") || std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
           return entry.key == "model_type" || entry.key == "architectures";
         });
}

Decoder parse_hf_config(const descriptor::Document& document, descriptor::Problems& problems) {
  const descriptor::Node root = without_neutral_keys(document.root);
  descriptor::Reader reader(root, problems, "the config");
  const std::string model_type = reader.require_string("model_type");
  problems.throw_if_any();
  const Family* family = find_family(reader, model_type);
  problems.throw_if_any();  // the keys of an unknown architecture mean nothing

  HfModel model = {
      .reader = reader, .decoder = {}, .layer = {}, .window = {}, .sliding = {}, .dense = {}, .dense_layers = {}};
  model.decoder.name = name_from_file(document.file);
  model.decoder.architecture = model_type;
  model.decoder.source = "Hugging Face config " + document.file;
  check_architectures(reader);
  family->read(model);
  model.decoder.default_weights = read_quantization(reader);
  check_common_keys(reader);
  reader.finish("A key that is not understood may change the cost, so none is skipped.");
  problems.throw_if_any();

  assemble_layers(model);
  check_size(model.decoder, reader);
  problems.throw_if_any();
  return std::move(model.decoder);
}

}  // namespace llmperf::model
