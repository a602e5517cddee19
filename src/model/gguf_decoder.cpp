#include "model/gguf_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/utf8.h"
#include "model/gguf_model.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

// Decoder::layer_kinds counts in bytes.
constexpr std::size_t kMostKinds = 255;

// The text with '?' for each character that is unsafe and each byte that is not UTF-8.
std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    const std::optional<char32_t> character = decode_utf8(text, offset);
    const bool safe = character && !is_unsafe(*character);
    out += safe ? text.substr(start, offset - start) : "?";
  }
  return out;
}

bool is_good_name(std::string_view text) {
  constexpr std::size_t kLongest = 120;
  return !text.empty() && text.size() <= kLongest && printable(text) == text;
}

// "…/qwen1_5-7b-q4_k_m.gguf" is called qwen1_5-7b-q4_k_m, and so are its shards.
std::string file_stem(const GgufFile& file) {
  constexpr std::string_view kShardEnding = "-00001-of-00002";
  const std::string_view base = std::string_view(file.path).substr(file.path.rfind('/') + 1);
  std::string_view stem = base.substr(0, base.rfind('.'));
  if (file.shards.size() > 1 && stem.size() > kShardEnding.size()) stem.remove_suffix(kShardEnding.size());
  return std::string(stem);
}

std::string text_of(const GgufFile& file, std::string_view key) {
  const GgufEntry* entry = file.find(key);
  const auto* text = entry == nullptr ? nullptr : std::get_if<std::string>(&entry->value);
  return text == nullptr ? std::string() : *text;
}

// general.file_type, by llama.cpp's enumeration of them (llama.h); the empty ones are no longer in it.
std::string describe_file_type(const GgufFile& file) {
  constexpr std::array<std::string_view, 39> kNames = {
      "f32",    "f16",    "q4_0",   "q4_1",    "",       "",       "",       "q8_0",   "q5_0",     "q5_1",
      "q2_k",   "q3_k_s", "q3_k_m", "q3_k_l",  "q4_k_s", "q4_k_m", "q5_k_s", "q5_k_m", "q6_k",     "iq2_xxs",
      "iq2_xs", "q2_k_s", "iq3_xs", "iq3_xxs", "iq1_s",  "iq4_nl", "iq3_s",  "iq3_m",  "iq2_s",    "iq2_m",
      "iq4_xs", "iq1_m",  "bf16",   "",        "",       "",       "tq1_0",  "tq2_0",  "mxfp4_moe"};
  const GgufEntry* entry = file.find("general.file_type");
  const auto* id = entry == nullptr ? nullptr : std::get_if<std::int64_t>(&entry->value);
  if (id == nullptr) return {};
  const bool known = *id >= 0 && *id < static_cast<std::int64_t>(kNames.size());
  const std::string_view name = known ? kNames[static_cast<std::size_t>(*id)] : std::string_view();
  return name.empty() ? fmt::format(", file type {}", *id) : fmt::format(", file type {}", name);
}

const GgufFamily* find_family(const GgufFile& file, GgufProblems& problems) {
  const GgufEntry* type = file.find("general.type");
  if (type != nullptr && text_of(file, "general.type") != "model") {
    problems.add(*type, fmt::format("the file holds {}, not a model", quote(text_of(file, "general.type"))));
    return nullptr;
  }
  const GgufEntry* entry = file.find("general.architecture");
  if (entry == nullptr || !std::holds_alternative<std::string>(entry->value)) {
    const std::string_view message = "missing key 'general.architecture', which must be a string";
    entry == nullptr ? problems.add(std::string(message)) : problems.add(*entry, std::string(message));
    return nullptr;
  }
  const std::string& name = std::get<std::string>(entry->value);
  const GgufFamily* family = find_gguf_family(name);
  if (family != nullptr) return family;
  const std::vector<std::string> known = gguf_family_names();
  std::string hint;
  if (!nearest_names(name, known).empty()) hint = name_hint(name, known) + " ";
  problems.add(*entry, fmt::format("general.architecture {} is not supported", quote(name)),
               hint + "supported: " + join(known, ", "));
  return nullptr;
}

void read_dimensions(GgufModel& model, const GgufFile& file) {
  GgufKeys& keys = model.keys;
  model.decoder.hidden = keys.require_int("embedding_length", kHiddenRange);
  model.decoder.max_position = keys.optional_nonzero("context_length", kPositionRange);
  // As llama.cpp does: the vocabulary's own length before the key, which tools that add tokens leave behind.
  const GgufEntry* tokens = file.find("tokenizer.ggml.tokens");
  const auto* list = tokens == nullptr ? nullptr : std::get_if<GgufArray>(&tokens->value);
  if (list == nullptr || list->length == 0) {
    model.decoder.vocab = keys.require_int("vocab_size", kVocabRange);
  } else if (list->length > kVocabRange.max) {
    keys.problems().add(*tokens,
                        fmt::format("{} tokens are more than the {} supported", list->length, kVocabRange.max));
  } else {
    model.decoder.vocab = list->length;
  }
}

// The file must say which norm the architecture uses, and nothing else.
void check_norm(GgufModel& model) {
  constexpr std::string_view kRms = "attention.layer_norm_rms_epsilon";
  constexpr std::string_view kLayer = "attention.layer_norm_epsilon";
  const bool rms = model.family.norm == Norm::rms;
  const std::string_view expected = rms ? kRms : kLayer;
  const std::string_view other = rms ? kLayer : kRms;
  if (!model.keys.has(expected) && model.keys.has(other)) {
    model.keys.problem(other, fmt::format("{} belongs to another kind of norm: the architecture {} uses {}",
                                          quote(model.keys.full(other)), model.family.name, model.keys.full(expected)));
  } else if (!model.keys.has(expected)) {
    model.keys.missing(expected);
  }
  model.decoder.norm = model.family.norm;
}

// Variants that would change what the model costs.
void check_variants(GgufModel& model) {
  GgufKeys& keys = model.keys;
  if (!keys.optional_bool("attention.causal").value_or(true)) {
    keys.problem("attention.causal", "attention that is not causal (an embedding model) is not supported");
  }
  if (keys.optional_nonzero("nextn_predict_layers", kLayerRange)) {
    keys.problem("nextn_predict_layers", "layers for the prediction of further tokens (MTP) are not supported",
                 "convert the model without them");
  }
  for (const std::string_view key : {"attention.max_alibi_bias", "attention.clamp_kqv"}) {
    if (keys.optional_number(key).value_or(0) != 0) {
      keys.problem(key, fmt::format("{} is not supported for this architecture", quote(keys.full(key))));
    }
  }
}

// The name Hugging Face has for it, so that a model is the same whichever file it was read from.
std::string_view model_type(const GgufModel& model) {
  const GgufFamily& family = model.family;
  const std::optional<Experts>& experts = model.expert.experts;
  if (experts && experts->score_correction && !family.noaux_type.empty()) return family.noaux_type;
  return experts && !family.moe_type.empty() ? family.moe_type : family.model_type;
}

void assemble_layers(GgufModel& model) {
  Layer layer{.attention = model.attention,
              .feed_forward = {},
              .norms = model.family.norms,
              .parallel_blocks = model.family.parallel_blocks};
  for (std::size_t i = 0; i < model.routed.size(); ++i) {
    layer.attention.heads = model.heads[i];
    layer.attention.kv_heads = model.kv_heads[i];
    layer.attention.window.reset();
    if (model.window && model.sliding[i]) layer.attention.window = model.window;
    layer.feed_forward = model.routed[i] ? model.expert : model.dense;
    if (!model.routed[i]) layer.feed_forward.intermediate = model.widths[i];
    model.decoder.add_layer(layer);
    if (model.decoder.kinds.size() > kMostKinds) {
      model.keys.problem("block_count", fmt::format("more than {} layers differ from each other", kMostKinds));
      return;
    }
  }
}

}  // namespace

Decoder parse_gguf_decoder(const GgufFile& file) {
  GgufProblems problems(file);
  const GgufFamily* family = find_family(file, problems);
  problems.throw_if_any();  // the keys of an unknown architecture mean nothing
  GgufKeys keys(file, problems, std::string(family->name));
  const GgufIndex tensors(file);

  GgufModel model{.family = *family, .keys = keys, .tensors = tensors};
  model.layers = keys.require_int("block_count", kLayerRange);
  problems.throw_if_any();  // arrays have one value per layer
  read_dimensions(model, file);
  check_norm(model);
  check_variants(model);
  read_gguf_attention(model);
  read_gguf_feed_forward(model);
  problems.throw_if_any();

  const std::string name = text_of(file, "general.name");
  model.decoder.name = is_good_name(name) ? name : printable(file_stem(file));
  model.decoder.architecture = model_type(model);
  model.decoder.source =
      fmt::format("GGUF file {} (architecture {}{})", printable(file.path), family->name, describe_file_type(file));
  model.decoder.tied_embeddings = tensors.find("output.weight") == nullptr;
  model.decoder.lm_head_bias = family->lm_head_bias || tensors.find("output.bias") != nullptr;
  assemble_layers(model);
  problems.throw_if_any();
  if (std::string problem = size_problem(model.decoder); !problem.empty()) problems.add(std::move(problem));
  problems.throw_if_any();
  return std::move(model.decoder);
}

}  // namespace llmperf::model
