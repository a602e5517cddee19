// Dense decoders. What differs is mostly biases, norms and which layers see a window; the defaults are those of the
// config classes in transformers.
#include "model/hf_family.h"
#include "model/reading.h"

namespace llmperf::model {

void read_llama(HfModel& model) {
  read_dimensions(model, false);
  const auto oldest_spelling = model.reader.optional_int("max_sequence_length", kPositionRange);
  if (!model.decoder.max_position) model.decoder.max_position = oldest_spelling;
  read_heads(model, {});
  read_mlp(model);
  read_attention_bias(model, false);
  model.layer.feed_forward.bias = model.reader.bool_or("mlp_bias", false);
}

void read_mistral(HfModel& model) {
  read_dimensions(model, false);
  read_heads(model, {.kv_heads = 8, .head_dim = {}});
  read_mlp(model);
  expect(model.reader, "attention_bias", false);
  model.window = model.reader.optional_int("sliding_window", kPositionRange);
  if (!model.window && !is_null(model.reader, "sliding_window")) model.window = 4096;
}

namespace {

// With use_sliding_window the layers from max_window_layers on see the window.
void read_upper_window(HfModel& model) {
  model.window = read_switched_window(model);
  if (model.window) {
    const std::int64_t first = model.reader.int_or("max_window_layers", 28, {0, kLayerRange.max});
    for (std::int64_t i = 0; i < model.layers; ++i) model.sliding.push_back(i >= first);
  }
  read_layer_types(model);
}

}  // namespace

void read_qwen2(HfModel& model) {
  read_dimensions(model, false);
  read_heads(model, {.kv_heads = 32, .head_dim = {}});
  read_mlp(model);
  read_upper_window(model);
  model.layer.attention.qkv_bias = true;
}

void read_qwen3(HfModel& model) {
  read_dimensions(model, false);
  read_heads(model, {.kv_heads = 32, .head_dim = 128});
  read_mlp(model);
  read_attention_bias(model, false);
  read_upper_window(model);
  model.layer.attention.qk_norm = true;
}

void read_gemma(HfModel& model) {
  read_dimensions(model, true);
  read_heads(model, {.kv_heads = 16, .head_dim = 256});
  read_attention_bias(model, false);
  expect(model.reader, "use_bidirectional_attention", false);
  model.layer.feed_forward.intermediate = model.reader.require_int("intermediate_size", kWidthRange);
  // The first files say hidden_act: gelu, and were trained and are run with the tanh form.
  ignore(model.reader, {"hidden_act"});
  model.layer.feed_forward.activation = read_activation(model.reader, "hidden_activation", Activation::gelu_tanh);
}

void read_gemma2(HfModel& model) {
  descriptor::Reader& reader = model.reader;
  read_dimensions(model, true);
  read_heads(model, {.kv_heads = 4, .head_dim = 256});
  read_attention_bias(model, false);
  expect(reader, "use_bidirectional_attention", false);
  model.layer.feed_forward.intermediate = reader.require_int("intermediate_size", kWidthRange);
  ignore(reader, {"hidden_act", "query_pre_attn_scalar", "final_logit_softcapping", "sliding_window_size"});
  model.layer.feed_forward.activation = read_activation(reader, "hidden_activation", Activation::gelu_tanh);
  model.layer.norms = 4;
  reader.optional_double("attn_logit_softcapping", 0, 1e6);
  model.layer.attention.softcap = !is_null(reader, "attn_logit_softcapping");
  model.window = reader.optional_int("sliding_window", kPositionRange);
  if (!model.window && !is_null(reader, "sliding_window")) model.window = 4096;
  slide_even_layers(model);
  read_layer_types(model);
}

void read_phi(HfModel& model) {
  read_dimensions(model, false);
  read_heads(model, {});
  read_partial_rotary(model, 0.5);
  expect(model.reader, "qk_layernorm", false);
  FeedForward& ff = model.layer.feed_forward;
  ff.intermediate = model.reader.require_int("intermediate_size", kWidthRange);
  ff.activation = read_activation(model.reader, "hidden_act", Activation::gelu_tanh);
  ff.gated = false;
  ff.bias = true;
  model.layer.attention.qkv_bias = true;
  model.layer.attention.o_bias = true;
  model.layer.norms = 1;
  model.layer.parallel_blocks = true;
  model.decoder.norm = Norm::layer;
  model.decoder.lm_head_bias = true;
}

void read_phi3(HfModel& model) {
  descriptor::Reader& reader = model.reader;
  read_dimensions(model, false);
  read_heads(model, {});
  read_partial_rotary(model, 1.0);
  read_mlp(model);
  for (const std::string_view key : {"attention_bias", "mlp_bias", "lm_head_bias"}) expect(reader, key, false);
  // Of Phi-4-mini; 1 means that every layer is an ordinary one.
  for (const std::string_view key : {"full_attn_mod", "interpolate_factor"}) {
    if (reader.int_or(key, 1, {1, kPositionRange.max}) != 1) {
      reader.problem(key, std::string(key) + " other than 1 is not supported");
    }
  }
  model.window = reader.optional_int("sliding_window", kPositionRange);
  model.layer.attention.fused_qkv = true;
  model.layer.feed_forward.fused_gate_up = true;
}

void read_glm4(HfModel& model) {
  read_dimensions(model, false);
  read_heads(model, {.kv_heads = 2, .head_dim = 128});
  read_partial_rotary(model, 0.5);
  read_mlp(model);
  model.layer.attention.qkv_bias = model.reader.bool_or("attention_bias", true);  // the output projection has none
  model.layer.norms = 4;
  model.layer.feed_forward.fused_gate_up = true;
}

}  // namespace llmperf::model
