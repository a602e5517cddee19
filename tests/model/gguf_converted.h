// A GGUF file in memory as llama.cpp's converter would describe a model: the tensors of gguf_tensors and the keys that
// convert_hf_to_gguf.py writes for the architecture.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catch.h"
#include "model/families.h"
#include "model/gguf/file.h"
#include "model/gguf/tensors.h"

// The model type that is read from the file of one of this type: to llama.cpp several are the same.
inline std::string type_in_file(const std::string& model_type) {
  static const std::map<std::string, std::string> kSame = {
      {"mistral", "llama"},       {"internlm3", "llama"},
      {"olmo3", "olmo2"},         {"glm4_moe_lite", "deepseek_v3"},
      {"qwen2_5_vl", "qwen2_vl"}, {"qwen3_omni_moe_text", "qwen3_vl_moe_text"},
      {"xlm-roberta", "bert"}};
  const auto found = kSame.find(model_type);
  return found == kSame.end() ? model_type : found->second;
}

// What such a file says of a model. It does not say in which runs of tokens a recurrence takes a prompt, nor what
// windows llama.cpp does not run, and has no layers for further tokens and no pooler (on an encoder's first token)
// where the converter drops them.
inline llmperf::model::Decoder as_converted(const llmperf::model::Decoder& model) {
  namespace m = llmperf::model;
  const m::GgufArchitecture* own = m::find_gguf_architecture(m::gguf_architecture_name(model));
  m::Decoder result = model;
  result.pooler = false;
  result.vision.reset();  // a file of its own
  if (own == nullptr || !own->keeps_next_token_layers) result.next_token_layers = 0;
  result.kinds.clear();
  result.layer_kinds.clear();
  result.kind_counts.clear();
  for (const unsigned char kind : model.layer_kinds) {
    m::Layer layer = model.kinds[kind];
    if (layer.recurrent) layer.recurrent->chunk = m::Recurrent{}.chunk;
    // Which of the two forms of GELU it is.
    if (model.architecture == "gpt_neox") layer.feed_forward.activation = m::Activation::gelu;
    if (own != nullptr && !own->windows) layer.attention.window.reset();
    result.add_layer(layer);
  }
  return result;
}

class ConvertedGguf {
 public:
  explicit ConvertedGguf(const llmperf::model::Decoder& model, llmperf::model::GgufTensorOptions options = {})
      : model_(model) {
    file.path = "/models/converted.gguf";
    file.shards = {file.path};
    arch_ = std::string(llmperf::model::gguf_architecture_name(model));
    if (arch_.empty()) FAIL("no GGUF architecture for " << model.architecture);
    next_ = options.next_token_layers && own().keeps_next_token_layers ? model.next_token_layers : 0;
    set("general.architecture", arch_);
    set("general.type", std::string("model"));
    set("general.file_type", std::int64_t{15});
    add_dimensions();
    add_attention(options.split_kv_b);
    add_recurrent();
    add_feed_forward();
    for (const llmperf::model::GgufTensor& tensor : llmperf::model::gguf_tensors(model, options)) add_tensor(tensor);
  }

  // The key of the architecture, "block_count"; replaces what is there.
  void set_arch(std::string_view key, llmperf::model::GgufValue value) {
    set(arch_ + "." + std::string(key), std::move(value));
  }
  void set(std::string key, llmperf::model::GgufValue value) {
    erase(key);
    file.metadata.push_back({.key = std::move(key), .value = std::move(value), .offset = next_offset_});
    next_offset_ += 100;
  }
  void erase_arch(std::string_view key) { erase(arch_ + "." + std::string(key)); }
  void erase(std::string_view key) {
    std::erase_if(file.metadata, [&](const llmperf::model::GgufEntry& entry) { return entry.key == key; });
  }

  void add_tensor(std::string name, std::array<std::int64_t, 4> shape, llmperf::model::GgmlType type) {
    file.tensors.push_back(
        {.name = std::move(name), .shape = shape, .dimensions = 4, .type = type, .offset = next_offset_});
    next_offset_ += 100;
  }
  llmperf::model::GgufTensorInfo& tensor(std::string_view name) {
    const auto found = std::find_if(file.tensors.begin(), file.tensors.end(),
                                    [&](const llmperf::model::GgufTensorInfo& info) { return info.name == name; });
    INFO(name);
    REQUIRE(found != file.tensors.end());
    return *found;
  }
  void erase_tensor(std::string_view name) {
    std::erase_if(file.tensors, [&](const llmperf::model::GgufTensorInfo& info) { return info.name == name; });
  }

  llmperf::model::GgufFile file;

 private:
  using Mixers = llmperf::model::GgufMixers;
  using Layer = llmperf::model::Layer;

  llmperf::model::GgufArchitecture own() const {
    const llmperf::model::GgufArchitecture* found = llmperf::model::find_gguf_architecture(arch_);
    return found == nullptr ? llmperf::model::GgufArchitecture{} : *found;
  }
  const Layer& layer(std::size_t i) const { return model_.kinds[model_.layer_kinds[i]]; }
  // The first layer for which it holds; null when there is none.
  template <class Holds>
  const Layer* first(Holds&& holds) const {
    for (const unsigned char kind : model_.layer_kinds) {
      if (holds(model_.kinds[kind])) return &model_.kinds[kind];
    }
    return nullptr;
  }
  // One value where all layers have the same, else one for each; those for further tokens are as the last.
  template <class Value>
  void set_layers(std::string_view key, Value&& value) {
    std::vector<double> values;
    for (std::size_t i = 0; i < model_.layer_kinds.size(); ++i) values.push_back(static_cast<double>(value(layer(i))));
    values.insert(values.end(), static_cast<std::size_t>(next_), values.back());
    const auto length = static_cast<std::int64_t>(values.size());
    if (std::ranges::count(values, values.front()) == length) return set_arch(key, std::int64_t(values.front()));
    set_arch(key, llmperf::model::GgufArray{.length = length, .numbers = values});
  }

  void add_dimensions() {
    set_arch("block_count", model_.num_layers() + next_);
    if (next_ > 0) set_arch("nextn_predict_layers", next_);
    set_arch("embedding_length", model_.hidden);
    if (model_.max_position) set_arch("context_length", *model_.max_position);
    const bool rms = (model_.norm == llmperf::model::Norm::rms) != own().other_norm_key;
    set_arch(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 1e-5);
    set("tokenizer.ggml.tokens", llmperf::model::GgufArray{.length = model_.vocab, .numbers = {}});
    if (model_.layer_embedding_width > 0) {
      set_arch("embedding_length_per_layer_input", model_.layer_embedding_width);
    }
    if (model_.streams.count > 1) set_arch("altup.num_inputs", model_.streams.count);
    if (model_.encoder && !model_.causal) set_arch("attention.causal", false);
    if (model_.causal) set_arch("pooling_type", std::int64_t{3});
    if (arch_ == "gptneox") set_arch("use_parallel_residual", true);
  }

  void add_attention(bool since_2025) {
    const Layer* attends = first([](const Layer& l) { return l.attends(); });
    if (attends == nullptr) return set_arch("attention.head_count", std::int64_t{0});
    const llmperf::model::Attention& a = attends->attention;
    const Mixers mixers = own().mixers;
    const bool all = mixers != Mixers::attention;  // heads of a layer without attention are said, too
    set_layers("attention.head_count", [&](const Layer& l) {
      return l.attends() ? l.attention.heads : all ? a.heads : std::int64_t{0};
    });
    const bool by_heads = mixers == Mixers::by_kv_heads || mixers == Mixers::one_part;
    set_layers("attention.head_count_kv", [&](const Layer& l) -> std::int64_t {
      if (!l.attends()) return by_heads || !all ? 0 : a.kv_heads;
      return l.attention.latent && since_2025 ? 1 : l.attention.kv_heads;
    });
    const Layer* full = first([](const Layer& l) { return l.attends() && !l.attention.window; });
    const Layer* slides = first([](const Layer& l) { return l.attends() && l.attention.window; });
    add_head_widths(full == nullptr ? a : full->attention, since_2025);
    if (slides != nullptr) add_window(slides->attention, full == nullptr ? a : full->attention);
    if (a.indexer) {
      set_arch("attention.indexer.head_count", a.indexer->heads);
      set_arch("attention.indexer.key_length", a.indexer->head_dim);
      set_arch("attention.indexer.top_k", a.indexer->top_k);
    }
    const std::int64_t sharing = std::ranges::count_if(
        model_.layer_kinds, [&](unsigned char kind) { return model_.kinds[kind].attention.shares_cache; });
    if (sharing > 0) set_arch("attention.shared_kv_layers", sharing);
  }

  void add_head_widths(const llmperf::model::Attention& a, bool since_2025) {
    if (arch_ == "granitehybrid") set_arch("rope.scaling.finetuned", a.rotary_dim > 0);
    const std::int64_t rotary = own().unrotated_every > 0 || arch_ == "granitehybrid" ? a.head_dim
                                : a.latent                                            ? a.latent->rope_dim
                                                                                      : a.rotary_dim;
    if (rotary > 0) set_arch("rope.dimension_count", rotary);
    if (a.latent) {
      const llmperf::model::LatentAttention& latent = *a.latent;
      set_arch("attention.kv_lora_rank", latent.kv_lora_rank);
      if (latent.q_lora_rank) set_arch("attention.q_lora_rank", *latent.q_lora_rank);
      set_arch("attention.key_length", since_2025 ? latent.kv_lora_rank + latent.rope_dim : a.head_dim);
      set_arch("attention.value_length", since_2025 ? latent.kv_lora_rank : a.v_head_dim);
      if (since_2025) {
        set_arch("attention.key_length_mla", a.head_dim);
        set_arch("attention.value_length_mla", a.v_head_dim);
      }
      return;
    }
    // Only where the config says so: llama.cpp takes embedding_length / head_count otherwise.
    if (a.heads * a.head_dim != model_.hidden) {
      set_arch("attention.key_length", a.head_dim);
      set_arch("attention.value_length", a.v_head_dim);
    }
  }

  void add_window(const llmperf::model::Attention& a, const llmperf::model::Attention& full) {
    if (!a.chunked) set_arch("attention.sliding_window", *a.window);
    if (a.head_dim != full.head_dim) {
      set_arch("attention.key_length_swa", a.head_dim);
      set_arch("attention.value_length_swa", a.v_head_dim);
      set_arch("rope.dimension_count_swa", a.rotary_dim);
    }
    const auto windows = own().windows;
    if (!windows || windows->period != 0) return;
    set_layers("attention.sliding_window_pattern", [](const Layer& l) { return l.attention.window ? 1 : 0; });
  }

  void add_recurrent() {
    const Layer* recurs = first([](const Layer& l) { return l.recurrent.has_value(); });
    if (recurs == nullptr) return;
    const llmperf::model::Recurrent& r = *recurs->recurrent;
    using Kind = llmperf::model::RecurrentKind;
    if (r.kind == Kind::short_conv) return set_arch("shortconv.l_cache", r.conv);
    set_arch("ssm.conv_kernel", r.conv);
    if (r.kind == Kind::kimi_delta) return set_arch("kda.head_dim", r.key_dim);
    set_arch("ssm.inner_size", r.values());
    set_arch("ssm.state_size", r.key_dim);
    set_arch("ssm.time_step_rank", r.kind == Kind::mamba ? r.gate_rank : r.heads);
    if (r.kind != Kind::mamba) set_arch("ssm.group_count", r.key_heads);
  }

  void add_feed_forward() {
    const Layer* dense = first([](const Layer& l) { return l.feed_forward.intermediate > 0; });
    const Layer* routed = first([](const Layer& l) { return l.feed_forward.experts.has_value(); });
    const std::int64_t parts = arch_ == "qwen" ? 2 : 1;
    set_layers("feed_forward_length", [&](const Layer& l) -> std::int64_t {
      if (!l.has_feed_forward()) return 0;
      if (l.feed_forward.intermediate > 0) return parts * l.feed_forward.intermediate;
      return dense != nullptr ? dense->feed_forward.intermediate : l.feed_forward.experts->intermediate;
    });
    if (routed == nullptr) return;
    const llmperf::model::Experts& experts = *routed->feed_forward.experts;
    set_arch("expert_count", experts.count);
    set_arch("expert_used_count", experts.per_token);
    if (experts.groups > 1) {
      set_arch("expert_group_count", experts.groups);
      set_arch("expert_group_used_count", experts.groups_per_token);
    }
    const std::string_view unsaid = "llama jamba granitehybrid dbrx";
    if (unsaid.find(arch_) == std::string_view::npos) set_arch("expert_feed_forward_length", experts.intermediate);
    if (arch_ == "qwen2moe") set_arch("expert_shared_feed_forward_length", experts.shared_intermediate);
    std::int64_t leading = 0;
    while (!layer(static_cast<std::size_t>(leading)).feed_forward.experts) ++leading;
    const bool first_dense =
        std::all_of(model_.layer_kinds.begin() + leading, model_.layer_kinds.end(),
                    [&](auto kind) { return model_.kinds[kind].feed_forward.experts.has_value(); });
    if (leading > 0 && first_dense) set_arch("leading_dense_block_count", leading);
  }

  void add_tensor(const llmperf::model::GgufTensor& tensor) {
    if (tensor.is_vector()) return add_tensor(tensor.name(), {tensor.n, tensor.count, 1, 1}, tensor.type);
    add_tensor(tensor.name(), {tensor.k, tensor.n, tensor.count, 1}, tensor.type);
  }

  llmperf::model::Decoder model_;
  std::string arch_;
  std::int64_t next_ = 0;  // layers for further tokens
  std::int64_t next_offset_ = 1000;
};
