// Each fixture in configs/ is a config.json of the model whose built-in descriptor has the same name; both readers must
// agree.
#include <filesystem>

#include "base/error.h"
#include "catch.h"
#include "descriptor/node.h"
#include "model/model_file.h"
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

TEST_CASE("configs of the field mean the models that they are of") {
  const auto total = [](const std::string& json) { return count_parameters(parse(json)).total; };
  // Baichuan2-13B: h 5120, i 13696, 40 layers: 2 V h + 40 (4 h^2 + 3 h i + 2 h) + h.
  CHECK(total(R"({"architectures": ["BaichuanForCausalLM"], "model_type": "baichuan", "hidden_act": "silu",
      "hidden_size": 5120, "intermediate_size": 13696, "model_max_length": 4096, "num_attention_heads": 40,
      "num_hidden_layers": 40, "rms_norm_eps": 1e-06, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
      "use_cache": true, "vocab_size": 125696, "z_loss_weight": 0})") == 13896668160);
  // A length of the text is taken from whatever key says it, if no better does.
  CHECK(parse(llama(R"(, "model_max_length": 4096)")).max_position == 4096);
  CHECK(parse(llama(R"(, "max_position_embeddings": 2048, "seq_length": 4096)")).max_position == 2048);
  CHECK(parse(llama(R"(, "model_max_length": 1000000000000000019884624838656)")).max_position == std::nullopt);
  // StarCoder: one KV head of 128 for 48.
  const Decoder starcoder = parse(R"({"architectures": ["GPTBigCodeForCausalLM"], "model_type": "gpt_bigcode",
      "activation_function": "gelu", "attention_softmax_in_fp32": true, "multi_query": true, "n_embd": 6144,
      "n_head": 48, "n_inner": 24576, "n_layer": 40, "n_positions": 8192, "scale_attn_weights": true,
      "vocab_size": 49152})");
  CHECK(count_parameters(starcoder).total == 15517456384);
  CHECK(kv_values_per_token(starcoder) == 40 * 2 * 128);
  // MiniCPM3-4B: latent attention and an MLP in every layer.
  CHECK(total(R"({"architectures": ["MiniCPM3ForCausalLM"], "model_type": "minicpm3", "hidden_size": 2560,
      "intermediate_size": 6400, "num_attention_heads": 40, "num_hidden_layers": 62, "num_key_value_heads": 40,
      "q_lora_rank": 768, "kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64,
      "vocab_size": 73448, "scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256, "hidden_act": "silu",
      "max_position_embeddings": 32768, "torch_dtype": "bfloat16", "tie_word_embeddings": true})") == 4073875968);
  // Mamba-2.8B: 64 recurrences and no attention: no cache.
  const Decoder mamba = parse(R"({"architectures": ["MambaForCausalLM"], "model_type": "mamba", "hidden_size": 2560,
      "intermediate_size": 5120, "num_hidden_layers": 64, "state_size": 16, "conv_kernel": 4, "expand": 2,
      "time_step_rank": 160, "vocab_size": 50280, "tie_word_embeddings": true, "torch_dtype": "float32",
      "use_bias": false, "use_conv_bias": true, "rms_norm": true})");
  CHECK(count_parameters(mamba).total == 2768345600);
  CHECK(kv_values_per_token(mamba) == 0);
  // ALLaM-7B, whose file has a version of its own making.
  CHECK(total(R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "head_dim": 128,
      "hidden_size": 4096, "internal_version": "7b-alpha-v2.33.0.30", "intermediate_size": 11008,
      "max_position_embeddings": 4096, "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32,
      "num_hidden_layers": 32, "num_key_value_heads": 32, "vocab_size": 64000})") == 7000559616);
  // The text part of EXAONE-4.5-33B.
  std::string layers;
  for (int i = 0; i < 64; ++i)
    layers += std::string(i > 0 ? ", " : "") + (i % 4 == 3 ? "\"full_attention\"" : "\"sliding_attention\"");
  CHECK(total(R"({"architectures": ["Exaone4_5_ForConditionalGeneration"], "model_type": "exaone4_5",
      "image_token_id": 67, "text_config": {"_num_mtp_layers": 1, "architectures": ["Exaone4ForCausalLM"],
      "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 27392, "max_position_embeddings": 262144,
      "num_nextn_predict_layers": 1, "mtp_loss_scaling_factor": 0.05, "mtp_share_layers": true,
      "model_type": "exaone4_5_text", "num_attention_heads": 40, "num_hidden_layers": 64, "num_key_value_heads": 8,
      "sliding_window": 4096, "sliding_window_pattern": "LLLG", "vocab_size": 153600, "dtype": "bfloat16",
      "layer_types": [)" +
              layers + R"(]}, "tie_word_embeddings": false, "vision_config": {"depth": 28}})") == 32527504384);
  // Phi-1 leaves out what its config class has by itself.
  CHECK(total(R"({"architectures": ["PhiForCausalLM"], "model_type": "phi", "hidden_act": "gelu_new",
      "num_key_value_heads": null, "partial_rotary_factor": 0.5, "qk_layernorm": false})") == 1418270720);
}

TEST_CASE("a classifier has a row per label in place of the language model's head, an embedding model has none") {
  const auto qwen = [](const std::string& head) {
    return parse(R"({"architectures": ["Qwen3)" + head + R"("], "model_type": "qwen3", "head_dim": 128,
        "hidden_size": 1024, "intermediate_size": 3072, "num_attention_heads": 16, "num_hidden_layers": 28,
        "num_key_value_heads": 8, "tie_word_embeddings": true, "vocab_size": 151669, "num_labels": 1,
        "id2label": {"0": "LABEL_0"}, "problem_type": "single_label_classification"})");
  };
  const std::int64_t language = count_parameters(qwen("ForCausalLM")).total;  // its head is the embedding
  const Decoder classifier = qwen("ForSequenceClassification");
  CHECK(count_parameters(classifier).total == 595777536);
  CHECK(count_parameters(classifier).total == language + 1024);
  CHECK(count_parameters(classifier).lm_head == 1024);
  CHECK(count_parameters(qwen("ForTokenClassification")).total == language + 1024 + 1);
  CHECK(count_parameters(qwen("Model")).total == language);
  CHECK(count_parameters(qwen("ForRewardModel")).total == language + 1024 * 1025 + 1024 + 1);
  CHECK(classifier.encoder);
  CHECK(classifier.causal);
  CHECK_FALSE(qwen("ForCausalLM").encoder);
  CHECK(count_parameters(load_decoder("qwen3-embedding-0.6b")).total == language);
  CHECK(count_parameters(load_decoder("qwen3-reranker-0.6b")).total == language + 1024);
  // 4.02 and 7.57 B parameters, as published.
  CHECK(count_parameters(load_decoder("qwen3-embedding-4b")).total == 4021774336);
  CHECK(count_parameters(load_decoder("qwen3-embedding-8b")).total == 7567295488);
}

TEST_CASE("a repository's name says the model and how its weights are stored, and the answer what was taken") {
  const ModelFile awq = load_model("Qwen/Qwen3-8B-AWQ");
  CHECK(awq.decoder.name == "qwen3-8b");
  CHECK(awq.weights == "awq");
  CHECK(awq.decoder.default_weights == "awq");
  CHECK(awq.decoder.assumed == "taken for Qwen/Qwen3-8B-AWQ, whose name says weights awq");
  const ModelFile gguf = load_model("unsloth/Qwen3-8B-GGUF:Q4_K_M");
  CHECK(gguf.weights == "q4_k_m");
  CHECK(gguf.decoder.default_weights.empty());
  // A name that is known as it stands needs no word.
  CHECK(load_model("Qwen/Qwen3-8B").decoder.assumed.empty());
  CHECK(!load_model("qwen3-8b").weights);
}

TEST_CASE("a checkpoint in float32 is in float32") {
  CHECK(parse(llama(R"(, "torch_dtype": "float32")")).default_weights == "fp32");
  CHECK(parse(llama(R"(, "dtype": "float32", "quantization_config": {"quant_method": "fp8"})")).default_weights ==
        "fp8");
  CHECK(parse(llama(R"(, "torch_dtype": "bfloat16")")).default_weights.empty());
  CHECK(parse(R"({"torch_dtype": "float32", "text_config": )" + llama() + "}").default_weights == "fp32");
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
    REQUIRE(error.diagnostics().size() == 1);
    CHECK(error.diagnostics()[0].message ==
          "num_experts is 4 and num_local_experts is 8: both are the number of experts");
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
