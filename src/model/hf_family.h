// Internal to src/model: what the readers of the Hugging Face architectures share. Each reader fills an HfModel; absent
// keys take the defaults of that architecture's config class, which differ from one to the next.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "descriptor/reader.h"
#include "model/decoder.h"

namespace llmperf::model {

struct HfModel {
  descriptor::Reader& reader;
  Decoder decoder;
  std::int64_t layers = 1;
  Layer layer;                         // every layer, but for the two patterns below
  std::optional<std::int64_t> window;  // of the layers with sliding[i]
  std::vector<bool> sliding;           // empty: all layers
  FeedForward dense;                   // replaces the experts in the layers with dense_layers[i]
  std::vector<bool> dense_layers;      // empty: none
};

// hidden_size, num_hidden_layers, vocab_size, max_position_embeddings, tie_word_embeddings.
void read_dimensions(HfModel& model, bool tied_by_default);

struct HeadDefaults {
  std::optional<std::int64_t> kv_heads;  // none: as many as query heads
  std::optional<std::int64_t> head_dim;  // none: hidden / heads
};
// num_attention_heads, num_key_value_heads, head_dim; the whole head is rotated.
void read_heads(HfModel& model, HeadDefaults defaults);
// partial_rotary_factor, also inside rope_parameters.
void read_partial_rotary(HfModel& model, double factor_by_default);

// intermediate_size and the activation of a gated MLP.
void read_mlp(HfModel& model, std::string_view activation_key = "hidden_act");
Activation read_activation(descriptor::Reader& reader, std::string_view key, std::optional<Activation> by_default);
// attention_bias: on q, k, v and on the output projection.
void read_attention_bias(HfModel& model, bool by_default);

// layer_types: which layers use the sliding window. Absent: model.sliding as it is.
void read_layer_types(HfModel& model);
// Every second layer, beginning with the first, uses the window.
void slide_even_layers(HfModel& model);
// use_sliding_window, sliding_window (4096 when absent): the window if it is in use.
std::optional<std::int64_t> read_switched_window(HfModel& model);

// Reports a boolean key that is not `expected`: that variant is not supported.
void expect(descriptor::Reader& reader, std::string_view key, bool expected);
// Whether the key is there with the value null, which for some keys is not the same as absent.
bool is_null(const descriptor::Reader& reader, std::string_view key);
void ignore(descriptor::Reader& reader, std::initializer_list<std::string_view> keys);
// The config less the keys that do not change the cost, so that neither readers nor hints need to know them.
descriptor::Node without_neutral_keys(const descriptor::Node& config);
// Keys every config may have and that do not change the cost unless they are set to something unusual.
void check_common_keys(descriptor::Reader& reader);

// Dense models.
void read_llama(HfModel& model);
void read_mistral(HfModel& model);
void read_qwen2(HfModel& model);
void read_qwen3(HfModel& model);
void read_gemma(HfModel& model);
void read_gemma2(HfModel& model);
void read_phi(HfModel& model);
void read_phi3(HfModel& model);
void read_glm4(HfModel& model);
// Configs with keys of their own.
void read_qwen(HfModel& model);
void read_chatglm(HfModel& model);
// Mixtures of experts.
void read_mixtral(HfModel& model);
void read_qwen2_moe(HfModel& model);
void read_qwen3_moe(HfModel& model);
void read_deepseek_v2(HfModel& model);
void read_deepseek_v3(HfModel& model);
void read_gpt_oss(HfModel& model);

}  // namespace llmperf::model
