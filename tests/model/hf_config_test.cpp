// Each fixture in configs/ is a config.json of the model whose built-in descriptor has the same name; both readers must
// agree.
#include <filesystem>

#include "base/error.h"
#include "catch.h"
#include "descriptor/node.h"
#include "model/parameters.h"
#include "model_files.h"

namespace llmperf::hf_config_test {

using namespace llmperf::model;

namespace {

Decoder parse(const std::string& json) { return parse_decoder(descriptor::parse_json(json, "config.json")); }

// A small llama config with more keys, which must begin with a comma.
std::string llama(const std::string& more = "") {
  return R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 100,
             "intermediate_size": 160)" +
         more + "}";
}

// The same for another architecture without the MLP's width.
std::string base(const std::string& type, const std::string& more) {
  return R"({"model_type": ")" + type + R"(", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
             "num_key_value_heads": 4, "head_dim": 16, "vocab_size": 100, "intermediate_size": 160)" +
         more + "}";
}

std::vector<bool> windowed(const Decoder& model) {
  std::vector<bool> layers;
  for (const unsigned char kind : model.layer_kinds) layers.push_back(model.kinds[kind].attention.window.has_value());
  return layers;
}

}  // namespace

TEST_CASE("a config.json means the same model as the built-in descriptor of that name") {
  int compared = 0;
  for (const auto& file : std::filesystem::directory_iterator(fixture("configs"))) {
    const std::string name = file.path().stem().string();
    if (name == "glm-4-9b-0414") continue;  // no built-in
    INFO(name);
    const Decoder config = load_decoder(file.path().string());
    const Decoder built_in = load_decoder(name);
    CHECK(config.name == name);
    CHECK(config.hidden == built_in.hidden);
    CHECK(config.vocab == built_in.vocab);
    CHECK(config.max_position == built_in.max_position);
    CHECK(config.norm == built_in.norm);
    CHECK(config.tied_embeddings == built_in.tied_embeddings);
    CHECK(config.lm_head_bias == built_in.lm_head_bias);
    CHECK(config.kinds == built_in.kinds);
    CHECK(config.layer_kinds == built_in.layer_kinds);
    CHECK(count_parameters(config).total == count_parameters(built_in).total);
    CHECK(count_parameters(config).activated == count_parameters(built_in).activated);
    ++compared;
  }
  CHECK(compared == 107);
}

TEST_CASE("GLM-4-9B-0414 has the parameters it was published with") {
  const Decoder model = load_decoder(fixture("configs/glm-4-9b-0414.json"));
  CHECK(count_parameters(model).total == 9400279040);
  CHECK(model.kinds[0].norms == 4);
  CHECK(model.kinds[0].attention.rotary_dim == 64);
}

TEST_CASE("a quantised checkpoint names its scheme") {
  CHECK(load_decoder(fixture("configs/qwen1.5-7b.json")).default_weights == "w4a16-g128");
  CHECK(load_decoder(fixture("configs/deepseek-r1.json")).default_weights == "fp8-block128");
  CHECK(load_decoder(fixture("configs/gpt-oss-20b.json")).default_weights == "mxfp4");
  CHECK(load_decoder("gpt-oss-20b").default_weights == "mxfp4");
  CHECK(load_decoder(fixture("configs/qwen2.5-7b.json")).default_weights.empty());
  CHECK(
      parse(
          llama(R"(, "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm"})"))
          .default_weights == "w4a16-g64");
  CHECK(parse(llama(R"(, "quantization_config": {"quant_method": "fp8", "activation_scheme": "static"})"))
            .default_weights == "fp8");
}

TEST_CASE("absent keys take the defaults of their architecture") {
  CHECK_FALSE(parse(llama()).tied_embeddings);
  CHECK(parse(base("gemma", "")).tied_embeddings);
  CHECK(parse(base("gemma2", "")).tied_embeddings);
  CHECK_FALSE(parse(base("qwen2", "")).tied_embeddings);
  CHECK(parse(llama()).kinds[0].attention.kv_heads == 4);
  CHECK(parse(llama()).kinds[0].attention.head_dim == 16);
  // Gemma's head is 256 wide whatever the hidden size, unless given.
  const std::string gemma =
      R"({"model_type": "gemma", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 16,
                                "vocab_size": 10, "intermediate_size": 8})";
  CHECK(parse(gemma).kinds[0].attention.head_dim == 256);
  CHECK(parse(gemma).kinds[0].feed_forward.activation == Activation::gelu_tanh);
  CHECK(parse(base("mistral", "")).kinds[0].attention.window == 4096);
  CHECK_FALSE(parse(base("mistral", R"(, "sliding_window": null)")).kinds[0].attention.window);
  CHECK(parse(base("phi", "")).kinds[0].attention.rotary_dim == 8);
  CHECK(parse(base("glm4", "")).kinds[0].attention.qkv_bias);
  CHECK_FALSE(parse(base("glm4", "")).kinds[0].attention.o_bias);
}

TEST_CASE("an empty key says nothing, whatever it is called") {
  CHECK(parse(llama(R"(, "flux": null)")).kinds == parse(llama()).kinds);
  CHECK_THROWS_AS(parse(llama(R"(, "flux": 1)")), Error);
}

// A list, a pattern and a frequency behind the first layers say the same: 5 of 10 layers have an indexer of their own.
TEST_CASE("which layers choose keys for themselves is said in one of three ways") {
  const auto reused = [](const std::string& more) {
    const Decoder model = parse(R"({"model_type": "glm_moe_dsa", "hidden_size": 64, "num_hidden_layers": 10,
        "num_attention_heads": 4, "q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16,
        "v_head_dim": 16, "vocab_size": 100, "intermediate_size": 160, "moe_intermediate_size": 32,
        "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1)" +
                                more + "}");
    std::vector<bool> layers;
    for (const unsigned char kind : model.layer_kinds) layers.push_back(model.kinds[kind].attention.indexer->reused);
    return layers;
  };
  const auto expected = std::vector<bool>{false, false, false, true, true, true, false, true, true, true};
  CHECK(reused(R"(, "index_topk_freq": 4, "index_skip_topk_offset": 3)") == expected);
  CHECK(reused(R"(, "index_topk_pattern": "FFFSSSFSSS")") == expected);
  CHECK(
      reused(R"(, "index_topk_freq": 1, "indexer_types": ["full", "full", "full", "shared", "shared", "shared", "full",
                  "shared", "shared", "shared"])") == expected);
  CHECK(reused("") == std::vector<bool>(10, false));
  CHECK_THROWS_AS(reused(R"(, "index_topk_pattern": "FFS")"), Error);
  CHECK_THROWS_AS(reused(R"(, "index_topk_pattern": "FFFSSSFSSX")"), Error);
}

TEST_CASE("OLMoE has the parameters it was published with") {
  const Decoder model = parse(R"({"model_type": "olmoe", "hidden_size": 2048, "num_hidden_layers": 16,
      "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 50304, "intermediate_size": 1024,
      "num_experts": 64, "num_experts_per_tok": 8, "norm_topk_prob": false, "clip_qkv": null})");
  CHECK(count_parameters(model).total == 6'919'161'856);
}

TEST_CASE("ERNIE's largest mixture has no shared experts, and says nothing of them") {
  const std::string config = R"({"model_type": "ernie4_5_moe", "hidden_size": 64, "num_hidden_layers": 4,
      "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 100, "intermediate_size": 160,
      "moe_intermediate_size": 32, "moe_num_experts": 4, "moe_k": 2)";
  CHECK(parse(config + "}").kinds == parse(config + R"(, "moe_num_shared_experts": 0})").kinds);
}

TEST_CASE("biases and ties are honoured where the config sets them") {
  const Decoder model = parse(llama(R"(, "attention_bias": true, "mlp_bias": true, "tie_word_embeddings": true)"));
  CHECK(model.tied_embeddings);
  CHECK(model.kinds[0].attention.qkv_bias);
  CHECK(model.kinds[0].attention.o_bias);
  // embedding 100 * 64, 4 layers of q, k, v, o (64 * 64 + 64) and gate, up (64 * 160 + 160), down (160 * 64 + 64), 2
  // norms
  CHECK(count_parameters(model).total ==
        100 * 64 + 4 * (4 * (64 * 64 + 64) + 2 * (64 * 160 + 160) + 160 * 64 + 64 + 2 * 64) + 64);
}

TEST_CASE("a head may be wider than hidden / heads") {
  const Decoder model = parse(llama(R"(, "head_dim": 128)"));
  CHECK(model.kinds[0].attention.head_dim == 128);
  CHECK(model.kinds[0].attention.rotary_dim == 128);
}

TEST_CASE("use_sliding_window switches the window off, and max_window_layers says where it begins") {
  CHECK(windowed(parse(base("qwen2", R"(, "sliding_window": 32, "use_sliding_window": false)"))) ==
        std::vector<bool>{false, false, false, false});
  CHECK(
      windowed(parse(base("qwen2", R"(, "sliding_window": 32, "use_sliding_window": true, "max_window_layers": 3)"))) ==
      std::vector<bool>{false, false, false, true});
  CHECK(windowed(parse(base("qwen3", R"(, "use_sliding_window": true, "sliding_window": 32, "layer_types":
        ["full_attention", "sliding_attention", "full_attention", "full_attention"])"))) ==
        std::vector<bool>{false, true, false, false});
  CHECK(windowed(parse(base("gemma2", ""))) == std::vector<bool>{true, false, true, false});
  CHECK(
      windowed(parse(base("mixtral", R"(, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8)"))) ==
      std::vector<bool>{true, true, true, true});
}

TEST_CASE("layers without experts are those decoder_sparse_step and mlp_only_layers name") {
  const std::string keys = R"(, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
                              "decoder_sparse_step": 2, "mlp_only_layers": [3])";
  const Decoder model = parse(base("qwen3_moe", keys));
  std::vector<bool> sparse;
  for (const unsigned char kind : model.layer_kinds) {
    sparse.push_back(model.kinds[kind].feed_forward.experts.has_value());
  }
  CHECK(sparse == std::vector<bool>{false, true, false, false});
  CHECK(model.kinds[0].feed_forward.intermediate == 160);
}

TEST_CASE("the number of experts may be spelt either way") {
  const std::string keys = R"(, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32)";
  CHECK(parse(base("qwen3_moe", keys)).kinds[0].feed_forward.experts->count == 4);
  CHECK(
      parse(base("mixtral", R"(, "num_experts": 4, "num_experts_per_tok": 2)")).kinds[0].feed_forward.experts->count ==
      4);
}

TEST_CASE("two spellings of the number of experts that say different things are both named") {
  const std::string keys = R"(, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "num_experts": 4)";
  CHECK(parse(base("qwen3_moe", keys + R"(, "num_local_experts": 4)")).kinds[0].feed_forward.experts->count == 4);
  try {
    parse(base("qwen3_moe", keys + ",\n\"num_local_experts\": 8"));
    FAIL("accepted");
  } catch (const Error& error) {
    REQUIRE(error.diagnostics().size() == 2);
    CHECK(error.diagnostics()[1].where.line == error.diagnostics()[0].where.line + 1);
    for (const Diagnostic& d : error.diagnostics()) {
      CHECK(d.message == "num_experts is 4 and num_local_experts is 8: both are the number of experts");
    }
  }
}

TEST_CASE("the first Qwen's intermediate_size is twice the width of a matrix") {
  CHECK(load_decoder(fixture("configs/qwen-7b.json")).kinds[0].feed_forward.intermediate == 11008);
}

TEST_CASE("keys that do not change the cost are skipped") {
  CHECK_NOTHROW(parse(llama(R"(, "_name_or_path": "x", "_attn_implementation_autoset": true, "torch_dtype": "float16",
        "dtype": "bfloat16", "temperature": 0.7, "bos_token_id": 1, "rope_scaling": {"type": "linear", "factor": 2},
        "rope_parameters": {"rope_theta": 10000.0}, "id2label": {"0": "A"}, "is_encoder_decoder": false,
        "pretraining_tp": 2, "pruned_heads": {}, "cross_attention_hidden_size": null, "use_cache": true,
        "transformers_version": "4.40.0", "auto_map": {}, "architectures": ["LlamaForCausalLM"])")));
}

TEST_CASE("a descriptor with a model_type key is read as a config") {
  const auto document = descriptor::parse_yaml(
      "model_type: llama\nhidden_size: 64\nnum_hidden_layers: 1\nvocab_size: 10\n"
      "num_attention_heads: 4\nintermediate_size: 8\n",
      "x.yaml");
  CHECK(parse_decoder(document).architecture == "llama");
}

}  // namespace llmperf::hf_config_test
