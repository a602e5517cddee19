// Architectures whose code came with the files and whose configs spell things their own way: the first Qwen, and
// ChatGLM (ChatGLM2, ChatGLM3, GLM-4-9B).
#include <fmt/format.h>

#include "model/hf_family.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

using descriptor::Reader;

constexpr std::int64_t kDefaultChannels = 128;

}  // namespace

void read_qwen(HfModel& model) {
  Reader& reader = model.reader;
  Attention& attention = model.layer.attention;
  FeedForward& ff = model.layer.feed_forward;
  read_dimensions(model, false);
  // Trained length; max_position_embeddings is what scaled positions reach.
  if (const auto trained = reader.optional_int("seq_length", kPositionRange)) model.decoder.max_position = trained;
  attention.heads = reader.require_int("num_attention_heads", kHeadRange);
  attention.kv_heads = attention.heads;
  attention.head_dim = reader.int_or("kv_channels", kDefaultChannels, kHeadDimRange);
  attention.v_head_dim = attention.head_dim;
  if (attention.heads * attention.head_dim != model.decoder.hidden && is_sound(reader, "hidden_size", kHiddenRange) &&
      is_sound(reader, "num_attention_heads", kHeadRange)) {
    reader.problem("hidden_size", fmt::format("hidden_size ({}) is not num_attention_heads ({}) times kv_channels ({})",
                                              model.decoder.hidden, attention.heads, attention.head_dim));
  }
  const double rotated =
      reader.optional_double("rotary_pct", 0, 1).value_or(1) * static_cast<double>(attention.head_dim);
  attention.rotary_dim = static_cast<std::int64_t>(rotated);
  // Only the fused q, k, v projection has a bias when no_bias is set, as it is in all published files.
  const bool biases = !reader.bool_or("no_bias", true);
  attention.qkv_bias = true;
  attention.o_bias = biases;
  attention.fused_qkv = true;
  ff.bias = biases;
  // The config counts the gate and up matrices together.
  const std::int64_t both = reader.require_int("intermediate_size", {1, 2 * kWidthRange.max});
  if (both % 2 != 0 && is_sound(reader, "intermediate_size", kWidthRange)) {
    reader.problem("intermediate_size",
                   fmt::format("intermediate_size ({}) is not even: in this architecture it is twice "
                               "the width of one matrix",
                               both));
  }
  ff.intermediate = std::max<std::int64_t>(both / 2, 1);
  expect(reader, "use_cache_quantization", false);
  ignore(reader, {"scale_attn_weights", "bf16", "fp16", "fp32", "rotary_emb_base", "use_dynamic_ntk", "use_logn_attn",
                  "use_flash_attn", "use_cache_kernel", "softmax_in_fp32", "onnx_safe"});
}

void read_chatglm(HfModel& model) {
  Reader& reader = model.reader;
  Attention& attention = model.layer.attention;
  FeedForward& ff = model.layer.feed_forward;
  model.decoder.hidden = reader.require_int("hidden_size", kHiddenRange);
  model.layers = reader.require_int("num_layers", kLayerRange);
  model.decoder.vocab = reader.require_int("padded_vocab_size", kVocabRange);
  model.decoder.max_position = reader.optional_int("seq_length", kPositionRange);
  model.decoder.tied_embeddings = reader.bool_or("tie_word_embeddings", false);
  ignore(reader, {"vocab_size", "num_hidden_layers", "rope_ratio", "original_rope", "bias_dropout_fusion",
                  "attention_softmax_in_fp32", "fp32_residual_connection", "apply_query_key_layer_scaling",
                  "apply_residual_connection_post_layernorm", "prefix_projection"});

  attention.heads = reader.require_int("num_attention_heads", kHeadRange);
  const bool grouped = reader.bool_or("multi_query_attention", false);
  const std::int64_t groups = reader.int_or("multi_query_group_num", 1, kHeadRange);
  attention.kv_heads = grouped ? groups : attention.heads;
  check_divisible(reader, "num_attention_heads", attention.heads, "multi_query_group_num", attention.kv_heads);
  attention.head_dim = reader.int_or("kv_channels", kDefaultChannels, kHeadDimRange);
  attention.v_head_dim = attention.head_dim;
  attention.rotary_dim = attention.head_dim / 2;
  const bool biases = reader.bool_or("add_bias_linear", false);
  attention.qkv_bias = reader.bool_or("add_qkv_bias", false) || biases;
  attention.o_bias = biases;
  attention.fused_qkv = true;

  ff.intermediate = reader.require_int("ffn_hidden_size", kWidthRange);
  ff.bias = biases;
  ff.fused_gate_up = true;
  model.decoder.norm = reader.bool_or("rmsnorm", true) ? Norm::rms : Norm::layer;
  expect(reader, "post_layer_norm", true);
  if (reader.find("pre_seq_len") != nullptr) reader.problem("pre_seq_len", "prefix tuning is not supported");
  if (reader.int_or("quantization_bit", 0, {0, 64}) != 0) {
    reader.problem("quantization_bit", "quantization_bit is not supported", "remove it and choose with --weights");
  }
}

}  // namespace llmperf::model
