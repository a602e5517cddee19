#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "model/gguf/tensors.h"
#include "model/model_file.h"
#include "model/parameters.h"

namespace llmperf::gguf_tensors_test {

using namespace llmperf::model;

namespace {

std::vector<std::string> stems_of_layer(const Decoder& model, int layer) {
  std::vector<std::string> stems;
  for (const GgufTensor& tensor : gguf_tensors(model)) {
    if (tensor.layer == layer) stems.emplace_back(tensor.stem);
  }
  return stems;
}

const GgufTensor& find(const std::vector<GgufTensor>& tensors, const std::string& name) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const GgufTensor& t) { return t.name() == name; });
  INFO(name);
  REQUIRE(found != tensors.end());
  return *found;
}

using Stems = std::vector<std::string>;

}  // namespace

TEST_CASE("the tensors of a Llama layer have llama.cpp's names") {
  CHECK(stems_of_layer(load_decoder("llama-2-7b"), 3) == Stems{"attn_norm.weight", "attn_q.weight", "attn_k.weight",
                                                               "attn_v.weight", "attn_output.weight", "ffn_norm.weight",
                                                               "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"});
}

TEST_CASE("Qwen2 has biases on queries, keys and values, Qwen3 norms on queries and keys") {
  CHECK(stems_of_layer(load_decoder("qwen1.5-7b"), 0) == Stems{"attn_norm.weight", "attn_q.weight", "attn_q.bias",
                                                               "attn_k.weight", "attn_k.bias", "attn_v.weight",
                                                               "attn_v.bias", "attn_output.weight", "ffn_norm.weight",
                                                               "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"});
  CHECK(stems_of_layer(load_decoder("qwen3-8b"), 0) ==
        Stems{"attn_norm.weight", "attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight",
              "attn_q_norm.weight", "attn_k_norm.weight", "ffn_norm.weight", "ffn_gate.weight", "ffn_up.weight",
              "ffn_down.weight"});
}

TEST_CASE("checkpoints with fused matrices keep them: attn_qkv, and ffn_up with twice the rows") {
  CHECK(stems_of_layer(load_decoder("phi-3-mini"), 0) == Stems{"attn_norm.weight", "attn_qkv.weight",
                                                               "attn_output.weight", "ffn_norm.weight", "ffn_up.weight",
                                                               "ffn_down.weight"});
  const std::vector<GgufTensor> tensors = gguf_tensors(load_decoder("chatglm3-6b"));
  const GgufTensor& qkv = find(tensors, "blk.5.attn_qkv.weight");
  CHECK(qkv.n == 4096 + 2 * 2 * 128);
  CHECK(qkv.k == 4096);
  CHECK(find(tensors, "blk.5.attn_qkv.bias").n == 4608);
  CHECK(find(tensors, "blk.5.ffn_up.weight").n == 2 * 13696);
}

TEST_CASE("Gemma 2 has four norms a layer, and gpt-oss a post-attention norm, sinks and biases on its experts") {
  CHECK(stems_of_layer(load_decoder("gemma-2-2b"), 0) ==
        Stems{"attn_norm.weight", "attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight",
              "post_attention_norm.weight", "ffn_norm.weight", "post_ffw_norm.weight", "ffn_gate.weight",
              "ffn_up.weight", "ffn_down.weight"});
  CHECK(stems_of_layer(load_decoder("gpt-oss-20b"), 0) ==
        Stems{"attn_norm.weight", "attn_q.weight", "attn_q.bias", "attn_k.weight", "attn_k.bias", "attn_v.weight",
              "attn_v.bias", "attn_output.weight", "attn_output.bias", "attn_sinks.weight",
              "post_attention_norm.weight", "ffn_gate_inp.weight", "ffn_gate_inp.bias", "ffn_gate_exps.weight",
              "ffn_gate_exps.bias", "ffn_up_exps.weight", "ffn_up_exps.bias", "ffn_down_exps.weight",
              "ffn_down_exps.bias"});
}

TEST_CASE("latent attention and its experts, with kv_b whole or split by head") {
  const Decoder model = load_decoder("deepseek-v3");
  CHECK(stems_of_layer(model, 3) ==
        Stems{"attn_norm.weight", "attn_q_a.weight", "attn_q_a_norm.weight", "attn_q_b.weight", "attn_kv_a_mqa.weight",
              "attn_kv_a_norm.weight", "attn_kv_b.weight", "attn_output.weight", "ffn_norm.weight",
              "ffn_gate_inp.weight", "exp_probs_b.bias", "ffn_gate_exps.weight", "ffn_up_exps.weight",
              "ffn_down_exps.weight", "ffn_gate_shexp.weight", "ffn_up_shexp.weight", "ffn_down_shexp.weight"});
  CHECK(find(gguf_tensors(model), "blk.2.ffn_down.weight").k == 18432);  // one of the dense layers

  const std::vector<GgufTensor> split = gguf_tensors(model, {.split_kv_b = true});
  const GgufTensor& k_b = find(split, "blk.0.attn_k_b.weight");
  CHECK((k_b.k == 128 && k_b.n == 512 && k_b.count == 128));
  const GgufTensor& v_b = find(split, "blk.0.attn_v_b.weight");
  CHECK((v_b.k == 512 && v_b.n == 128 && v_b.count == 128));
  CHECK(tensor_bytes(split).value == tensor_bytes(gguf_tensors(model)).value);
}

TEST_CASE("a parallel block has one norm, and LayerNorm, matrices and the output have biases") {
  const std::vector<GgufTensor> tensors = gguf_tensors(load_decoder("phi-2"));
  CHECK(stems_of_layer(load_decoder("phi-2"), 0) ==
        Stems{"attn_norm.weight", "attn_norm.bias", "attn_q.weight", "attn_q.bias", "attn_k.weight", "attn_k.bias",
              "attn_v.weight", "attn_v.bias", "attn_output.weight", "attn_output.bias", "ffn_up.weight", "ffn_up.bias",
              "ffn_down.weight", "ffn_down.bias"});
  CHECK(find(tensors, "output_norm.bias").n == 2560);
  CHECK(find(tensors, "output.bias").n == 51200);
}

TEST_CASE("the embedding comes first, the output last, and a tied model has one only where its checkpoint repeats it") {
  const auto ends = [](const char* name) {
    const std::vector<GgufTensor> tensors = gguf_tensors(load_decoder(name));
    CHECK(tensors.front().name() == "token_embd.weight");
    return tensors.back().name();
  };
  CHECK(ends("llama-2-7b") == "output.weight");
  CHECK(ends("llama-3.2-1b") == "output_norm.weight");
  CHECK(ends("qwen3-0.6b") == "output.weight");
}

TEST_CASE("norms, biases and routers are F32, everything else F16") {
  for (const char* name : {"qwen1.5-moe-a2.7b", "gpt-oss-20b"}) {
    for (const GgufTensor& tensor : gguf_tensors(load_decoder(name))) {
      INFO(tensor.name());
      const bool small = tensor.is_vector() || tensor.stem.find("gate_inp") != std::string_view::npos;
      CHECK((tensor.type == GgmlType::f32) == small);
      CHECK((tensor.type == GgmlType::f16) == !small);
    }
  }
}

TEST_CASE("for every built-in model the tensors have distinct names and hold what the checkpoint does") {
  for (const std::string& name : decoder_names()) {
    INFO(name);
    Decoder model = load_decoder(name);
    model.next_token_layers = 0;  // not asked for
    model.pooler = false;         // the converter drops it
    std::int64_t elements = 0;
    std::set<std::string> names;
    const std::vector<GgufTensor> tensors = gguf_tensors(model);
    for (const GgufTensor& tensor : tensors) {
      elements += tensor.elements();
      names.insert(tensor.name());
    }
    CHECK(elements == count_parameters(model).checkpoint - count_parameters(model).vision);
    CHECK(names.size() == tensors.size());
  }
}

TEST_CASE("a file is its header, its descriptions and its data, each padded to 32 bytes") {
  const std::vector<GgufTensor> tensors = {
      // 8 + 17 for the name, 4 + 2 * 8 for the shape, 4 for the type, 8 for the offset: 57 bytes; 2 * 3 * 2 of data
      {.stem = "token_embd.weight", .role = Role::token_embedding, .n = 3, .k = 2, .type = GgmlType::f16},
      // 8 + 22, 4 + 8, 4, 8: 54 bytes; 4 * 10 of data
      {.stem = "attn_norm.weight", .role = Role::vector, .layer = 0, .n = 10},
  };
  CHECK(tensors[1].name() == "blk.0.attn_norm.weight");
  // 24 + 5 + 57 + 54 = 140, padded to 160; 12 padded to 32; 40 padded to 64
  CHECK(file_bytes(tensors, 5).value == 160 + 32 + 64);
}

TEST_CASE("the vocabulary is about 6 MB for Qwen and 0.7 MB for Llama 2") {
  CHECK(static_cast<double>(estimated_metadata_bytes(load_decoder("qwen1.5-7b"))) == Approx(5.85e6).epsilon(0.02));
  CHECK(static_cast<double>(estimated_metadata_bytes(load_decoder("llama-2-7b"))) == Approx(0.72e6).epsilon(0.02));
}

}  // namespace llmperf::gguf_tensors_test
