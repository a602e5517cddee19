// GGUF headers as models: metadata and tensors put together from the input. Whatever is accepted has parameters, a
// layout, and the bytes of its tensors; whatever is refused is explained.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "model/gguf/tensors.h"
#include "model/weight_layout.h"

namespace {

using namespace llmperf;
using model::GgufValue;

class Input {
 public:
  explicit Input(std::string_view text) : text_(text) {}
  bool empty() const { return at_ == text_.size(); }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : ::byte(text_, at_++); }
  template <class T, std::size_t n>
  const T& pick(const std::array<T, n>& values) {
    return values[byte() % n];
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

constexpr std::array<const char*, 34> kArchitectures = {
    "llama",     "qwen",    "qwen2",   "qwen2moe",    "qwen3",     "qwen3moe", "gemma",   "gemma2",     "phi2",
    "phi3",      "chatglm", "glm4",    "gpt-oss",     "deepseek2", "gemma3",   "gemma3n", "gemma4",     "qwen3next",
    "qwen35moe", "glm4moe", "glm-dsa", "kimi-linear", "mimo2",     "mamba",    "jamba",   "nemotron_h", "granitehybrid",
    "falcon-h1", "lfm2",    "llama4",  "olmo2",       "deci",      "gpt2",     "bert"};
// Most models need the first six.
constexpr std::array<const char*, 44> kKeys = {"block_count",
                                               "embedding_length",
                                               "feed_forward_length",
                                               "attention.head_count",
                                               "attention.layer_norm_rms_epsilon",
                                               "context_length",
                                               "attention.head_count_kv",
                                               "attention.key_length",
                                               "attention.value_length",
                                               "attention.layer_norm_epsilon",
                                               "attention.sliding_window",
                                               "rope.dimension_count",
                                               "expert_count",
                                               "expert_used_count",
                                               "expert_group_count",
                                               "expert_group_used_count",
                                               "expert_feed_forward_length",
                                               "expert_shared_count",
                                               "expert_shared_feed_forward_length",
                                               "leading_dense_block_count",
                                               "attention.q_lora_rank",
                                               "attention.kv_lora_rank",
                                               "attention.key_length_mla",
                                               "attention.value_length_mla",
                                               "vocab_size",
                                               "nextn_predict_layers",
                                               "full_attention_interval",
                                               "attention.recurrent_layers",
                                               "attention.sliding_window_pattern",
                                               "attention.shared_kv_layers",
                                               "attention.key_length_swa",
                                               "attention.indexer.head_count",
                                               "attention.indexer.key_length",
                                               "attention.indexer.top_k",
                                               "ssm.conv_kernel",
                                               "ssm.inner_size",
                                               "ssm.state_size",
                                               "ssm.time_step_rank",
                                               "ssm.group_count",
                                               "kda.head_dim",
                                               "shortconv.l_cache",
                                               "embedding_length_per_layer_input",
                                               "altup.num_inputs",
                                               "rope.dimension_count_swa"};
constexpr std::array<std::int64_t, 16> kNumbers = {1,   2,   4, 8,  16, 32,     64,        128,
                                                   256, 512, 0, -1, 3,  70'000, 1LL << 40, INT64_MAX};
constexpr std::array<const char*, 30> kStems = {"token_embd.weight",
                                                "output.weight",
                                                "blk.0.attn_q.bias",
                                                "blk.0.attn_qkv.weight",
                                                "blk.0.attn_q_norm.weight",
                                                "blk.0.ffn_gate_inp.weight",
                                                "blk.1.ffn_gate_exps.weight",
                                                "blk.0.attn_sinks.weight",
                                                "blk.0.ffn_gate.weight",
                                                "blk.0.exp_probs_b.bias",
                                                "blk.0.attn_kv_b.weight",
                                                "blk.0.attn_k_b.weight",
                                                "blk.0.ffn_up_shexp.weight",
                                                "blk.0.ffn_gate_inp_shexp.weight",
                                                "blk.0.attn_output.bias",
                                                "rope_freqs.weight",
                                                "blk.0.attn_norm.weight",
                                                "blk.0.post_attention_norm.weight",
                                                "blk.0.post_ffw_norm.weight",
                                                "blk.0.attn_gate.weight",
                                                "blk.0.attn_k.weight",
                                                "blk.0.ffn_up.weight",
                                                "blk.0.ffn_latent_down.weight",
                                                "blk.0.laurel_l.weight",
                                                "blk.0.ssm_g_b.weight",
                                                "blk.0.ssm_g_a.weight",
                                                "blk.0.ssm_dt_norm.weight",
                                                "blk.1.nextn.eh_proj.weight",
                                                "position_embd.weight",
                                                "per_layer_token_embd.weight"};

GgufValue value(Input& in) {
  switch (in.byte() % 8) {
    case 0: return 1e-5;
    case 1: return std::string("text");
    case 2: {
      model::GgufArray array;
      array.length = in.byte() % 5;
      for (std::int64_t i = 0; i < array.length; ++i) array.numbers.push_back(static_cast<double>(in.pick(kNumbers)));
      return array;
    }
    default: return in.pick(kNumbers);
  }
}

model::GgufFile file_from(Input& in) {
  model::GgufFile file;
  file.path = "fuzz.gguf";
  file.shards = {file.path};
  const std::string arch = in.pick(kArchitectures);
  const auto add = [&](std::string key, GgufValue v) {
    const auto offset = static_cast<std::int64_t>(file.metadata.size()) * 8 + 24;
    file.metadata.push_back({.key = std::move(key), .value = std::move(v), .offset = offset});
  };
  add("general.architecture", arch);
  add("tokenizer.ggml.tokens", model::GgufArray{.length = 100, .numbers = {}});
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    const bool usual = i < 6;
    if ((in.byte() % 8 != 0) == usual) add(arch + "." + kKeys[i], value(in));
  }
  for (const char* stem : kStems) {
    if (in.byte() % 2 == 0) continue;
    file.tensors.push_back({.name = stem, .shape = {64, in.pick(kNumbers), 1, 1}, .dimensions = 2});
    // A file of no elements, or of more than 2^63 - 1, is refused when it is read.
    std::int64_t& rows = file.tensors.back().shape[1];
    rows = std::clamp<std::int64_t>(rows, 1, std::int64_t{1} << 56);
  }
  return file;
}

// The tensors a converter would write for the model, a few of them changed.
void add_tensors(Input& in, const model::Decoder& decoder, model::GgufFile& file) {
  constexpr std::array<model::GgmlType, 5> kTypes = {model::GgmlType::f32, model::GgmlType::f16, model::GgmlType::q8_0,
                                                     model::GgmlType::q4_k, model::GgmlType::q6_k};
  file.tensors.clear();
  for (const model::GgufTensor& t : model::gguf_tensors(decoder, {.split_kv_b = in.byte() % 2 == 0,
                                                                 .joined_delta_net = in.byte() % 2 == 0,
                                                                 .next_token_layers = in.byte() % 2 == 0})) {
    model::GgufTensorInfo info{.name = t.name(), .shape = {t.k, t.n, t.count, 1}, .dimensions = 3, .type = t.type};
    if (t.is_vector()) info.shape = {t.n, t.count, 1, 1};
    if (!in.empty()) {
      const std::uint8_t change = in.byte();
      const auto row = static_cast<std::int64_t>(info.shape[0]);
      if (change % 4 == 1 && !t.is_vector()) {
        const model::GgmlType type = in.pick(kTypes);
        if (row % model::info(type).block == 0) info.type = type;
      }
      if (change == 8) info.shape[1] += 1;
      if (change == 16) continue;
    }
    file.tensors.push_back(std::move(info));
  }
}

void check_refusal(const Error& error) {
  require(error.kind() == ErrorKind::bad_input && !error.diagnostics().empty() && error.diagnostics().size() <= 21);
  for (const Diagnostic& d : error.diagnostics()) require(!d.message.empty() && !d.where.file.empty());
}

}  // namespace

void fuzz_gguf_model(std::string_view text) {
  Input in(text);
  model::GgufFile file = file_from(in);
  try {
    const model::Decoder decoder = model::parse_gguf_decoder(file);
    require(model::count_parameters(decoder).total > 0);
    if (decoder.num_layers() > 300) return;  // slow to list, and no different
    add_tensors(in, decoder, file);
    const std::vector<model::GgufTensor> tensors = model::match_tensors(decoder, file);
    const model::WeightLayout layout = model::gguf_layout(decoder, tensors, "fuzz");
    const double bytes = model::weight_bytes(decoder, layout).value;
    require(bytes > 0 && std::abs(bytes - model::tensor_bytes(tensors).value) <= 1e-9 * bytes + 1);
  } catch (const Error& error) {
    check_refusal(error);
  }
}
