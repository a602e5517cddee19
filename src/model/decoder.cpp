// Decoders and their descriptors: plain dimensions under names of their own, so that the files do not depend on how any
// one tool spells them. All layers are alike but for two patterns: a window on every second layer, and dense layers
// before the experts.
#include "model/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/quantization.h"
#include "model/reading.h"
#include "model/video_dit.h"

namespace llmperf::model {

void Decoder::add_layer(const Layer& layer) {
  const auto kind = static_cast<std::size_t>(std::find(kinds.begin(), kinds.end(), layer) - kinds.begin());
  if (kind == kinds.size()) {
    kinds.push_back(layer);
    kind_counts.push_back(0);
  }
  layer_kinds.push_back(static_cast<unsigned char>(kind));
  ++kind_counts[kind];
}

bool Decoder::has_experts() const {
  return std::ranges::any_of(kinds, [](const Layer& layer) { return layer.feed_forward.experts.has_value(); });
}

Decoder parse_decoder(const descriptor::Document& document, const descriptor::Document* hf_quant_config) {
  if (is_video_dit(document)) reject_video_dit(document.file);
  descriptor::Problems problems(document.file);
  return is_hf_config(document) ? parse_hf_config(document, problems, hf_quant_config)
                                : parse_model_descriptor(document, problems);
}

namespace {

using descriptor::Reader;

constexpr std::array<std::string_view, 2> kNormNames = {"rms", "layer"};
// In the order of Activation.
constexpr std::array<std::string_view, 5> kActivationNames = {"silu", "gelu", "gelu_tanh", "relu", "swiglu_clamped"};

enum class WindowPattern : unsigned char { all, even, odd };
constexpr std::array<std::string_view, 3> kWindowLayerNames = {"all", "even", "odd"};

struct AttentionPattern {
  Attention attention;
  WindowPattern window_layers = WindowPattern::all;
};

struct FeedForwardPattern {
  FeedForward feed_forward;
  std::int64_t first_dense_layers = 0;
  std::int64_t dense_intermediate = 0;
};

void reject(Reader& reader, std::string_view key, std::string_view reason) {
  if (reader.find(key) != nullptr) reader.problem(key, fmt::format("{} {}", key, reason));
}

// Latent attention: the cache holds one latent per token, so there are no key and value heads to speak of.
void read_latent(Reader& reader, Attention& attention) {
  LatentAttention latent;
  latent.q_lora_rank = reader.optional_int("q_lora_rank", kWidthRange);
  latent.kv_lora_rank = reader.require_int("kv_lora_rank", kWidthRange);
  latent.rope_dim = reader.require_int("rope_dim", kHeadDimRange);
  latent.nope_dim = reader.require_int("nope_dim", kHeadDimRange);
  for (const std::string_view key : {"kv_heads", "head_dim", "rotary_dim", "qkv_bias", "qk_norm", "fused_qkv"}) {
    reject(reader, key, "does not apply to latent attention (kv_lora_rank is given)");
  }
  attention.kv_heads = attention.heads;
  attention.head_dim = latent.rope_dim + latent.nope_dim;
  attention.v_head_dim = reader.require_int("v_head_dim", kHeadDimRange);
  attention.rotary_dim = latent.rope_dim;
  attention.latent = latent;
}

void read_heads(Reader& reader, Reader& model, const Decoder& decoder, Attention& attention) {
  attention.kv_heads = reader.int_or("kv_heads", attention.heads, kHeadRange);
  check_divisible(reader, "heads", attention.heads, "kv_heads", attention.kv_heads);
  const auto head_dim = reader.optional_int("head_dim", kHeadDimRange);
  if (head_dim) {
    attention.head_dim = *head_dim;
  } else if (decoder.hidden % attention.heads == 0) {
    attention.head_dim = decoder.hidden / attention.heads;
  } else if (is_sound(reader, "heads", kHeadRange) && is_sound(model, "hidden_size", kHiddenRange)) {
    reader.problem("heads", fmt::format("hidden_size ({}) is not divisible by heads ({}): give head_dim",
                                        decoder.hidden, attention.heads));
  }
  attention.v_head_dim = reader.int_or("v_head_dim", attention.head_dim, kHeadDimRange);
  // Learned positions replace the rotation unless the file says otherwise.
  attention.rotary_dim = reader.int_or("rotary_dim", decoder.position_embeddings > 0 ? 0 : attention.head_dim,
                                       {0, std::max<std::int64_t>(attention.head_dim, 1)});
  attention.qkv_bias = reader.bool_or("qkv_bias", false);
  attention.qk_norm = reader.bool_or("qk_norm", false);
  attention.fused_qkv = reader.bool_or("fused_qkv", false);
  for (const std::string_view key : {"q_lora_rank", "rope_dim", "nope_dim"}) {
    reject(reader, key, "applies to latent attention only (kv_lora_rank is not given)");
  }
}

AttentionPattern read_attention(Reader& reader, Reader& model, const Decoder& decoder) {
  AttentionPattern pattern;
  Attention& attention = pattern.attention;
  attention.heads = reader.require_int("heads", kHeadRange);
  if (reader.find("kv_lora_rank") != nullptr) {
    read_latent(reader, attention);
  } else {
    read_heads(reader, model, decoder, attention);
  }
  attention.window = reader.optional_int("window", kPositionRange);
  pattern.window_layers = static_cast<WindowPattern>(reader.choice("window_layers", kWindowLayerNames, 0));
  if (!attention.window) reject(reader, "window_layers", "needs a window");
  attention.o_bias = reader.bool_or("o_bias", false);
  attention.sinks = reader.bool_or("sinks", false);
  attention.softcap = reader.bool_or("softcap", false);
  reader.finish();
  return pattern;
}

Experts read_experts(Reader& reader) {
  Experts experts;
  experts.count = reader.require_int("count", kExpertRange);
  experts.per_token = reader.require_int("per_token", kExpertRange);
  check_experts(reader, "per_token", experts);
  experts.groups = reader.int_or("groups", 1, kGroupRange);
  experts.groups_per_token = reader.int_or("groups_per_token", experts.groups, kGroupRange);
  if (std::string wrong = groups_problem(experts); !wrong.empty()) reader.problem("groups", std::move(wrong));
  experts.intermediate = reader.require_int("intermediate", kWidthRange);
  experts.shared_intermediate = reader.int_or("shared_intermediate", 0, {0, kWidthRange.max});
  experts.shared_gate = reader.bool_or("shared_gate", false);
  if (experts.shared_gate && experts.shared_intermediate == 0) {
    reader.problem("shared_gate", "shared_gate needs shared_intermediate");
  }
  experts.router_bias = reader.bool_or("router_bias", false);
  experts.score_correction = reader.bool_or("score_correction", false);
  reader.finish();
  return experts;
}

FeedForwardPattern read_feed_forward(Reader& reader, std::int64_t layers) {
  FeedForwardPattern pattern;
  FeedForward& ff = pattern.feed_forward;
  ff.activation = static_cast<Activation>(reader.choice("activation", kActivationNames));
  ff.gated = reader.bool_or("gated", true);
  ff.bias = reader.bool_or("bias", false);
  ff.fused_gate_up = reader.bool_or("fused_gate_up", false);
  if (ff.fused_gate_up && !ff.gated) reader.problem("fused_gate_up", "fused_gate_up needs a gated MLP");
  if (auto experts = reader.optional_mapping("experts")) {
    ff.experts = read_experts(*experts);
    pattern.first_dense_layers = reader.int_or("first_dense_layers", 0, {0, layers});
    if (pattern.first_dense_layers > 0) {
      pattern.dense_intermediate = reader.require_int("dense_intermediate", kWidthRange);
    } else if (!reader.has("first_dense_layers")) {
      reject(reader, "dense_intermediate", "needs first_dense_layers");
    } else {
      reader.find("dense_intermediate");  // zero dense layers: accepted, and without effect
    }
    reject(reader, "intermediate", "is not used with experts, which have their own; see dense_intermediate");
  } else {
    ff.intermediate = reader.require_int("intermediate", kWidthRange);
    reject(reader, "first_dense_layers", "needs experts");
    reject(reader, "dense_intermediate", "needs experts");
  }
  reader.finish();
  return pattern;
}

// The texts and the dimensions outside the layers.
void read_model(Reader& reader, Decoder& decoder) {
  decoder.name = reader.require_string("name");
  decoder.hf_id = reader.string_or("hf_id", "");
  decoder.architecture = reader.string_or("architecture", "");
  decoder.source = reader.string_or("source", "");
  decoder.notes = reader.string_or("notes", "");
  decoder.default_weights = reader.string_or("default_weights", "");
  if (!decoder.default_weights.empty()) {
    try {
      parse_weight_scheme(decoder.default_weights);
    } catch (const Error& error) {
      for (const Diagnostic& d : error.diagnostics()) reader.problem("default_weights", d.message, d.hint);
    }
  }
  decoder.hidden = reader.require_int("hidden_size", kHiddenRange);
  decoder.vocab = reader.require_int("vocab_size", kVocabRange);
  decoder.max_position = reader.optional_int("max_position", kPositionRange);
  decoder.norm = static_cast<Norm>(reader.choice("norm", kNormNames));
  decoder.tied_embeddings = reader.bool_or("tied_embeddings", false);
  decoder.checkpoint_repeats_lm_head = reader.bool_or("checkpoint_repeats_lm_head", false);
  if (decoder.checkpoint_repeats_lm_head && !decoder.tied_embeddings) {
    reader.problem("checkpoint_repeats_lm_head", "checkpoint_repeats_lm_head needs tied_embeddings");
  }
  decoder.next_token_layers = reader.int_or("next_token_layers", 0, kNextTokenRange);
  decoder.lm_head_bias = reader.bool_or("lm_head_bias", false);
  decoder.position_embeddings = reader.int_or("position_embeddings", 0, {0, kPositionRange.max});
  decoder.dropout = reader.bool_or("dropout", false);
}

void read_norms(Reader& reader, Layer& layer) {
  layer.parallel_blocks = reader.bool_or("parallel_blocks", false);
  const std::int64_t norms = reader.int_or("norms_per_layer", 2, {1, 4});
  layer.norms = static_cast<int>(norms);
  if (norms == 3) reader.problem("norms_per_layer", "norms_per_layer must be 1, 2 or 4, not 3");
  if (norms == 1 && !layer.parallel_blocks) {
    reader.problem("norms_per_layer", "one norm per layer needs parallel_blocks: true, where it serves both blocks");
  }
  if (norms == 4 && layer.parallel_blocks) {
    reader.problem("norms_per_layer", "four norms per layer do not go with parallel_blocks");
  }
}

}  // namespace

Decoder parse_model_descriptor(const descriptor::Document& document, descriptor::Problems& problems) {
  Reader reader(document.root, problems, "the model");
  Decoder decoder;
  read_model(reader, decoder);
  const std::int64_t layers = reader.require_int("num_layers", kLayerRange);
  Layer layer;
  read_norms(reader, layer);
  AttentionPattern attention;
  FeedForwardPattern feed_forward;
  if (auto part = reader.optional_mapping("attention")) {
    attention = read_attention(*part, reader, decoder);
  } else {
    problems.add(document.root, "missing key 'attention' in the model");
  }
  if (auto part = reader.optional_mapping("feed_forward")) {
    const bool known = is_sound(reader, "num_layers", kLayerRange);
    feed_forward = read_feed_forward(*part, known ? layers : kLayerRange.max);
  } else {
    problems.add(document.root, "missing key 'feed_forward' in the model");
  }
  reader.finish();
  problems.throw_if_any();

  for (std::int64_t i = 0; i < layers; ++i) {
    layer.attention = attention.attention;
    const bool odd = i % 2 == 1;
    if (attention.window_layers == WindowPattern::even && odd) layer.attention.window.reset();
    if (attention.window_layers == WindowPattern::odd && !odd) layer.attention.window.reset();
    layer.feed_forward = feed_forward.feed_forward;
    if (i < feed_forward.first_dense_layers) {
      layer.feed_forward.experts.reset();
      layer.feed_forward.intermediate = feed_forward.dense_intermediate;
    }
    decoder.add_layer(layer);
  }
  check_size(decoder, reader);
  problems.throw_if_any();
  return decoder;
}

}  // namespace llmperf::model
