#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "catch.h"
#include "descriptor/bad_input.h"
#include "model/gguf/tensors.h"
#include "model/gguf_converted.h"
#include "model/gguf_models.h"
#include "model/model_file.h"
#include "model/parameters.h"
#include "model/weight_layout.h"

namespace llmperf::gguf_architectures_test {

using namespace llmperf::model;
using Catch::Matchers::Contains;

namespace {

std::vector<std::string> stems(const std::vector<GgufTensor>& tensors, int layer) {
  std::vector<std::string> names;
  for (const GgufTensor& tensor : tensors) {
    if (tensor.layer == layer) names.emplace_back(tensor.stem);
  }
  return names;
}
using Stems = std::vector<std::string>;

const GgufTensor& find(const std::vector<GgufTensor>& tensors, const std::string& name) {
  const auto found = std::ranges::find_if(tensors, [&](const GgufTensor& t) { return t.name() == name; });
  INFO(name);
  REQUIRE(found != tensors.end());
  return *found;
}

std::vector<GgufTensor> quantised(const std::string& model, const std::string& type, GgufEra era = GgufEra::v2026) {
  return quantised_tensors(described(model), *find_gguf_file_type(type), era);
}

std::string refusal(const ConvertedGguf& converted) {
  return bad_input([&] { parse_gguf_decoder(converted.file); });
}

}  // namespace

TEST_CASE("models of llama.cpp's newer architectures come back from the files that the converter would write") {
  for (const std::string& yaml : kGgufModels) {
    const Decoder original = as_converted(described(yaml));
    CAPTURE(original.name);
    const ConvertedGguf converted(original, {.split_kv_b = true, .next_token_layers = true});
    const Decoder read = parse_gguf_decoder(converted.file);
    CHECK(read.kinds == original.kinds);
    CHECK(read.layer_kinds == original.layer_kinds);
    CHECK(read.norm == original.norm);
    CHECK(read.tied_embeddings == original.tied_embeddings);
    CHECK(read.next_token_layers == original.next_token_layers);
    CHECK(read.encoder == original.encoder);
    const ParameterCounts a = count_parameters(read);
    const ParameterCounts b = count_parameters(original);
    CHECK(a.total == b.total);
    CHECK(a.checkpoint == b.checkpoint);
    CHECK(a.recurrent == b.recurrent);
    CHECK(gguf_architecture_name(read) == gguf_architecture_name(original));
  }
}

TEST_CASE("tensors of a file have the bytes of the layout made of them") {
  for (const std::string& yaml : kGgufModels) {
    const Decoder original = described(yaml);
    CAPTURE(original.name);
    for (const bool joined : {false, true}) {
      const ConvertedGguf converted(original, {.split_kv_b = true, .joined_delta_net = joined});
      const Decoder read = parse_gguf_decoder(converted.file);
      const std::vector<GgufTensor> tensors = match_tensors(read, converted.file);
      CHECK(tensors.size() == converted.file.tensors.size());
      const double bytes = tensor_bytes(tensors).value;
      CHECK(std::abs(weight_bytes(read, gguf_layout(read, tensors, "file")).value - bytes) <= 1e-9 * bytes + 1);
    }
  }
}

TEST_CASE("a delta net is one matrix in old files and two in new ones, with gates together or, in Qwen3.5, apart") {
  CHECK(stems(gguf_tensors(described(kQwen35)), 0) ==
        Stems{"attn_norm.weight", "attn_qkv.weight", "attn_gate.weight", "ssm_alpha.weight", "ssm_beta.weight",
              "ssm_conv1d.weight", "ssm_a", "ssm_dt.bias", "ssm_norm.weight", "ssm_out.weight",
              "post_attention_norm.weight", "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"});
  const std::vector<GgufTensor> next = gguf_tensors(described(kQwen3Next));
  CHECK(find(next, "blk.0.attn_qkv.weight").n == 2 * 2048 + 4096);
  CHECK(find(next, "blk.0.attn_gate.weight").n == 4096);
  CHECK(find(next, "blk.0.ssm_ba.weight").n == 2 * 32);
  CHECK(find(next, "blk.0.ssm_conv1d.weight").n == 4 * 8192);
  CHECK(find(next, "blk.3.attn_q.weight").n == 2 * 16 * 256);  // queries and gate
  const std::vector<GgufTensor> old = gguf_tensors(described(kQwen3Next), {.joined_delta_net = true});
  CHECK(find(old, "blk.0.ssm_in.weight").n == 12288);
}

TEST_CASE("recurrences have llama.cpp's names") {
  CHECK(stems(gguf_tensors(described(kKimiLinear)), 0) == Stems{"attn_norm.weight",
                                                                "attn_q.weight",
                                                                "attn_k.weight",
                                                                "attn_v.weight",
                                                                "ssm_beta.weight",
                                                                "ssm_conv1d_q.weight",
                                                                "ssm_conv1d_k.weight",
                                                                "ssm_conv1d_v.weight",
                                                                "ssm_f_a.weight",
                                                                "ssm_f_b.weight",
                                                                "ssm_g_a.weight",
                                                                "ssm_g_b.weight",
                                                                "ssm_a",
                                                                "ssm_dt.bias",
                                                                "ssm_norm.weight",
                                                                "attn_output.weight",
                                                                "ffn_norm.weight",
                                                                "ffn_gate.weight",
                                                                "ffn_up.weight",
                                                                "ffn_down.weight"});
  CHECK(stems(gguf_tensors(described(kLfm2)), 0) ==
        Stems{"attn_norm.weight", "shortconv.in_proj.weight", "shortconv.conv.weight", "shortconv.out_proj.weight",
              "ffn_norm.weight", "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"});
  CHECK(stems(gguf_tensors(described(kJamba)), 0) ==
        Stems{"attn_norm.weight", "ssm_in.weight", "ssm_conv1d.weight", "ssm_conv1d.bias", "ssm_x.weight",
              "ssm_dt.weight", "ssm_dt.bias", "ssm_a", "ssm_d", "ssm_dt_norm.weight", "ssm_b_norm.weight",
              "ssm_c_norm.weight", "ssm_out.weight", "ffn_norm.weight", "ffn_gate.weight", "ffn_up.weight",
              "ffn_down.weight"});
  CHECK(stems(gguf_tensors(described(kFalconH1)), 0) ==
        Stems{"attn_norm.weight", "attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight",
              "ssm_in.weight", "ssm_conv1d.weight", "ssm_conv1d.bias", "ssm_a", "ssm_d", "ssm_dt.bias",
              "ssm_out.weight", "ffn_norm", "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"});
  CHECK(stems(gguf_tensors(described(kNemotron3Nano)), 1) ==
        Stems{"attn_norm.weight", "ffn_gate_inp.weight", "exp_probs_b.bias", "ffn_up_exps.weight",
              "ffn_down_exps.weight", "ffn_up_shexp.weight", "ffn_down_shexp.weight"});
  CHECK(gguf_tensors(described(kLfm2)).back().name() == "token_embd_norm.weight");
}

TEST_CASE("norms are called by where llama.cpp has them") {
  const auto norms = [](const std::string& yaml) {
    Stems names;
    for (const std::string& stem : stems(gguf_tensors(described(yaml)), 1)) {
      if (stem.find("_norm") != std::string::npos && stem.ends_with(".weight")) names.push_back(stem);
    }
    return names;
  };
  CHECK(norms(kGlm45Air) == Stems{"attn_norm.weight", "post_attention_norm.weight"});
  CHECK(norms(kDbrx) == Stems{"attn_norm.weight", "attn_output_norm.weight"});
  CHECK(norms(kBert) == Stems{"attn_output_norm.weight", "layer_output_norm.weight"});
  CHECK(norms(kOlmo3) ==
        Stems{"attn_q_norm.weight", "attn_k_norm.weight", "post_attention_norm.weight", "post_ffw_norm.weight"});
  CHECK(norms(kGemma4Moe) == Stems{"attn_norm.weight", "attn_q_norm.weight", "attn_k_norm.weight",
                                   "post_attention_norm.weight", "ffn_norm.weight", "post_ffw_norm.weight",
                                   "pre_ffw_norm_2.weight", "post_ffw_norm_1.weight", "post_ffw_norm_2.weight"});
}

TEST_CASE("two model types have two architectures each") {
  CHECK(gguf_architecture_name(described(kNemotronNano9b)) == "nemotron_h");
  CHECK(gguf_architecture_name(described(kNemotron3Nano)) == "nemotron_h_moe");
  Decoder ling = load_decoder("ling-1t");
  CHECK(gguf_architecture_name(ling) == "bailingmoe2");
  for (Layer& layer : ling.kinds) layer.attention.qk_norm = QkNorm::none;
  CHECK(gguf_architecture_name(ling) == "bailingmoe");
}

TEST_CASE("an encoder has no output and no pooler") {
  const std::vector<GgufTensor> tensors = gguf_tensors(described(kBert));
  CHECK(find(tensors, "token_types.weight").type == GgmlType::f32);
  CHECK(find(tensors, "token_embd_norm.bias").n == 768);
  CHECK(std::ranges::none_of(
      tensors, [](const GgufTensor& t) { return t.stem.starts_with("output") || t.stem.starts_with("cls"); }));
  ConvertedGguf converted(described(kBert));
  converted.add_tensor("cls.weight", {768, 768, 1, 1}, GgmlType::f16);
  converted.add_tensor("cls.bias", {768, 1, 1, 1}, GgmlType::f32);
  const std::vector<GgufTensor> matched = match_tensors(parse_gguf_decoder(converted.file), converted.file);
  CHECK(matched.size() == tensors.size() + 2);
  CHECK(find(matched, "cls.weight").bytes().value == 768 * 768 * 2);
}

TEST_CASE("tables and norms of recurrences may have two dimensions") {
  ConvertedGguf converted(described(kNemotron3Nano));
  converted.tensor("blk.0.ssm_conv1d.weight").shape = {4, 4096 + 2 * 8 * 128, 1, 1};
  converted.tensor("blk.0.ssm_a").shape = {1, 64, 1, 1};
  converted.tensor("blk.0.ssm_norm.weight").shape = {512, 8, 1, 1};
  const Decoder model = parse_gguf_decoder(converted.file);
  CHECK(match_tensors(model, converted.file).size() == converted.file.tensors.size());
  converted.tensor("blk.0.ssm_norm.weight").shape = {512, 4, 1, 1};
  CHECK_THAT(bad_input([&] { match_tensors(model, converted.file); }),
             Contains("tensor 'blk.0.ssm_norm.weight' is [512, 4], expected [4096]"));
}

TEST_CASE("layers for further tokens are in the file and not loaded, whether the file has their tensors or not") {
  const Decoder model = described(kGlm45Air);
  const std::vector<GgufTensor> tensors = quantised(kGlm45Air, "q8_0");
  CHECK(find(tensors, "blk.46.nextn.eh_proj.weight").elements() == 2 * 4096 * 4096);
  CHECK(find(tensors, "blk.46.ffn_down_exps.weight").count == 128);
  const std::vector<GgufTensor> loaded = [&] {
    std::vector<GgufTensor> all = tensors;
    std::erase_if(all, [](const GgufTensor& t) { return t.layer == 46; });
    return all;
  }();
  CHECK(gguf_layout(model, tensors, "q8_0").extra.value == gguf_layout(model, loaded, "q8_0").extra.value);
  CHECK(weight_bytes(model, gguf_layout(model, tensors, "q8_0")).value == tensor_bytes(loaded).value);

  ConvertedGguf converted(model, {.next_token_layers = true});
  CHECK(match_tensors(parse_gguf_decoder(converted.file), converted.file).size() == loaded.size());
  std::erase_if(converted.file.tensors, [](const GgufTensorInfo& t) { return t.name.starts_with("blk.46."); });
  const Decoder trunk = parse_gguf_decoder(converted.file);
  CHECK(trunk.num_layers() == 46);
  CHECK(trunk.next_token_layers == 0);
  CHECK(match_tensors(trunk, converted.file).size() == loaded.size());
  // DeepSeek-V3's is dropped by the converter.
  CHECK(
      std::ranges::none_of(quantised_tensors(load_decoder("deepseek-v3"), *find_gguf_file_type("q8_0"), GgufEra::v2026),
                           [](const GgufTensor& t) { return t.layer >= 61; }));
}

TEST_CASE("projections of layers that use an earlier layer's keys are loaded all the same") {
  const Decoder model = described(kGemma3n);
  Decoder own = model;
  for (Layer& layer : own.kinds) layer.attention.shares_cache = layer.attention.unused_kv = false;
  const ConvertedGguf converted(model);
  CHECK(converted.file.tensors.size() == ConvertedGguf(own).file.tensors.size());
  const Decoder read = parse_gguf_decoder(converted.file);
  CHECK(read.kinds == model.kinds);
  const std::vector<GgufTensor> tensors = match_tensors(read, converted.file);
  CHECK(tensors.size() == converted.file.tensors.size());
  CHECK(find(tensors, "blk.9.attn_k.weight").bytes().value == 2048 * 512 * 2);
}

TEST_CASE("value matrices count among those there are, whatever their layers") {
  // Of 27 layers the 20 of KDA have one: the first two, every third of the middle and the last three get more bits.
  const std::vector<GgufTensor> kimi = quantised(kKimiLinear, "q4_k_m");
  const std::array<int, 6> layers = {0, 1, 2, 4, 5, 25};
  const std::array<GgmlType, 6> types = {GgmlType::q6_k, GgmlType::q6_k, GgmlType::q4_k,
                                         GgmlType::q4_k, GgmlType::q6_k, GgmlType::q6_k};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    CHECK(find(kimi, "blk." + std::to_string(layers[i]) + ".attn_v.weight").type == types[i]);
  }
  // Rows of 128 do not fit blocks of 256.
  CHECK(find(kimi, "blk.0.ssm_f_b.weight").type == GgmlType::q5_0);
  CHECK(find(kimi, "blk.0.ssm_f_a.weight").type == GgmlType::q4_k);
  CHECK(find(kimi, "blk.0.ssm_conv1d_q.weight").type == GgmlType::f32);
  // In 2026 a delta net's attn_qkv counts with them: layer 3 is the fourth of 64.
  const std::vector<GgufTensor> qwen = quantised(kQwen35, "q4_k_m");
  CHECK(find(qwen, "blk.3.attn_v.weight").type == GgmlType::q6_k);
  CHECK(find(qwen, "blk.8.attn_qkv.weight").type == GgmlType::q4_k);
  CHECK(find(qwen, "blk.10.attn_qkv.weight").type == GgmlType::q6_k);
  CHECK(find(qwen, "blk.8.attn_gate.weight").type == GgmlType::q4_k);
  CHECK(find(qwen, "blk.8.ssm_alpha.weight").type == GgmlType::q4_k);
}

TEST_CASE("sizes and numbers of tensors are those that llama.cpp printed for published files") {
  const auto gib = [](const std::string& model, const std::string& type, GgufEra era) {
    return fmt::format("{:.2f}", tensor_bytes(quantised(model, type, era)).value / kGiB);
  };
  // lmstudio-ai/lmstudio-bug-tracker#1266: 313 F32 and 48 F16 tensors, 391 of Q4_K, 55 of Q6_K; 45.08 GiB. The 48 are
  // the gates of the shared experts, which the converter has left in F32 since.
  CHECK(gib(kQwen3Next, "q4_k_m", GgufEra::v2025) == "45.08");
  std::map<std::string_view, int> counts;
  for (const GgufTensor& tensor : quantised(kQwen3Next, "q4_k_m", GgufEra::v2025)) ++counts[info(tensor.type).name];
  CHECK(counts == std::map<std::string_view, int>{{"F32", 313 + 48}, {"Q4_K", 391}, {"Q6_K", 55}});
  // The built-in models are the same.
  const auto built_in = [](const char* name, const char* type, GgufEra era) {
    const auto tensors = quantised_tensors(load_decoder(name), *find_gguf_file_type(type), era);
    return fmt::format("{:.2f}", tensor_bytes(tensors).value / kGiB);
  };
  CHECK(built_in("qwen3-next-80b-a3b", "q4_k_m", GgufEra::v2025) == "45.08");
  CHECK(built_in("lfm2-8b-a1b", "q4_0", GgufEra::v2026) == "4.41");
  CHECK(built_in("kimi-linear-48b-a3b", "q2_k", GgufEra::v2025) == "16.78");
  CHECK(gib(kLfm2Moe, "q4_0", GgufEra::v2026) == "4.41");      // ggml-org/llama.cpp#19848
  CHECK(gib(kKimiLinear, "q2_k", GgufEra::v2025) == "16.78");  // ggml-org/llama.cpp#17592
}

TEST_CASE("MLPs of a model without experts are counted, against all layers") {
  // Three in six layers: i = 0, 1, 2 and n = 6, of which i = 2 gets more bits. Rows of 15680 do not fit blocks of 256.
  const std::vector<GgufTensor> tensors = quantised(kNemotronNano9b, "q4_k_m");
  CHECK(find(tensors, "blk.1.ffn_down.weight").type == GgmlType::q5_0);
  CHECK(find(tensors, "blk.3.ffn_down.weight").type == GgmlType::q5_0);
  CHECK(find(tensors, "blk.5.ffn_down.weight").type == GgmlType::q8_0);
  CHECK(find(tensors, "blk.0.ssm_out.weight").type == GgmlType::q4_k);
  CHECK(find(tensors, "blk.0.ssm_conv1d.weight").type == GgmlType::f32);
}

TEST_CASE("tables of the layers' embeddings are quantised as the output is, small matrices of streams not at all") {
  const std::vector<GgufTensor> tensors = quantised(kGemma3n, "q4_k_m");
  CHECK(find(tensors, "per_layer_token_embd.weight").type == GgmlType::q6_k);
  CHECK(find(tensors, "token_embd.weight").type == GgmlType::q6_k);
  for (const std::string stem : {"altup_proj.weight", "altup_unembd_proj.weight", "per_layer_model_proj.weight",
                                 "blk.0.altup_router.weight", "blk.0.laurel_l.weight", "blk.0.laurel_r.weight"}) {
    CHECK(find(tensors, stem).type == GgmlType::f16);
  }
  CHECK(find(tensors, "blk.0.inp_gate.weight").type == GgmlType::q4_k);
  CHECK(find(tensors, "altup_proj.weight").elements() == 3 * 2048 * 2048);
}

TEST_CASE("Falcon has rules of its own for its output, down matrices and attention's output") {
  const std::vector<GgufTensor> medium = quantised(kFalcon40b, "q4_k_m");
  CHECK(find(medium, "output.weight").type == GgmlType::q8_0);
  CHECK(find(medium, "blk.2.ffn_down.weight").type == GgmlType::q6_k);  // of 60 the first three
  CHECK(find(medium, "blk.3.ffn_down.weight").type == GgmlType::q5_k);  // of the first seven
  CHECK(find(medium, "blk.7.ffn_down.weight").type == GgmlType::q4_k);
  CHECK(find(medium, "blk.9.ffn_down.weight").type == GgmlType::q5_k);  // every third between
  const std::vector<GgufTensor> small = quantised(kFalcon40b, "q3_k_m");
  CHECK(find(small, "blk.0.attn_output.weight").type == GgmlType::q3_k);
  CHECK(find(small, "blk.7.ffn_down.weight").type == GgmlType::q3_k);
  CHECK(find(quantised(kFalcon40b, "q3_k_l"), "blk.0.attn_output.weight").type == GgmlType::q4_k);
}

TEST_CASE("files of MXFP4 have it in every matrix of three dimensions") {
  const std::vector<GgufTensor> tensors = quantised(kGlm52, "mxfp4_moe");
  CHECK(find(tensors, "blk.3.ffn_down_exps.weight").type == GgmlType::mxfp4);
  CHECK(find(tensors, "blk.3.attn_k_b.weight").type == GgmlType::mxfp4);
  CHECK(find(tensors, "blk.3.attn_output.weight").type == GgmlType::q8_0);
  CHECK(find(tensors, "output.weight").type == GgmlType::q8_0);
}

TEST_CASE("what contradicts itself in a file of layers of several kinds is reported where it stands") {
  const auto with = [](const std::string& model, std::string_view key, GgufValue value) {
    ConvertedGguf converted(described(model));
    converted.set_arch(key, std::move(value));
    return refusal(converted);
  };
  const auto layers = [](std::int64_t count, double value) {
    return GgufArray{.length = count, .numbers = std::vector<double>(static_cast<std::size_t>(count), value)};
  };
  CHECK_THAT(with(kJamba, "attention.head_count_kv", layers(31, 8)),
             Contains("byte ") && Contains("'jamba.attention.head_count_kv' lists 31 layers, the model has 32"));
  CHECK_THAT(with(kNemotronSuper, "attention.head_count", std::int64_t{0}),
             Contains("no layer has attention heads, nor is one recurrent"));
  CHECK_THAT(with(kJamba, "attention.head_count_kv", layers(32, 5)),
             Contains("attention.head_count (32) is not divisible by attention.head_count_kv (5)"));
  CHECK_THAT(with(kFalconH1, "attention.head_count_kv", std::int64_t{0}),
             Contains("layer 0 has no key and value heads: in this architecture every layer has attention"));
  CHECK_THAT(with(kGraniteSmall, "ssm.inner_size", std::int64_t{8200}),
             Contains("ssm.inner_size (8200) is not divisible by ssm.time_step_rank (128)"));
  CHECK_THAT(with(kNemotron3Nano, "ssm.group_count", std::int64_t{7}),
             Contains("ssm.time_step_rank (64) is not divisible by ssm.group_count (7)"));
  CHECK_THAT(with(kLfm2, "shortconv.l_cache", std::int64_t{0}), Contains("'lfm2.shortconv.l_cache' is 0"));
  CHECK_THAT(with(kQwen3Next, "full_attention_interval", std::int64_t{0}),
             Contains("'qwen3next.full_attention_interval' is 0, must be from 1"));
  CHECK_THAT(with(kQwen35, "nextn_predict_layers", std::int64_t{17}), Contains("must be from 0 to 16"));
  CHECK_THAT(with(kGpt2, "nextn_predict_layers", std::int64_t{12}), Contains("leaves none of the 12 layers"));
  CHECK_THAT(with(kLfm2Moe, "leading_dense_block_count", std::int64_t{3}),
             Contains("layer 2 has a router (ffn_gate_inp.weight), leading_dense_block_count is 3"));
  ConvertedGguf converted(described(kKimiLinear));
  converted.erase_arch("kda.head_dim");
  CHECK_THAT(refusal(converted), Contains("missing key 'kimi-linear.kda.head_dim'"));
}

TEST_CASE("an architecture that is nearly one of llama.cpp's is told so") {
  ConvertedGguf converted(described(kQwen3Next));
  converted.set("general.architecture", std::string("qwen3nex"));
  CHECK_THAT(refusal(converted), Contains("did you mean 'qwen3next'"));
}

TEST_CASE("llama.cpp runs some architectures with their windows, others without") {
  for (const std::string& yaml : {kGemma3, kGemma4Moe, kOlmo3, kCommandR7b, kLlama4, kMimoV2}) {
    CHECK(gguf_keeps_windows(described(yaml)));
  }
  CHECK(gguf_keeps_windows(load_decoder("gemma-2-2b")));
  CHECK(gguf_keeps_windows(load_decoder("gpt-oss-20b")));
  CHECK_FALSE(gguf_keeps_windows(load_decoder("mistral-7b-v0.1")));
  CHECK_FALSE(gguf_keeps_windows(described(kStarcoder2)));
}

}  // namespace llmperf::gguf_architectures_test
