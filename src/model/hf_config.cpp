#include "model/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "model/hf_family.h"
#include "model/hf_quantization.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

struct Family {
  std::string_view model_type;
  void (*read)(HfModel&);
};

constexpr std::array<Family, 22> kFamilies = {{
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"mixtral", read_mixtral},
    {"qwen", read_qwen},
    {"qwen2", read_qwen2},
    {"qwen2_moe", read_qwen2_moe},
    {"qwen3", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},
    {"qwen3_vl_text", read_qwen3},
    {"qwen3_vl_moe_text", read_qwen3_moe},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"phi", read_phi},
    {"phi3", read_phi3},
    {"deepseek_v2", read_deepseek_v2},
    {"deepseek_v3", read_deepseek_v3},
    {"kimi_k2", read_deepseek_v3},
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

std::vector<Layer> layers_of(const HfModel& model) {
  std::vector<Layer> layers;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const auto index = static_cast<std::size_t>(i);
    Layer& layer = layers.emplace_back(model.layer);
    if (model.sliding.empty() || model.sliding[index]) layer.attention.window = model.window;
    if (!model.dense_layers.empty() && model.dense_layers[index]) layer.feed_forward = model.dense;
  }
  return layers;
}

void assemble_layers(const std::vector<Layer>& layers, const std::vector<int>& stored_as, Decoder& decoder,
                     descriptor::Reader& reader) {
  constexpr std::size_t kMostKinds = 255;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Layer layer = layers[i];
    layer.stored_as = stored_as[i];
    decoder.add_layer(layer);
    if (decoder.kinds.size() < kMostKinds) continue;
    reader.problem("num_hidden_layers", "the layers are stored in more ways than are supported",
                   "remove quantization_config and choose with --weights");
    return;
  }
}

const descriptor::Node* entry(const descriptor::Node& mapping, std::string_view key) {
  for (const descriptor::Node::Entry& e : mapping.entries) {
    if (e.key == key) return &e.value;
  }
  return nullptr;
}

// A model that reads more than text has a config of its own for the language model. What may stand outside of it holds
// for the language model too; everything else there is about the other parts. Null: the config is all of one model.
std::optional<descriptor::Node> language_config(const descriptor::Node& root) {
  for (const std::string_view key : {"text_config", "llm_config"}) {
    const descriptor::Node* nested = entry(root, key);
    if (nested == nullptr || nested->kind != descriptor::Node::Kind::mapping) continue;
    descriptor::Node language = *nested;
    for (const char* shared : {"model_type", "tie_word_embeddings", "quantization_config"}) {
      const descriptor::Node* outer = entry(root, shared);
      const bool has_own = entry(language, shared) != nullptr;
      if (outer != nullptr && !has_own) language.entries.push_back({shared, outer->line, outer->column, *outer});
    }
    return language;
  }
  return std::nullopt;
}

// What the config and the file beside it say, in that order. Problems of the latter are thrown at once.
Quantization read_quantization(descriptor::Reader& reader, const descriptor::Document* beside,
                               descriptor::Problems& beside_problems) {
  auto own = reader.optional_mapping("quantization_config");
  Quantization quantization = own ? read_quantization_config(*own) : Quantization();
  if (beside == nullptr) return quantization;
  descriptor::Reader root(beside->root, beside_problems, "the file");
  Quantization other = read_hf_quant_config(root, own.has_value());
  beside_problems.throw_if_any();
  if (!own) return other;
  if (quantization.kv.empty()) quantization.kv = other.kv;
  return quantization;
}

}  // namespace

bool is_hf_config(const descriptor::Document& document) {
  const auto& entries = document.root.entries;
  return document.file.ends_with(".json") || std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
           return entry.key == "model_type" || entry.key == "architectures";
         });
}

Decoder parse_hf_config(const descriptor::Document& document, descriptor::Problems& problems,
                        const descriptor::Document* beside) {
  const std::optional<descriptor::Node> language = language_config(document.root);
  const descriptor::Node root = without_neutral_keys(language ? *language : document.root);
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
  if (language) model.decoder.notes = "the language model alone: what reads images, video or sound is not counted";
  check_architectures(reader);
  family->read(model);
  descriptor::Problems beside_problems(beside ? beside->file : std::string());
  Quantization quantization = read_quantization(reader, beside, beside_problems);
  check_common_keys(reader);
  reader.finish("A key that is not understood may change the cost, so none is skipped.");
  problems.throw_if_any();

  const std::vector<Layer> layers = layers_of(model);
  const bool own = reader.has("quantization_config");
  const std::vector<int> stored_as =
      apply_quantization(quantization, layers, model.decoder, own ? problems : beside_problems);
  beside_problems.throw_if_any();
  assemble_layers(layers, stored_as, model.decoder, reader);
  problems.throw_if_any();  // before its tensors are counted
  check_size(model.decoder, reader);
  problems.throw_if_any();
  return std::move(model.decoder);
}

}  // namespace llmperf::model
