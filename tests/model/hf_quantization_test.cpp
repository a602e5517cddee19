// Checkpoints are as large as what their files say of each matrix. The small model of these tests has, in each of its
// two layers, q and o of 64 x 64, k and v of 32 x 64, gate and up of 128 x 64, down of 64 x 128, and two norms of 64.
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "catch.h"
#include "descriptor/node.h"
#include "model/model_file.h"
#include "model/parameters.h"
#include "model/weight_layout.h"
#include "model_files.h"

namespace llmperf::hf_quantization_test {

using namespace llmperf::model;

namespace {

descriptor::Document document(const std::string& text, const char* file = "config.json") {
  return descriptor::parse_json(text, file, descriptor::kConfigRules);
}

std::string small_model(const std::string& more = "") {
  return R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "vocab_size": 100, "intermediate_size": 128)" +
         more + "}";
}
Decoder quantised(const std::string& quantization) {
  return parse_decoder(document(small_model(R"(, "quantization_config": {)" + quantization + "}")));
}
Decoder beside(const std::string& quantization) {
  const auto other =
      document(R"({"producer": {"name": "modelopt"}, "quantization": {)" + quantization + "}}", "hf_quant_config.json");
  return parse_decoder(document(small_model()), &other);
}

std::vector<Diagnostic> problems(const std::string& quantization) {
  try {
    quantised(quantization);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    return error.diagnostics();
  }
  return {};
}

double bytes(const Decoder& model) { return weight_bytes(model, checkpoint_layout(model, Dtype::bf16)).value; }

constexpr double kAttention = 2 * 64 * 64 + 2 * 32 * 64;  // weights of a layer
constexpr double kMlp = 3 * 64 * 128;
constexpr double kOuter = 2 * 100 * 64;             // embedding and lm_head
constexpr double kVectors = (2 * 2 * 64 + 64) * 2;  // bytes of the norms
constexpr double kNvfp4 = 4.5 / 8;                  // bytes per weight without the scale of the matrix

}  // namespace

TEST_CASE("hf_quant_config.json says how NVIDIA's checkpoints are stored") {
  const Decoder fp8 = beside(R"("quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"])");
  CHECK(fp8.default_weights == "fp8");
  CHECK(fp8.default_kv == "fp8");
  CHECK(fp8.mixture.empty());
  CHECK(bytes(fp8) == 2 * (kAttention + kMlp) + 2 * kOuter + kVectors);

  const Decoder nvfp4 = beside(R"("quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"])");
  CHECK(nvfp4.default_kv.empty());
  // seven matrices in each layer
  CHECK(bytes(nvfp4) == 2 * (kAttention + kMlp) * kNvfp4 + 2 * 7 * 4 + 2 * kOuter + kVectors);
}

TEST_CASE("what a list of ignored modules names stays in 16 bits") {
  const std::string attention = R"("quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head", )";
  const double wide_attention = 2 * (2 * kAttention + kMlp * kNvfp4) + 2 * 3 * 4 + 2 * kOuter + kVectors;
  CHECK(bytes(quantised(attention + R"("model.layers.0.self_attn*", "model.layers.1.self_attn*"])")) == wide_attention);
  CHECK(bytes(quantised(attention + R"("*self_attn*"])")) == wide_attention);
  CHECK(bytes(quantised(attention + R"("self_attn"])")) == wide_attention);
  CHECK(bytes(quantised(attention + R"("model.language_model.layers.*.self_attn"])")) == wide_attention);
  CHECK(bytes(quantised(attention + R"("re:.*self_attn.*"])")) == wide_attention);
  const Decoder mixed = quantised(attention + R"("self_attn"])");
  CHECK(mixed.kinds.size() == 1);
  CHECK(checkpoint_layout(mixed, Dtype::bf16).name == "nvfp4+bf16");
  CHECK(checkpoint_layout(mixed, Dtype::fp16).groups[0][Role::o].compute == Dtype::fp16);
}

TEST_CASE("layers that are stored differently are kinds of their own") {
  const Decoder model = quantised(R"("quant_method": "modelopt", "quant_algo": "NVFP4",
                                     "ignore": ["lm_head", "model.layers.0*", "model.layers.1.self_attn.o_proj"])");
  REQUIRE(model.kinds.size() == 2);
  const WeightLayout layout = checkpoint_layout(model, Dtype::bf16);
  CHECK(layout.groups[0][Role::up].bits == 16);
  CHECK(layout.groups[1][Role::up].bits == 4);
  CHECK(layout.groups[1][Role::o].bits == 16);
  CHECK(bytes(model) ==
        2 * (kAttention + kMlp) + (kAttention - 64 * 64 + kMlp) * kNvfp4 + 6 * 4 + 2 * 64 * 64 + 2 * kOuter + kVectors);
  // Another scheme is that scheme, whatever the checkpoint mixes.
  CHECK(weight_bytes(model, parse_weight_scheme("bf16")).value ==
        2.0 * static_cast<double>(count_parameters(model).total));
}

TEST_CASE("lm_head is quantised where a list that could name it does not") {
  const double layers = 2 * (kAttention + kMlp) + kVectors;
  CHECK(bytes(quantised(R"("quant_algo": "FP8", "ignore": ["lm_head"])")) == layers + 2 * kOuter);
  CHECK(bytes(quantised(R"("quant_algo": "FP8", "ignore": [])")) == layers + 1.5 * kOuter);
  CHECK(bytes(quantised(R"("quant_algo": "FP8")")) == layers + 2 * kOuter);
  CHECK(bytes(quantised(R"("quant_method": "fp8")")) == layers + 2 * kOuter);
}

TEST_CASE("mixed precision is what quantized_layers says of each module") {
  const Decoder model = beside(R"("quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": null, "quantized_layers": {
      "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
      "model.layers.0.mlp": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
      "model.layers.1.mlp": {"quant_algo": "W4A16_NVFP4", "group_size": 16}})");
  CHECK(bytes(model) == 64 * 64 + 2 * (2 * kAttention - 64 * 64) + 2 * (kMlp * kNvfp4 + 3 * 4) + 2 * kOuter + kVectors);
  CHECK(checkpoint_layout(model, Dtype::bf16).name == "nvfp4+fp8+bf16");
}

TEST_CASE("MXFP8 is a byte per weight and a byte of scale per 32, alone or among others") {
  const Decoder mixed = beside(R"("quant_algo": "MIXED_PRECISION", "quantized_layers": {
      "model.layers.0.self_attn": {"quant_algo": "MXFP8", "group_size": 32},
      "model.layers.1.self_attn": {"quant_algo": "MXFP8"}})");
  CHECK(bytes(mixed) == 2 * (kAttention * 8.25 / 8 + 2 * kMlp) + 2 * kOuter + kVectors);
  const Decoder all = quantised(R"("quant_method": "modelopt", "quantization": {"quant_algo": "MXFP8",
      "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]})");
  CHECK(all.default_weights == "mxfp8");
  CHECK(all.default_kv == "fp8");
}

TEST_CASE("an fp8 checkpoint says how its cache is scaled, which is of fp8 then") {
  const Decoder model =
      quantised(R"("quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["lm_head"],
      "kv_cache_scheme": "static")");
  CHECK(model.default_weights == "fp8");
  CHECK(model.default_kv == "fp8");
  CHECK(problems(R"("quant_method": "gptq", "bits": 4, "group_size": 128, "kv_cache_scheme": "static")").size() == 1);
}

TEST_CASE("groups that contradict their algorithm are refused") {
  const auto groups = [](const char* bits) {
    return problems(R"("quant_method": "modelopt", "quant_algo": "FP8", "config_groups": {"group_0": {"weights":
        {"num_bits": )" +
                    std::string(bits) + R"(, "type": "float"}, "targets": ["Linear"]}})");
  };
  CHECK(groups("8").empty());
  for (const char* bits : {"3", "4", "16", "0"}) CHECK(groups(bits).size() == 1);
  CHECK_THAT(groups("3").at(0).message,
             Catch::Matchers::Contains("num_bits is 3, and weights of quant_algo FP8 have 8"));
}

TEST_CASE("MLX says bits and groups, under one key or two, and of some modules others") {
  const std::string four = R"("group_size": 64, "bits": 4)";
  const auto read = [](const std::string& more) { return parse_decoder(document(small_model(more))); };
  const Decoder once = read(R"(, "quantization": {)" + four + "}");
  CHECK(once.default_weights == "mlx-q4");
  CHECK(read(R"(, "quantization": {)" + four + R"(}, "quantization_config": {)" + four + "}").default_weights ==
        "mlx-q4");
  // 4 bits and 32 per group of 64, embedding and lm_head too.
  CHECK(bytes(once) == (2 * (kAttention + kMlp) + kOuter) * 4.5 / 8 + kVectors);
  const Decoder mixed = read(R"(, "quantization": {)" + four + R"(, "mode": "affine", "model.layers.0.mlp.down_proj":
      {"group_size": 32, "bits": 8}, "lm_head": {"bits": 8, "group_size": 64}})");
  CHECK(bytes(mixed) ==
        (2 * (kAttention + kMlp) - 64 * 128 + 100 * 64) * 4.5 / 8 + 64 * 128 * 9.0 / 8 + 100 * 64 * 8.5 / 8 + kVectors);
  CHECK_THROWS_AS(read(R"(, "quantization": {"group_size": 64, "bits": 7})"), Error);
  CHECK_THROWS_AS(read(R"(, "quantization": {"group_size": 64, "bits": 4, "mode": "mxfp4"})"), Error);
}

TEST_CASE("compressed-tensors says width, type and groups") {
  const auto group = [](const std::string& weights, const std::string& more = "") {
    return R"("quant_method": "compressed-tensors", "format": "x", "ignore": ["lm_head"], "config_groups": {"group_0":
             {"targets": ["Linear"], "weights": {)" +
           weights + "}" + more + "}}";
  };
  const auto scheme = [&](const std::string& weights, const std::string& more = "") {
    return quantised(group(weights, more)).default_weights;
  };
  CHECK(scheme(R"("num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": false)") == "fp8");
  CHECK(scheme(R"("num_bits": 8, "type": "float", "strategy": "channel")") == "fp8-channel");
  CHECK(scheme(R"("num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128])") ==
        "fp8-block128");
  CHECK(scheme(R"("num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16)") == "nvfp4");
  CHECK(scheme(R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": true)") ==
        "w4a16-g32-sym");
  CHECK(scheme(R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": false)") ==
        "w4a16-g128");
  CHECK(scheme(R"("num_bits": 8, "type": "int", "strategy": "channel")") == "int8");
  CHECK(scheme(R"("num_bits": 8, "type": "int", "strategy": "channel")",
               R"(, "input_activations": {"num_bits": 8, "type": "int"})") == "w8a8");
  // 4-bit floats in groups of 32 are on every linear layer here, not on experts alone.
  const Decoder mxfp4 = quantised(group(R"("num_bits": 4, "type": "float", "strategy": "group", "group_size": 32)"));
  CHECK(bytes(mxfp4) == 2 * (kAttention + kMlp) * 4.25 / 8 + 2 * kOuter + kVectors);
}

TEST_CASE("groups of compressed-tensors may be for some modules only") {
  const Decoder model = quantised(R"("quant_method": "compressed-tensors", "config_groups": {
      "group_0": {"targets": ["re:.*mlp.*"], "weights": {"num_bits": 4, "type": "float", "group_size": 16}},
      "group_1": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"}}}, "ignore": ["lm_head"],
      "kv_cache_scheme": {"num_bits": 8, "type": "float", "strategy": "tensor"})");
  CHECK(bytes(model) == 2 * (kAttention + kMlp * kNvfp4 + 3 * 4) + 2 * kOuter + kVectors);
  CHECK(model.default_kv == "fp8");
}

TEST_CASE("bitsandbytes and fbgemm have schemes of their own") {
  CHECK(quantised(R"("quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0)").default_weights == "fp8-channel");
  const std::string four = R"("quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4")";
  CHECK(quantised(four).default_weights == "nf4");
  CHECK(quantised(four + R"(, "bnb_4bit_use_double_quant": true)").default_weights == "nf4-double");
  CHECK(quantised(four + R"(, "llm_int8_skip_modules": ["lm_head"])").mixture.empty());
  CHECK(quantised(R"("quant_method": "bitsandbytes", "load_in_8bit": true)").default_weights == "int8");
}

TEST_CASE("experts may be listed one by one, all of a layer") {
  const auto moe = [](const std::string& ignored) {
    return parse_decoder(document(R"({"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, "intermediate_size": 128,
        "num_local_experts": 2, "num_experts_per_tok": 1, "quantization_config": {"quant_algo": "NVFP4",
        "ignore": ["lm_head", "*self_attn*", "*gate", )" +
                                  ignored + "]}}"));
  };
  std::string list;
  for (const char* matrix : {"0.w1", "0.w2", "0.w3", "1.w1", "1.w2", "1.w3"}) {
    list += std::string(list.empty() ? "" : ", ") + "\"model.layers.0.block_sparse_moe.experts." + matrix + "\"";
  }
  const Decoder model = moe(list);
  CHECK(model.kinds.size() == 2);
  CHECK(model.mixture[0].empty());
  CHECK(model.mixture[1].size() == 3);
  CHECK_THROWS_AS(moe(list.substr(0, list.find(", "))), Error);
  CHECK_THROWS_AS(moe(R"("model.layers.0.mlp.experts.1.*")"), Error);
  CHECK(moe(R"("model.layers.0.mlp.experts")").mixture[0].empty());
}

TEST_CASE(
    "entries for what is outside the decoder are passed over, others that fit nothing are refused where they stand") {
  CHECK(quantised(R"("quant_algo": "NVFP4", "ignore": ["lm_head", "mtp*", "model.layers.2*", "model.visual.blocks.0*",
      "re:vision_tower.*", "model.layers.0.input_layernorm", "model.embed_tokens"])")
            .mixture.empty());
  const auto unknown = problems("\"quant_algo\": \"NVFP4\",\n\"ignore\": [\"lm_head\",\n \"model.layers.0.mixer*\"]");
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0].where.line == 4);
  CHECK(unknown[0].where.column == 2);
  CHECK_THAT(unknown[0].message, Catch::Matchers::Contains("'model.layers.0.mixer*' names nothing"));
  CHECK_THAT(problems(R"-("quant_algo": "NVFP4", "ignore": ["re:(?!x)"])-").at(0).message,
             Catch::Matchers::Contains("pattern 're:(?!x)' is not supported"));
}

TEST_CASE("what the files say and is not known is refused") {
  const auto refused = [](const std::string& quantization, const std::string& why) {
    INFO(why);
    const std::vector<Diagnostic> found = problems(quantization);
    REQUIRE_FALSE(found.empty());
    CHECK_THAT(found[0].message, Catch::Matchers::Contains(why));
    CHECK(found[0].where.line > 0);
  };
  refused(R"("quant_algo": "NVFP5")", "'NVFP5' is not supported");
  refused(R"("quant_algo": "NVFP4", "group_size": 32)", "groups of 16");
  refused(R"("quant_algo": "FP8", "kv_cache_quant_algo": "NVFP4")", "'nvfp4' is not supported");
  refused(R"("quant_algo": "FP8", "svd_rank": 32)", "unknown key 'svd_rank'");
  refused(R"("quant_method": "bitsandbytes")", "load_in_4bit");
  refused(R"("quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["Linear"],
             "weights": {"num_bits": 2, "type": "int", "group_size": 32}}})",
          "2 'int' bits");
  refused(R"("quant_method": "compressed-tensors", "sparsity_config": {"format": "sparse-24-bitmask"})", "sparse");
  refused(R"("quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["Linear"],
             "output_activations": {"num_bits": 8}}})",
          "quantised outputs");
  std::string many = R"("quant_algo": "FP8", "ignore": ["lm_head")";
  for (int i = 0; i < 20'001; ++i) many += ",\"*q\"";
  refused(many + "]", "more than 20000 patterns for 2 layers");
}

TEST_CASE("a folder is read with the file beside config.json") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "llmperf-hf-quantization-test" / "Small-FP8";
  fs::create_directories(folder);
  const auto write = [&](const char* name, const std::string& text) { std::ofstream(folder / name) << text; };
  write("config.json", small_model());
  CHECK(load_model(folder.string()).decoder.default_weights.empty());
  write("hf_quant_config.json", R"({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}})");
  for (const std::string& path : {folder.string(), folder.string() + "/", (folder / "config.json").string()}) {
    INFO(path);
    const Decoder model = load_model(path).decoder;
    CHECK(model.name == "Small-FP8");
    CHECK(model.default_weights == "fp8");
    CHECK(model.default_kv == "fp8");
  }
  // What config.json says itself counts; the cache is only said beside it.
  write("config.json", small_model(R"(, "quantization_config": {"quant_method": "fbgemm_fp8"})"));
  CHECK(load_model(folder.string()).decoder.default_weights == "fp8-channel");
  CHECK(load_model(folder.string()).decoder.default_kv == "fp8");
  write("hf_quant_config.json", R"({"quantization": {"quant_algo": "X"}})");
  write("config.json", small_model());
  try {
    load_model(folder.string());
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), Catch::Matchers::Contains("hf_quant_config.json:1:33: quant_algo 'X' is not supported"));
  }
  fs::remove_all(folder.parent_path());
  CHECK_THROWS_AS(load_model(folder.string()), Error);
  fs::create_directories(folder);
  CHECK_THROWS_AS(load_model(folder.string()), Error);  // without a config.json
  fs::remove_all(folder.parent_path());
}

TEST_CASE("the language model of a nested config is read, with what stands outside of it") {
  const std::string text = small_model(R"(, "tie_word_embeddings": false)");
  const auto nested = [&](const std::string& key, const std::string& outer) {
    return parse_decoder(document(R"({"model_type": "some_vl", "architectures": ["SomeForConditionalGeneration"],
        "vision_config": {"depth": 27}, ")" +
                                  key + "\": " + text + outer + "}"));
  };
  const Decoder plain = parse_decoder(document(text));
  for (const char* key : {"text_config", "llm_config"}) {
    const Decoder model =
        nested(key, R"(, "quantization_config": {"quant_method": "fp8"}, "tie_word_embeddings": true)");
    CHECK(model.kinds == plain.kinds);
    CHECK(model.architecture == "llama");
    CHECK_FALSE(model.tied_embeddings);  // its own key counts
    CHECK(model.default_weights == "fp8");
    CHECK_FALSE(model.notes.empty());
  }
  const auto untied = document(R"({"tie_word_embeddings": true, "text_config": )" + small_model() + "}");
  CHECK(parse_decoder(untied).tied_embeddings);
}

TEST_CASE("names of architectures that are read under another name") {
  // Kimi K2 is DeepSeek-V3's layer with 384 experts, 64 heads and one dense layer: 1,026,408,232,448 parameters.
  const Decoder kimi = parse_decoder(document(R"({"model_type": "kimi_k2", "hidden_size": 7168, "num_hidden_layers": 61,
      "vocab_size": 163840, "num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 1536,
      "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 384, "n_shared_experts": 1,
      "num_experts_per_tok": 8, "first_k_dense_replace": 1, "tie_word_embeddings": false})"));
  CHECK(count_parameters(kimi).total == 1026408232448);
  // The language model of Qwen3-VL-8B is Qwen3-8B's.
  const Decoder qwen = parse_decoder(document(R"({"model_type": "qwen3_vl", "text_config": {"model_type":
      "qwen3_vl_text", "hidden_size": 4096, "num_hidden_layers": 36, "vocab_size": 151936, "num_attention_heads": 32,
      "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288}, "tie_word_embeddings": false})"));
  CHECK(count_parameters(qwen).total == count_parameters(load_decoder("qwen3-8b")).total);
}

TEST_CASE("keys that other files of a known architecture have") {
  const auto moe = [](const std::string& more) {
    return parse_decoder(document(R"({"model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 1,
        "vocab_size": 100, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "num_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 32)" +
                                  more + "}"));
  };
  const std::int64_t plain = count_parameters(moe("")).total;
  CHECK(count_parameters(moe(R"(, "qkv_bias": false, "use_qk_norm": true, "shared_expert_intermediate_size": 0)"))
            .total == plain);
  CHECK(count_parameters(moe(R"(, "qkv_bias": true)")).total == plain + 64 + 32 + 32);
  CHECK_THROWS_AS(moe(R"(, "shared_expert_intermediate_size": 32)"), Error);
  CHECK_THROWS_AS(moe(R"(, "use_qk_norm": false)"), Error);
  CHECK(
      count_parameters(parse_decoder(document(small_model(R"(, "is_llama_config": true, "rope_interleaved": false)"))))
          .total == count_parameters(parse_decoder(document(small_model()))).total);
}

TEST_CASE("published NVIDIA checkpoints have the bytes of their matrices") {
  // Dimensions and lists in the form of nvidia/DeepSeek-V3.1-NVFP4, Qwen3-235B-A22B-NVFP4 and
  // Llama-3.1-70B-Instruct-FP8.
  const auto checkpoint = [](const std::string& config, const std::string& quantization) {
    const auto other = document(R"({"quantization": {)" + quantization + "}}", "hf_quant_config.json");
    return parse_decoder(document("{" + config + "}"), &other);
  };
  const Decoder deepseek = checkpoint(
      R"("model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61, "vocab_size": 129280,
         "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512,
         "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "intermediate_size": 18432,
         "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
         "first_k_dense_replace": 3, "tie_word_embeddings": false)",
      R"("quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16, "exclude_modules": ["lm_head",
         "*.self_attn.q_a_proj", "*.self_attn.q_b_proj", "*.kv_a_proj_with_mqa", "*.kv_b_proj", "model.layers.61*"])");
  // In 16 bits: q_a 1536 x 7168, q_b 24576 x 1536, kv_a 576 x 7168, kv_b 32768 x 512 in 61 layers; embedding and head
  // 129280 x 7168; routers 256 x 7168 and their biases in 58; norms.
  const double wide = 61 * (11010048.0 + 37748736 + 4128768 + 16777216) + 2 * 129280.0 * 7168 +
                      58 * (256.0 * 7168 + 256) + 61 * (2 * 7168 + 1536 + 512) + 7168;
  CHECK(count_parameters(deepseek).total == 671026419200);
  CHECK(bytes(deepseek) == Approx(2 * wide + (671026419200 - wide) * 4.5 / 8 + 4 * (61 + 9 + 58 * 771)).epsilon(1e-15));
  CHECK(deepseek.kinds.size() == 2);

  const Decoder qwen = checkpoint(
      R"("model_type": "qwen3_moe", "hidden_size": 4096, "num_hidden_layers": 94, "vocab_size": 151936,
         "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
         "num_experts_per_tok": 8, "moe_intermediate_size": 1536)",
      R"("quant_algo": "NVFP4", "exclude_modules": ["model.layers.0.mlp.gate", "*.mlp.gate", "lm_head"])");
  // 235,093,634,560 weights, of which 94 (128 x 4096 + 2 x 4096 + 256) + 4096 + 2 x 151936 x 4096 in 16 bits
  const double qwen_wide = 94 * (128 * 4096 + 2 * 4096 + 256.0) + 4096 + 2 * 151936.0 * 4096;
  CHECK(bytes(qwen) == 2 * qwen_wide + (235093634560 - qwen_wide) * 4.5 / 8 + 4 * 94 * (4 + 3 * 128));
  CHECK(qwen.mixture.empty());

  const Decoder llama = checkpoint(
      R"("model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 80, "vocab_size": 128256,
         "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672)",
      R"("quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"])");
  CHECK(bytes(llama) ==
        80 * (2 * 8192.0 * 8192 + 2 * 1024 * 8192 + 3 * 28672.0 * 8192) + 2 * (161 * 8192 + 2 * 128256.0 * 8192));
}

}  // namespace llmperf::hf_quantization_test
