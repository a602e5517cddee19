// A GGUF file in memory as llama.cpp's converter would describe a model: the tensors of gguf_tensors and the keys that
// convert_hf_to_gguf.py writes for the architecture.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catch.h"
#include "model/families.h"
#include "model/gguf_file.h"
#include "model/gguf_tensors.h"

class ConvertedGguf {
 public:
  explicit ConvertedGguf(const llmperf::model::Decoder& model, llmperf::model::GgufTensorOptions options = {}) {
    file.path = "/models/converted.gguf";
    file.shards = {file.path};
    arch_ = architecture_of(model.architecture);
    set("general.architecture", arch_);
    set("general.type", std::string("model"));
    set("general.file_type", std::int64_t{15});
    add_dimensions(model);
    const llmperf::model::Layer& last = model.kinds[model.layer_kinds.back()];
    add_attention(last.attention, options.split_kv_b);
    add_feed_forward(model);
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
  static std::string architecture_of(const std::string& model_type) {
    const llmperf::model::Family* family = llmperf::model::find_family(model_type);
    if (family != nullptr) return std::string(family->gguf);
    FAIL("no GGUF architecture for " << model_type);
    return {};
  }

  void add_dimensions(const llmperf::model::Decoder& model) {
    set_arch("block_count", model.num_layers());
    set_arch("embedding_length", model.hidden);
    if (model.max_position) set_arch("context_length", *model.max_position);
    const bool rms = model.norm == llmperf::model::Norm::rms;
    set_arch(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 1e-5);
    set("tokenizer.ggml.tokens", llmperf::model::GgufArray{.length = model.vocab, .numbers = {}});
  }

  void add_attention(const llmperf::model::Attention& a, bool since_2025) {
    set_arch("attention.head_count", a.heads);
    set_arch("rope.dimension_count", a.rotary_dim);
    if (a.latent) {
      const llmperf::model::LatentAttention& latent = *a.latent;
      set_arch("attention.head_count_kv", since_2025 ? 1 : a.heads);
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
    set_arch("attention.head_count_kv", a.kv_heads);
    // Only where the config says so: llama.cpp takes embedding_length / head_count otherwise.
    const auto hidden = std::get<std::int64_t>(file.find(arch_ + ".embedding_length")->value);
    if (a.heads * a.head_dim != hidden) {
      set_arch("attention.key_length", a.head_dim);
      set_arch("attention.value_length", a.v_head_dim);
    }
  }

  void add_feed_forward(const llmperf::model::Decoder& model) {
    std::int64_t dense = 0;
    std::int64_t leading = 0;
    for (const unsigned char kind : model.layer_kinds) {
      const llmperf::model::Layer& layer = model.kinds[kind];
      if (layer.attention.window) set_arch("attention.sliding_window", *layer.attention.window);
      if (layer.feed_forward.experts) continue;
      dense = layer.feed_forward.intermediate;
      ++leading;
    }
    const auto& experts = model.kinds[model.layer_kinds.back()].feed_forward.experts;
    if (!experts) {
      set_arch("feed_forward_length", arch_ == "qwen" ? 2 * dense : dense);
      return;
    }
    set_arch("feed_forward_length", leading > 0 ? dense : experts->intermediate);
    set_arch("expert_count", experts->count);
    set_arch("expert_used_count", experts->per_token);
    if (experts->groups > 1) {
      set_arch("expert_group_count", experts->groups);
      set_arch("expert_group_used_count", experts->groups_per_token);
    }
    if (arch_ != "llama") set_arch("expert_feed_forward_length", experts->intermediate);
    if (arch_ == "qwen2moe") set_arch("expert_shared_feed_forward_length", experts->shared_intermediate);
    if (arch_ == "deepseek2") {
      set_arch("leading_dense_block_count", leading);
      set_arch("expert_shared_count", experts->shared_intermediate / experts->intermediate);
    }
  }

  void add_tensor(const llmperf::model::GgufTensor& tensor) {
    if (tensor.is_vector()) return add_tensor(tensor.name(), {tensor.n, tensor.count, 1, 1}, tensor.type);
    add_tensor(tensor.name(), {tensor.k, tensor.n, tensor.count, 1}, tensor.type);
  }

  std::string arch_;
  std::int64_t next_offset_ = 1000;
};
