// Quantised checkpoints that NVIDIA publishes, of which config.json says the shape and hf_quant_config.json how it is
// stored: bytes of all their files.
//
//   Qwen3-235B-A22B-NVFP4         134 GB, 125 GiB on disk
//   DeepSeek-R1-0528-NVFP4-v2     413,340,567,567 B, the layer for the next token in bf16 with its copies of embedding
//   and
//                                 lm_head; DeepSeek-V3.1-NVFP4 is stored alike
//   Llama-3.1-70B-Instruct-FP8    67.70 GiB as loaded by vLLM
#include <string>

#include "catch.h"
#include "descriptor/node.h"
#include "model/parameters.h"
#include "model/weight_layout.h"
#include "model_files.h"

namespace llmperf::checkpoint_size_test {

using namespace llmperf::model;

namespace {

// `shape`: what config.json says; `excluded`: entries of exclude_modules.
double checkpoint_bytes(const std::string& shape, const std::string& algorithm, const std::string& excluded) {
  const descriptor::Document config = descriptor::parse_json(shape, "config.json");
  const descriptor::Document stored = descriptor::parse_json(
      R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": ")" + algorithm +
          R"(", "kv_cache_quant_algo": "FP8", "group_size": 16, "exclude_modules": [)" + excluded + "]}}",
      "hf_quant_config.json");
  const Decoder model = parse_decoder(config, &stored);
  CHECK(model.default_kv == "fp8");
  const ParameterCounts p = count_parameters(model);
  const double beside = 2 * static_cast<double>(p.checkpoint - p.total);  // not quantised
  return weight_bytes(model, checkpoint_layout(model, Dtype::bf16)).value + beside;
}

std::string per_layer(int layers, const std::vector<std::string>& modules) {
  std::string list;
  for (int i = 0; i < layers; ++i) {
    for (const std::string& module : modules) {
      list += (list.empty() ? "" : ", ") + ("\"model.layers." + std::to_string(i) + "." + module + "\"");
    }
  }
  return list;
}

}  // namespace

TEST_CASE("NVFP4 of Qwen3-235B-A22B: routers, embedding and lm_head stay in bf16") {
  const double bytes = checkpoint_bytes(
      R"({"model_type": "qwen3_moe", "hidden_size": 4096, "num_hidden_layers": 94, "num_attention_heads": 64,
          "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "intermediate_size": 12288,
          "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 1536, "tie_word_embeddings": false})",
      "NVFP4", per_layer(94, {"mlp.gate"}) + ", \"lm_head\"");
  CHECK(bytes == Approx(134e9).epsilon(0.01));
}

TEST_CASE("NVFP4 of DeepSeek-V3: projections into the latents and the layer for the next token stay in bf16") {
  const double bytes = checkpoint_bytes(
      R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128,
          "vocab_size": 129280, "intermediate_size": 18432, "n_routed_experts": 256, "num_experts_per_tok": 8,
          "moe_intermediate_size": 2048, "n_shared_experts": 1, "first_k_dense_replace": 3, "n_group": 8,
          "topk_group": 4, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
          "v_head_dim": 128, "num_nextn_predict_layers": 1})",
      "NVFP4",
      per_layer(61,
                {"self_attn.q_a_proj", "self_attn.q_b_proj", "self_attn.kv_a_proj_with_mqa", "self_attn.kv_b_proj"}) +
          ", \"lm_head\", \"model.layers.61*\"");
  CHECK(bytes == Approx(413'340'567'567).epsilon(0.001));
}

TEST_CASE("FP8 of Llama-3.1-70B: matrices of the layers alone") {
  const double bytes = checkpoint_bytes(
      R"({"model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64,
          "num_key_value_heads": 8, "vocab_size": 128256, "intermediate_size": 28672})",
      "FP8", "\"lm_head\"");
  CHECK(bytes == Approx(67.6979 * 1024 * 1024 * 1024).epsilon(0.001));
}

}  // namespace llmperf::checkpoint_size_test
