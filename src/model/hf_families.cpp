// Keys that only one architecture's config has, and that mean the same for all of its layers.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "model/hf_config.h"
#include "model/reading.h"

namespace llmperf::model {

using descriptor::Reader;

// The config counts heads times kv_channels, and says whether there is no bias but that of the fused q, k, v matrix.
void read_qwen_keys(ConfigReader& config) {
  Reader& reader = config.reader;
  const Attention& attention = config.layer.attention;
  if (attention.heads * attention.head_dim != config.decoder.hidden && is_sound(reader, "hidden_size", kHiddenRange) &&
      is_sound(reader, "num_attention_heads", kHeadRange)) {
    reader.problem("hidden_size", fmt::format("hidden_size ({}) is not num_attention_heads ({}) times kv_channels ({})",
                                              config.decoder.hidden, attention.heads, attention.head_dim));
  }
  const bool biases = !reader.bool_or("no_bias", true);
  config.layer.attention.o_bias = config.layer.feed_forward.bias = biases;
}

// Keys of Qwen3-Coder-480B's own file: other names, or parts that this architecture has never had.
void read_qwen3_moe_keys(ConfigReader& config) {
  if (config.reader.bool_or("qkv_bias", false)) config.layer.attention.qkv_bias = true;
  if (config.reader.int_or("shared_expert_intermediate_size", 0, {0, kWidthRange.max}) != 0) {
    config.reader.problem("shared_expert_intermediate_size", "shared experts are not supported for this architecture");
  }
}

void read_chatglm_keys(ConfigReader& config) {
  Reader& reader = config.reader;
  Attention& attention = config.layer.attention;
  if (!reader.bool_or("multi_query_attention", false)) attention.kv_heads = attention.heads;
  attention.qkv_bias = attention.qkv_bias || attention.o_bias;
  config.decoder.norm = reader.bool_or("rmsnorm", true) ? Norm::rms : Norm::layer;
  if (reader.find("pre_seq_len") != nullptr) reader.problem("pre_seq_len", "prefix tuning is not supported");
  if (reader.int_or("quantization_bit", 0, {0, 64}) != 0) {
    reader.problem("quantization_bit", "quantization_bit is not supported", "remove it and choose with --weights");
  }
}

// One width for all shared experts, or as many as are counted of a routed one's.
void read_bailing_keys(ConfigReader& config) {
  Reader& reader = config.reader;
  Experts& experts = *config.layer.feed_forward.experts;
  const std::int64_t width = reader.int_or("moe_shared_expert_intermediate_size", experts.intermediate, kWidthRange);
  experts.shared_intermediate = width * reader.int_or("num_shared_experts", 0, {0, kExpertRange.max});
}

// A number for all layers, or a list of one for each, which are the same in every published file.
std::int64_t one_number(Reader& reader, std::string_view key, descriptor::IntRange range) {
  const descriptor::Node* node = reader.find(key);
  if (node == nullptr || node->kind == descriptor::Node::Kind::scalar) return reader.require_int(key, range);
  const std::vector<std::int64_t> numbers = reader.optional_ints(key, range);
  if (numbers.empty()) return range.min;
  if (std::ranges::count(numbers, numbers.front()) != std::ssize(numbers)) {
    reader.problem(key, fmt::format("{} that differ by layer are not supported", key));
  }
  return numbers.front();
}

void read_hunyuan_keys(ConfigReader& config) {
  Reader& reader = config.reader;
  Experts experts;
  experts.count = one_number(reader, "num_experts", kExpertRange);
  experts.per_token = one_number(reader, "moe_topk", kExpertRange);
  check_experts(reader, "moe_topk", experts);
  experts.intermediate = one_number(reader, "moe_intermediate_size", kWidthRange);
  experts.shared_intermediate = experts.intermediate * one_number(reader, "num_shared_expert", {0, kExpertRange.max});
  config.layer.feed_forward.experts = experts;
  config.layer.feed_forward.intermediate = 0;
}

// The first architecture has one KV head and one norm for both blocks; the second groups of heads and two norms.
void read_falcon_keys(ConfigReader& config) {
  Reader& reader = config.reader;
  Layer& layer = config.layer;
  const bool grouped = reader.bool_or("new_decoder_architecture", false);
  const bool one_head = reader.bool_or("multi_query", true);
  if (!grouped) layer.attention.kv_heads = one_head ? 1 : layer.attention.heads;
  layer.parallel_blocks = grouped || reader.bool_or("parallel_attn", true);
  layer.norms = grouped && reader.int_or("num_ln_in_parallel_attn", 2, {1, 2}) == 2 ? 2 : layer.parallel_blocks ? 1 : 2;
}

void read_mpt_keys(ConfigReader& config) {
  Reader& reader = config.reader;
  Layer& layer = config.layer;
  layer.feed_forward.intermediate = config.decoder.hidden * reader.int_or("expansion_ratio", 4, {1, 64});
  const bool biased = !reader.bool_or("no_bias", true);
  layer.attention.qkv_bias = layer.attention.o_bias = layer.feed_forward.bias = biased;
  if (biased) config.decoder.norm = Norm::layer;
  auto attention = reader.optional_mapping("attn_config");
  if (!attention) return;
  layer.attention.kv_heads = attention->int_or("kv_n_heads", layer.attention.heads, kHeadRange);
  if (!attention->bool_or("alibi", false)) {
    attention->problem("alibi", "positions other than ALiBi are not supported for this architecture");
  }
  for (const char* other : {"qk_ln", "prefix_lm"}) {
    if (attention->bool_or(other, false)) attention->problem(other, fmt::format("{}: true is not supported", other));
  }
  attention->ignore(
      "alibi_bias_max attn_impl attn_pdrop attn_type attn_uses_sequence_id clip_qkv softmax_scale "
      "model_type rope rope_theta");
  attention->finish();
}

void read_bert_keys(ConfigReader& config) {
  config.decoder.type_embeddings = config.reader.int_or("type_vocab_size", 2, {0, kVocabRange.max});
  config.decoder.pooler = true;
  config.decoder.final_norm = false;
}

// The MLP is two thirds of the width that is said, rounded up.
void read_lfm2_keys(ConfigReader& config) {
  Reader& reader = config.reader;
  const bool usual = reader.has("intermediate_size") && !reader.has("block_ff_dim");
  std::int64_t width = reader.require_int(usual ? "intermediate_size" : "block_ff_dim", kWidthRange);
  reader.ignore("intermediate_size");
  if (reader.bool_or("block_auto_adjust_ff_dim", true)) {
    const double factor = reader.optional_double("block_ffn_dim_multiplier", 0, 64).value_or(1);
    const std::int64_t multiple = reader.int_or("block_multiple_of", 256, kWidthRange);
    const std::int64_t two_thirds = 2 * width / 3;
    width = static_cast<std::int64_t>(factor * static_cast<double>(two_thirds));
    width = std::max<std::int64_t>(1, (width + multiple - 1) / multiple) * multiple;
  }
  config.layer.feed_forward.intermediate = width;
}

void read_bigcode_keys(ConfigReader& config) {
  if (config.reader.bool_or("multi_query", true)) config.layer.attention.kv_heads = 1;
}

// Both blocks read the residual stream, each behind a norm of its own.
void read_neox_keys(ConfigReader& config) {
  config.layer.parallel_blocks = config.reader.bool_or("use_parallel_residual", true);
}

}  // namespace llmperf::model
