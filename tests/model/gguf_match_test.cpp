#include <algorithm>

#include "catch.h"
#include "descriptor/bad_input.h"
#include "model/gguf/tensors.h"
#include "model/gguf_converted.h"

namespace llmperf::gguf_match_test {

using namespace llmperf::model;
using Catch::Matchers::Contains;

namespace {

const GgufTensor& find(const std::vector<GgufTensor>& tensors, std::string_view name) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const GgufTensor& t) { return t.name() == name; });
  INFO(name);
  REQUIRE(found != tensors.end());
  return *found;
}

std::string refusal(const ConvertedGguf& converted, const Decoder& model) {
  return bad_input([&] { match_tensors(model, converted.file); });
}

// Takes experts apart as Mixtral files did until April 2024.
void split_experts(ConvertedGguf& converted, int layer, const std::string& matrix) {
  const std::string base = "blk." + std::to_string(layer) + "." + matrix;
  const GgufTensorInfo merged = converted.tensor(base + "_exps.weight");
  converted.erase_tensor(merged.name);
  for (std::int64_t expert = 0; expert < merged.shape[2]; ++expert) {
    converted.add_tensor(base + "." + std::to_string(expert) + ".weight", {merged.shape[0], merged.shape[1], 1, 1},
                         merged.type);
  }
}

}  // namespace

TEST_CASE("every tensor has the type that the file gives it") {
  const Decoder model = load_decoder("qwen1.5-0.5b");
  ConvertedGguf converted(model);
  converted.tensor("blk.7.ffn_down.weight").type = GgmlType::q6_k;
  converted.tensor("output.weight").type = GgmlType::q8_0;
  const std::vector<GgufTensor> tensors = match_tensors(model, converted.file);
  CHECK(find(tensors, "blk.7.ffn_down.weight").type == GgmlType::q6_k);
  CHECK(find(tensors, "output.weight").type == GgmlType::q8_0);
  CHECK(find(tensors, "blk.6.ffn_down.weight").type == GgmlType::f16);
}

TEST_CASE("missing, misshapen and unexpected tensors are reported together") {
  const Decoder model = load_decoder("qwen1.5-0.5b");  // 1024 wide, 24 layers
  ConvertedGguf converted(model);
  converted.erase_tensor("blk.3.attn_q.bias");
  converted.tensor("blk.5.attn_k.weight").shape[1] = 512;
  converted.tensor("blk.6.attn_v.weight").type = GgmlType::i32;
  converted.tensor("blk.7.attn_norm.weight").type = GgmlType::q8_0;
  converted.add_tensor("rope_freqs.weight", {64, 1, 1, 1}, GgmlType::q4_0);
  converted.add_tensor("blk.24.attn_q.weight", {1024, 1024, 1, 1}, GgmlType::f16);
  converted.add_tensor("cls.output.weight", {1024, 2, 1, 1}, GgmlType::f16);
  const std::string message = refusal(converted, model);
  CHECK_THAT(message, Contains("/models/converted.gguf: missing tensor blk.3.attn_q.bias [1024]"));
  CHECK_THAT(message, Contains("tensor 'blk.5.attn_k.weight' is [1024, 512], expected [1024, 1024]"));
  CHECK_THAT(message, Contains("tensor 'blk.6.attn_v.weight' is of type I32, which does not hold weights"));
  CHECK_THAT(message, Contains("tensor 'blk.7.attn_norm.weight' is of type Q8_0: llama.cpp does not quantise norms"));
  CHECK_THAT(message, Contains("tensor 'rope_freqs.weight' is of type Q4_0"));
  CHECK_THAT(message, Contains("unexpected tensor 'blk.24.attn_q.weight' [1024, 1024]"));
  CHECK_THAT(message, Contains("unexpected tensor 'cls.output.weight' [1024, 2]"));
  CHECK_THAT(message, Contains("byte "));
}

TEST_CASE("problems of a split model name the shard they are in") {
  const Decoder model = load_decoder("qwen1.5-0.5b");
  ConvertedGguf converted(model);
  converted.file.shards = {"a-00001-of-00002.gguf", "a-00002-of-00002.gguf"};
  GgufTensorInfo& tensor = converted.tensor("output_norm.weight");
  tensor.shard = 1;
  tensor.offset = 77;
  tensor.shape[0] = 1000;
  CHECK_THAT(refusal(converted, model), Contains("a-00002-of-00002.gguf: byte 77: tensor 'output_norm.weight'"));
}

TEST_CASE("position tables are listed behind the tensors of the model") {
  const Decoder model = load_decoder("llama-3.1-8b");
  ConvertedGguf converted(model);
  converted.add_tensor("rope_freqs.weight", {64, 1, 1, 1}, GgmlType::f32);
  converted.add_tensor("blk.2.rope_freqs.weight", {64, 1, 1, 1}, GgmlType::f32);
  const std::vector<GgufTensor> tensors = match_tensors(model, converted.file);
  REQUIRE(tensors.size() == gguf_tensors(model).size() + 2);
  const GgufTensor& outer = tensors[tensors.size() - 2];
  CHECK(outer.name() == "rope_freqs.weight");
  CHECK(outer.is_vector());
  CHECK(outer.bytes().value == 256);
  CHECK(tensors.back().name() == "blk.2.rope_freqs.weight");
}

TEST_CASE("experts stored one by one are put together when they have one type") {
  const Decoder model = load_decoder("mixtral-8x7b");
  ConvertedGguf converted(model);
  for (const std::string matrix : {"ffn_gate", "ffn_up", "ffn_down"}) split_experts(converted, 4, matrix);
  for (int expert = 0; expert < 8; ++expert) {
    converted.tensor("blk.4.ffn_down." + std::to_string(expert) + ".weight").type = GgmlType::q5_0;
  }
  CHECK(parse_gguf_decoder(converted.file).kinds == model.kinds);
  const std::vector<GgufTensor> tensors = match_tensors(model, converted.file);
  const GgufTensor& down = find(tensors, "blk.4.ffn_down_exps.weight");
  CHECK(down.type == GgmlType::q5_0);
  CHECK(down.count == 8);

  converted.tensor("blk.4.ffn_down.6.weight").type = GgmlType::q6_k;
  CHECK_THAT(refusal(converted, model), Contains("tensor 'blk.4.ffn_down.6.weight' is of type Q6_K, the layer's other "
                                                 "experts of type Q5_0"));
  converted.erase_tensor("blk.4.ffn_down.6.weight");
  CHECK_THAT(refusal(converted, model), Contains("missing tensor blk.4.ffn_down.6.weight"));
}

TEST_CASE("gate and up matrices of experts may share a tensor") {
  const Decoder model = load_decoder("qwen3-30b-a3b");  // 128 experts of width 768, 2048 wide
  ConvertedGguf converted(model);
  converted.erase_tensor("blk.0.ffn_gate_exps.weight");
  converted.erase_tensor("blk.0.ffn_up_exps.weight");
  converted.add_tensor("blk.0.ffn_gate_up_exps.weight", {2048, 1536, 128, 1}, GgmlType::q4_k);
  const std::vector<GgufTensor> tensors = match_tensors(model, converted.file);
  CHECK(find(tensors, "blk.0.ffn_gate_exps.weight").type == GgmlType::q4_k);
  CHECK(find(tensors, "blk.0.ffn_up_exps.weight").type == GgmlType::q4_k);
  CHECK(find(tensors, "blk.0.ffn_up_exps.weight").n == 768);
  converted.tensor("blk.0.ffn_gate_up_exps.weight").shape[1] = 768;
  CHECK_THAT(refusal(converted, model), Contains("is [2048, 768, 128], expected [2048, 1536, 128]"));
}

TEST_CASE("of latent attention stored whole and in halves the whole counts") {
  const Decoder model = load_decoder("deepseek-v2-lite");
  ConvertedGguf converted(model);
  for (int layer = 0; layer < 27; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    converted.add_tensor(prefix + "attn_k_b.weight", {128, 512, 16, 1}, GgmlType::q8_0);
    converted.add_tensor(prefix + "attn_v_b.weight", {512, 128, 16, 1}, GgmlType::q8_0);
  }
  const std::vector<GgufTensor> tensors = match_tensors(model, converted.file);
  CHECK(tensors.size() == gguf_tensors(model).size());
  CHECK(find(tensors, "blk.26.attn_kv_b.weight").type == GgmlType::f16);
}

}  // namespace llmperf::gguf_match_test
