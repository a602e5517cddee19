// What is wrong with a file is said with its position, all of it at once, and never turned into a number.
#include <string>

#include "base/error.h"
#include "catch.h"
#include "descriptor/node.h"
#include "model/decoder.h"
#include "model/parameters.h"

namespace llmperf::bad_model_test {

using namespace llmperf::model;

namespace {

template <class Action>
std::vector<Diagnostic> problems_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    return error.diagnostics();
  }
  return {};
}

std::vector<Diagnostic> json_problems(const std::string& text) {
  return problems_of([&] { parse_decoder(descriptor::parse_json(text, "config.json")); });
}
std::vector<Diagnostic> yaml_problems(const std::string& text) {
  return problems_of([&] { parse_decoder(descriptor::parse_yaml(text, "my.yaml")); });
}

bool mentions(const std::vector<Diagnostic>& problems, const std::string& text) {
  for (const Diagnostic& problem : problems) {
    if (problem.message.find(text) != std::string::npos || problem.hint.find(text) != std::string::npos) return true;
  }
  return false;
}

// One key per line, so that lines can be checked: model_type is line 1.
std::string llama(const std::string& changed_key = "", const std::string& value = "", const std::string& more = "") {
  std::string text = "{\"model_type\": \"llama\"";
  const std::pair<std::string, std::string> keys[] = {{"hidden_size", "64"},        {"num_hidden_layers", "4"},
                                                      {"num_attention_heads", "8"}, {"num_key_value_heads", "2"},
                                                      {"intermediate_size", "160"}, {"vocab_size", "100"}};
  for (const auto& [key, usual] : keys) {
    if (key == changed_key && value.empty()) continue;
    text += ",\n\"" + key + "\": " + (key == changed_key ? value : usual);
  }
  return text + more + "}";
}

const std::string kModel = R"(name: small
hidden_size: 64
num_layers: 4
vocab_size: 100
norm: rms
)";
const std::string kAttention = "attention: {heads: 4, kv_heads: 2, head_dim: 16}\n";
const std::string kFeedForward = "feed_forward: {intermediate: 160, activation: silu}\n";

}  // namespace

TEST_CASE("the small models of these tests are sound") {
  CHECK(json_problems(llama()).empty());
  CHECK(yaml_problems(kModel + kAttention + kFeedForward).empty());
}

TEST_CASE("an unknown architecture is named with three that are supported, and nothing else is said") {
  const auto problems = json_problems(R"({"model_type": "lama", "hidden_size": -1})");
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].where.line == 1);
  CHECK(problems[0].message == "model_type 'lama' is not supported");
  CHECK(problems[0].hint.find("nearest by name and keys: llama, ") == 0);
  const std::string names = problems[0].hint.substr(0, problems[0].hint.find('.'));
  CHECK(std::count(names.begin(), names.end(), ',') == 2);
  CHECK(mentions(json_problems(R"({"model_type": "gemma9"})"), "'gemma9' is not supported"));
  CHECK(mentions(json_problems(R"({"hidden_size": 64})"), "missing key 'model_type'"));
}

TEST_CASE("a model of an unknown type is read as the family it is assumed to be, which says so") {
  const auto text = [](const std::string& type, const std::string& more = "") {
    std::string config = llama("", "", more);
    return config.replace(config.find("llama"), 5, type);
  };
  const auto read = [](const std::string& config, const std::string& family) {
    return parse_decoder(descriptor::parse_json(config, "config.json"), nullptr, family);
  };
  // Of the families that can read it llama passes over nothing, and is the first.
  CHECK(mentions(json_problems(text("quantum")), "keys: llama. If its layers are the same, `assume` llama reads it"));
  // A type that goes on from a family's name is that family's first.
  CHECK(mentions(json_problems(text("exaone4_6_text")), "keys: exaone4, "));
  const std::string experts = ",\n\"num_local_experts\": 4,\n\"num_experts_per_tok\": 2";
  CHECK(mentions(json_problems(text("quantum", experts)), "keys: mixtral. "));
  const Decoder assumed = read(text("quantum", ",\n\"flux\": 3"), "llama");
  const Decoder llama = read(text("llama"), "");
  CHECK(assumed.kinds == llama.kinds);
  CHECK(count_parameters(assumed).total == count_parameters(llama).total);
  CHECK(assumed.assumed == "read as llama, its model_type is quantum; keys passed over: flux");
  CHECK(llama.assumed.empty());
  CHECK(mentions(problems_of([&] { read(text("quantum"), "lama"); }), "`assume`: unknown family 'lama'"));
}

TEST_CASE("an architecture with what no family has is refused by what that is") {
  const auto refused = [](const std::string& type) { return json_problems("{\"model_type\": \"" + type + "\"}"); };
  for (const char* type : {"whisper", "t5", "mbart"}) {
    CHECK(mentions(refused(type), "an encoder-decoder, whose decoder has cross-attention"));
  }
  CHECK(mentions(refused("mllama_text_model"), "cross-attention layers, whose keys and values are those of images"));
  CHECK(mentions(json_problems(R"({"_class_name": "FluxPipeline", "vae": ["diffusers", "AutoencoderKL"]})"),
                 "diffusers' FluxPipeline, vae AutoencoderKL generates images or video"));
  // Not even as another family: those layers cost what it does not.
  const std::string mllama = llama("", "", ", \"cross_attention_layers\": [1]");
  CHECK(mentions(problems_of([&] { parse_decoder(descriptor::parse_json(mllama, "config.json"), nullptr, "llama"); }),
                 "cross_attention_layers: cross-attention"));
}

TEST_CASE("what a file says twice must agree, whatever words it takes") {
  const auto with = [](const std::string& more) { return json_problems(llama("", "", ", " + more)); };
  CHECK(with(R"("n_layer": 4, "d_model": 64, "n_head": 8, "ffn_hidden_size": 160, "seq_length": 99)").empty());
  // Of one head for all and of as many as there are: "multi_query" says which.
  const auto starcoder = [](const std::string& more) {
    return json_problems(R"({"model_type": "gpt_bigcode", "n_embd": 64, "n_layer": 1, "n_head": 4, "vocab_size": 10)" +
                         more + "}");
  };
  CHECK(starcoder(R"(, "num_key_value_heads": 1, "hidden_size": 64, "head_dim": 16)").empty());
  CHECK(starcoder(R"(, "multi_query": false, "num_key_value_heads": 4)").empty());
  CHECK(mentions(starcoder(R"(, "num_key_value_heads": 4)"),
                 "num_key_value_heads is 4, and 1 by what else the file says"));
  CHECK(mentions(with("\"n_layer\": 3"), "n_layer is 3, and 4 by num_hidden_layers"));
  CHECK(mentions(with("\"torch_dtype\": \"int3\""), "torch_dtype 'int3' is no type that weights are stored in"));
  CHECK(mentions(with("\"dtype\": \"int3\""), "dtype 'int3' is no type"));
  CHECK(mentions(json_problems(R"({"model_type": "chatglm", "num_layers": 40, "num_hidden_layers": 20,
      "hidden_size": 64, "num_attention_heads": 4, "kv_channels": 16, "padded_vocab_size": 10, "ffn_hidden_size": 8})"),
                 "num_hidden_layers is 20, and 40 by num_layers"));
}

TEST_CASE("text that cannot change the cost is passed over, and named") {
  const auto read = [](const std::string& more) {
    return parse_decoder(descriptor::parse_json(llama("", "", ", " + more), "config.json"));
  };
  for (const char* harmless :
       {R"("internal_version": "7b-alpha-v2.33.0.30")", R"("schema_version": "1")", R"("router_dtype": "float32")",
        R"("gate_type": "sigmoid")", R"("license": "apache-2.0")", R"("made_of": "two older models, merged")",
        R"("source": "s3://bucket/model")"}) {
    INFO(harmless);
    CHECK(read(harmless).notes.starts_with("passed over, being text: "));
    CHECK(count_parameters(read(harmless)).total == count_parameters(read("\"use_cache\": true")).total);
  }
  for (const char* costly :
       {R"("mixer": "mamba")", R"("hybrid_pattern": "M M A every 2.5")", R"("weights_dtype": "int4")",
        R"("moe_layers": "3,4,5")", R"("attention_kind": "sliding 4096/linear")", R"("gate": "none")"}) {
    INFO(costly);
    CHECK(json_problems(llama("", "", std::string(", ") + costly)).size() == 1);
  }
}

TEST_CASE("the usual key of a length counts, and another word for it where that is missing") {
  const auto longest = [](const std::string& more) {
    return parse_decoder(descriptor::parse_json(llama("", "", ", " + more), "config.json")).max_position;
  };
  CHECK(longest(R"("max_position_embeddings": 4096, "max_sequence_length": 2048)") == 4096);
  CHECK(longest(R"("max_sequence_length": 2048)") == 2048);
  const auto problems = json_problems(llama("", "", R"(, "max_position_embeddings": -1)"));
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().message.find("'max_position_embeddings' must be") != std::string::npos);
}

TEST_CASE("a key that is not understood is an error with the nearest known ones") {
  const auto problems = json_problems(llama("", "", ",\n\"num_key_value_head\": 2"));
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].where.line == 8);
  CHECK(problems[0].where.column == 1);
  CHECK(problems[0].message.find("num_key_value_head") != std::string::npos);
  CHECK(problems[0].hint.find("'num_key_value_heads'") != std::string::npos);
  CHECK(problems[0].hint.find("may change the cost") != std::string::npos);
  CHECK(problems[0].hint.find("`assume` llama reads the file without it") != std::string::npos);
  CHECK(mentions(json_problems(llama("", "", ", \"vision_config\": {}")), "vision_config"));
}

TEST_CASE("each required key is missed when it is not there") {
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"}) {
    INFO(key);
    const auto problems = json_problems(llama(key));
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].message.find(std::string("missing key '") + key + "'") != std::string::npos);
  }
}

TEST_CASE("values that are no sound integers are refused where they stand") {
  for (const char* value : {"-1", "0", "9223372036854775808", "64.5", "\"64\"", "true", "[64]", "{}"}) {
    INFO(value);
    const auto problems = json_problems(llama("hidden_size", value));
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].where.line == 2);
    CHECK(problems[0].message.find("hidden_size") != std::string::npos);
  }
  for (const char* value : {"NaN", "1e400"}) CHECK(json_problems(llama("hidden_size", value)).at(0).where.line == 2);
  CHECK(json_problems(llama("num_hidden_layers", "2001")).size() == 1);
}

TEST_CASE("all problems of a file are reported at once, in order") {
  const auto problems = json_problems(
      "{\"model_type\": \"llama\",\n\"hidden_size\": -5,\n\"num_hidden_layers\": \"x\",\n\"vocab_size\": 100,\n"
      "\"hidden_act\": \"mish\",\n\"num_attention_heads\": 8, \"intermediate_size\": 8,\n\"colour\": 1}");
  REQUIRE(problems.size() == 4);
  CHECK(problems[0].where.line == 2);
  CHECK(problems[1].where.line == 3);
  CHECK(problems[2].where.line == 5);
  CHECK(problems[2].hint.find("gelu_pytorch_tanh") != std::string::npos);
  CHECK(problems[3].where.line == 7);
}

TEST_CASE("heads that do not divide are refused") {
  auto problems = json_problems(llama("num_key_value_heads", "3"));
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].message == "num_attention_heads (8) is not divisible by num_key_value_heads (3)");
  CHECK(problems[0].where.line == 4);
  problems = json_problems(llama("hidden_size", "65"));
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].message == "hidden_size (65) is not divisible by num_attention_heads (8)");
  CHECK(problems[0].hint == "give head_dim if heads differ");
}

TEST_CASE("truncated text and text of another shape are refused") {
  CHECK_FALSE(json_problems(llama().substr(0, 60)).empty());
  CHECK_FALSE(json_problems("[1, 2]").empty());
  CHECK_FALSE(json_problems("null").empty());
  CHECK_FALSE(json_problems("").empty());
  CHECK_FALSE(json_problems(llama("", "", ", \"vocab_size\": 7")).empty());
}

TEST_CASE("variants of an architecture that are not supported say so") {
  const auto refused = [](const std::string& more, const std::string& words) {
    INFO(more);
    const auto problems = json_problems(llama("", "", ", " + more));
    CHECK(problems.size() == 1);
    CHECK(mentions(problems, words));
  };
  refused("\"is_encoder_decoder\": true", "is_encoder_decoder");
  refused("\"cross_attention_hidden_size\": 64", "cross-attention");
  refused("\"pruned_heads\": {\"0\": [1]}", "pruned heads");
  refused("\"architectures\": [\"LlamaForQuestionAnswering\"]", "language model head");
  refused("\"quantization_config\": {\"quant_method\": \"hqq\"}", "'hqq' is not supported");
  refused("\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 3, \"group_size\": 128}", "3 bits");
  refused("\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": -1}", "without groups");
  refused("\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": [64, 64]}", "128 x 128");
  refused("\"quantization_config\": {\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"model.layers.0.ffn\"]}",
          "names nothing that this model is known to have");
  const std::string phi = R"("hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 10,
                             "intermediate_size": 8})";
  CHECK(mentions(json_problems(R"({"model_type": "phi", "qk_layernorm": true, )" + phi), "qk_layernorm"));
  CHECK(mentions(json_problems(R"({"model_type": "deepseek_v3", "moe_layer_freq": 2, "n_routed_experts": 4,
                 "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 8, )" +
                               phi),
                 "moe_layer_freq"));
  CHECK(mentions(json_problems(R"({"model_type": "mixtral", "num_key_value_heads": 4, "num_local_experts": 2,
                 "num_experts_per_tok": 3, )" +
                               phi),
                 "more than the number of experts (2)"));
  CHECK(mentions(json_problems(R"({"model_type": "qwen2_moe", "num_key_value_heads": 4, "num_experts": 2,
                 "num_experts_per_tok": 1, "moe_intermediate_size": 8, "shared_expert_intermediate_size": 8,
                 "use_sliding_window": true, )" +
                               phi),
                 "needs layer_types"));
}

TEST_CASE("a layer_types list must be as long as the model and name known types") {
  const std::string gemma =
      R"({"model_type": "gemma2", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                                "vocab_size": 10, "intermediate_size": 8, "layer_types": )";
  CHECK(mentions(json_problems(gemma + R"(["full_attention"]})"), "lists 1 layers"));
  CHECK(mentions(json_problems(gemma + R"(["full_attention", "linear_attention"]})"), "'linear_attention'"));
}

TEST_CASE("a model too large to count is refused") {
  const auto problems = json_problems(
      R"({"model_type": "llama", "hidden_size": 1000000, "num_hidden_layers": 2000, "num_attention_heads": 100000,
          "head_dim": 100000, "intermediate_size": 10000000, "vocab_size": 100000000})");
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].message.find("parameters") != std::string::npos);
}

TEST_CASE("a descriptor's problems are reported at once, in order") {
  const auto problems = yaml_problems(
      "name: x\nhidden_size: 64\nnum_layers: 0\nvocab_size: 010\nnorm: rmz\n"
      "attention: {heads: 4, kv_heads: 3, head_dim: 16, n_head: 2}\nfeed_forward: {activation: silu}\n");
  REQUIRE(problems.size() == 6);
  CHECK(problems[0].where.line == 3);
  CHECK(problems[1].where.line == 4);
  CHECK(problems[2].where.line == 5);
  CHECK(problems[2].hint.find("rms") != std::string::npos);
  CHECK(problems[3].message == "heads (4) is not divisible by kv_heads (3)");
  CHECK(problems[4].message.find("n_head") != std::string::npos);
  CHECK(problems[5].message.find("missing key 'intermediate'") != std::string::npos);
}

TEST_CASE("a descriptor's keys must go together") {
  const auto refused = [](const std::string& attention, const std::string& feed_forward, const std::string& words) {
    INFO(attention + feed_forward);
    const auto problems = yaml_problems(kModel + attention + feed_forward);
    CHECK(problems.size() == 1);
    CHECK(mentions(problems, words));
  };
  refused("attention: {heads: 4, window: 0}\n", kFeedForward, "window");
  refused("attention: {heads: 4, window_layers: even}\n", kFeedForward, "needs a window");
  refused("attention: {heads: 5}\n", kFeedForward, "give head_dim");
  refused("attention: {heads: 4, rotary_dim: 17}\n", kFeedForward, "rotary_dim");
  refused("attention: {heads: 4, rope_dim: 8}\n", kFeedForward, "latent attention only");
  refused("attention: {heads: 4, kv_heads: 4, kv_lora_rank: 8, rope_dim: 4, nope_dim: 4, v_head_dim: 4}\n",
          kFeedForward, "does not apply to latent attention");
  refused(kAttention, "feed_forward: {intermediate: 8, activation: silu, first_dense_layers: 1}\n", "needs experts");
  refused(kAttention, "feed_forward: {activation: silu, experts: {count: 4, per_token: 5, intermediate: 8}}\n",
          "more than");
  refused(kAttention,
          "feed_forward: {activation: silu, first_dense_layers: 5, dense_intermediate: 8, experts: "
          "{count: 4, per_token: 2, intermediate: 8}}\n",
          "first_dense_layers");
  refused(kAttention,
          "feed_forward: {activation: silu, intermediate: 8, experts: {count: 4, per_token: 2, intermediate: 8}}\n",
          "not used with experts");
  CHECK(mentions(yaml_problems(kModel + "default_weights: w4a61\n" + kAttention + kFeedForward), "'w4a16'"));
  CHECK(mentions(yaml_problems(kModel + "norms_per_layer: 3\n" + kAttention + kFeedForward), "1, 2 or 4"));
  CHECK(mentions(yaml_problems(kModel), "missing key 'attention'"));
}

TEST_CASE("an unknown model name is an error with the nearest names") {
  const auto problems = problems_of([] { load_decoder("qwen-7c"); });
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].hint.find("'qwen-7b'") != std::string::npos);
}

}  // namespace llmperf::bad_model_test
