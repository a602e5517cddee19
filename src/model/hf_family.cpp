#include "model/hf_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

using descriptor::Node;
using descriptor::Reader;

// Keys that do not change the cost, of transformers' PretrainedConfig and of every architecture: ids, training,
// numerics, defaults of text generation.
// clang-format off
constexpr std::string_view kNeutralKeys[] = {
    // identity and files
    "auto_map", "custom_pipelines", "finetuning_task", "name_or_path", "problem_type", "tokenizer_class",
    "transformers_version", "transformers.js_config", "unsloth_fixed", "unsloth_version", "model_name", "model_file",
    "is_llama_config",
    // how it is run
    "attn_implementation", "chunk_size_feed_forward", "dtype", "experts_implementation", "gradient_checkpointing",
    "is_decoder", "output_attentions", "output_hidden_states", "output_router_logits", "output_scores", "return_dict",
    "return_dict_in_generate", "tf_legacy_loss", "torch_dtype", "torchscript", "use_bfloat16", "use_cache",
    "use_return_dict", "cache_implementation", "pretraining_tp", "ep_size",
    // training
    "attention_dropout", "attn_dropout_prob", "attn_pdrop", "embd_pdrop", "emb_dropout_prob", "resid_pdrop",
    "hidden_dropout", "hidden_dropout_prob", "initializer_range", "router_aux_loss_coef", "aux_loss_alpha", "seq_aux",
    "router_jitter_noise", "classifier_dropout",
    // labels of classifiers
    "id2label", "label2id", "num_labels", "task_specific_params",
    // numerics and positions
    "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon", "rope_theta", "rope_scaling",
    "rope_interleave", "rope_interleaved", "original_max_position_embeddings", "initial_context_length", "use_mrope",
    // token ids
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "unk_token_id", "cls_token_id",
    "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id", "prefix",
    // text generation
    "bad_words_ids", "begin_suppress_tokens", "diversity_penalty", "do_sample", "early_stopping",
    "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "length_penalty", "max_length",
    "max_new_tokens", "min_length", "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_return_sequences",
    "remove_invalid_values", "repetition_penalty", "suppress_tokens", "temperature", "top_k", "top_p", "typical_p",
    "num_logits_to_keep", "tie_encoder_decoder", "model_max_length",
};
// clang-format on

struct ActivationName {
  std::string_view name;
  Activation activation;
};
// The names of transformers' activation table that have a counterpart here.
constexpr std::array<ActivationName, 9> kActivations = {{
    {"silu", Activation::silu},
    {"swish", Activation::silu},
    {"gelu", Activation::gelu},
    {"gelu_python", Activation::gelu},
    {"gelu_new", Activation::gelu_tanh},
    {"gelu_fast", Activation::gelu_tanh},
    {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu_accurate", Activation::gelu_tanh},
    {"relu", Activation::relu},
}};

}  // namespace

void read_dimensions(HfModel& model, bool tied_by_default) {
  Reader& reader = model.reader;
  model.decoder.hidden = reader.require_int("hidden_size", kHiddenRange);
  model.layers = reader.require_int("num_hidden_layers", kLayerRange);
  model.decoder.vocab = reader.require_int("vocab_size", kVocabRange);
  model.decoder.max_position = reader.optional_int("max_position_embeddings", kPositionRange);
  model.decoder.tied_embeddings = reader.bool_or("tie_word_embeddings", tied_by_default);
}

void read_heads(HfModel& model, HeadDefaults defaults) {
  Reader& reader = model.reader;
  Attention& attention = model.layer.attention;
  attention.heads = reader.require_int("num_attention_heads", kHeadRange);
  const bool null_means_all = is_null(reader, "num_key_value_heads");
  attention.kv_heads =
      reader.int_or("num_key_value_heads",
                    null_means_all ? attention.heads : defaults.kv_heads.value_or(attention.heads), kHeadRange);
  check_divisible(reader, "num_attention_heads", attention.heads, "num_key_value_heads", attention.kv_heads);
  const bool derived = is_null(reader, "head_dim") || !defaults.head_dim;
  if (const auto given = reader.optional_int("head_dim", kHeadDimRange)) {
    attention.head_dim = *given;
  } else if (!derived) {
    attention.head_dim = *defaults.head_dim;
  } else {
    attention.head_dim = derive_head_dim(reader, "hidden_size", model.decoder.hidden, "num_attention_heads",
                                         attention.heads, "head_dim");
  }
  attention.v_head_dim = attention.head_dim;
  attention.rotary_dim = attention.head_dim;
}

void read_partial_rotary(HfModel& model, double factor_by_default) {
  Reader& reader = model.reader;
  auto factor = reader.optional_double("partial_rotary_factor", 0, 1);
  if (!factor && reader.has("rope_parameters")) {
    factor = reader.optional_mapping("rope_parameters")->optional_double("partial_rotary_factor", 0, 1);
  }
  Attention& attention = model.layer.attention;
  const double rotated = static_cast<double>(attention.head_dim) * factor.value_or(factor_by_default);
  attention.rotary_dim = static_cast<std::int64_t>(std::floor(rotated));
}

Activation read_activation(Reader& reader, std::string_view key, std::optional<Activation> by_default) {
  const std::string name = by_default ? reader.string_or(key, "") : reader.require_string(key);
  if (name.empty()) return by_default.value_or(Activation::silu);
  for (const ActivationName& known : kActivations) {
    if (known.name == name) return known.activation;
  }
  std::vector<std::string> names;
  for (const ActivationName& known : kActivations) names.emplace_back(known.name);
  reader.problem(key, fmt::format("{} {} is not supported", key, quote(name)), "known names: " + join(names, ", "));
  return Activation::silu;
}

void read_mlp(HfModel& model, std::string_view activation_key) {
  model.layer.feed_forward.intermediate = model.reader.require_int("intermediate_size", kWidthRange);
  model.layer.feed_forward.activation = read_activation(model.reader, activation_key, Activation::silu);
}

void read_attention_bias(HfModel& model, bool by_default) {
  const bool bias = model.reader.bool_or("attention_bias", by_default);
  model.layer.attention.qkv_bias = bias;
  model.layer.attention.o_bias = bias;
}

void read_layer_types(HfModel& model) {
  Reader& reader = model.reader;
  if (reader.find("layer_types") == nullptr) return;
  std::vector<bool> sliding;
  for (const std::string& type : reader.optional_strings("layer_types")) {
    if (type != "sliding_attention" && type != "full_attention") {
      reader.problem("layer_types", fmt::format("layer type {} is not supported", quote(type)),
                     "known types: full_attention, sliding_attention");
      return;
    }
    sliding.push_back(type == "sliding_attention");
  }
  if (sliding.size() == static_cast<std::size_t>(model.layers)) {
    model.sliding = std::move(sliding);
  } else if (is_sound(reader, "num_hidden_layers", kLayerRange)) {
    reader.problem("layer_types",
                   fmt::format("layer_types lists {} layers, num_hidden_layers is {}", sliding.size(), model.layers));
  }
}

void slide_even_layers(HfModel& model) {
  model.sliding.clear();
  for (std::int64_t i = 0; i < model.layers; ++i) model.sliding.push_back(i % 2 == 0);
}

std::optional<std::int64_t> read_switched_window(HfModel& model) {
  Reader& reader = model.reader;
  const std::int64_t default_window = 4096;
  // Read even when it is not in use: some files leave 0 or any other value behind then.
  if (!reader.bool_or("use_sliding_window", false)) {
    ignore(reader, {"sliding_window", "max_window_layers"});
    return std::nullopt;
  }
  if (is_null(reader, "sliding_window")) {
    ignore(reader, {"sliding_window", "max_window_layers"});
    return std::nullopt;
  }
  return reader.int_or("sliding_window", default_window, kPositionRange);
}

void expect(Reader& reader, std::string_view key, bool expected) {
  if (reader.bool_or(key, expected) == expected) return;
  reader.problem(key, fmt::format("{}: {} is not supported for this architecture", key, !expected));
}

bool is_null(const Reader& reader, std::string_view key) {
  const auto& entries = reader.node().entries;
  return std::any_of(entries.begin(), entries.end(),
                     [key](const auto& entry) { return entry.key == key && entry.value.kind == Node::Kind::null; });
}

void ignore(Reader& reader, std::initializer_list<std::string_view> keys) {
  reader.ignore({keys.begin(), keys.size()});
}

descriptor::Node without_neutral_keys(const Node& config) {
  Node kept = config;
  std::erase_if(kept.entries, [](const Node::Entry& entry) {
    return entry.key.starts_with('_') ||  // transformers' own bookkeeping
           std::find(std::begin(kNeutralKeys), std::end(kNeutralKeys), entry.key) != std::end(kNeutralKeys);
  });
  return kept;
}

void check_common_keys(Reader& reader) {
  ignore(reader, {"rope_parameters"});
  expect(reader, "is_encoder_decoder", false);
  expect(reader, "add_cross_attention", false);
  if (reader.find("cross_attention_hidden_size") != nullptr) {
    reader.problem("cross_attention_hidden_size", "cross attention is not supported");
  }
  const Node* pruned = reader.find("pruned_heads");
  if (pruned != nullptr && (pruned->kind != Node::Kind::mapping || !pruned->entries.empty())) {
    reader.problem("pruned_heads", "pruned heads are not supported");
  }
}

}  // namespace llmperf::model
