#include <set>

#include "catch.h"
#include "descriptor/bad_input.h"
#include "model/gguf/tensors.h"
#include "model/gguf_converted.h"
#include "model/gguf_writer.h"
#include "model/model_file.h"
#include "model/parameters.h"

namespace llmperf::gguf_decoder_test {

using namespace llmperf::model;
using Catch::Matchers::Contains;

namespace {

// The checkpoint repeats the embedding as lm_head, and so does the file: which of the two the model ties is not in it.
const std::set<std::string> kRepeatedHead = {"qwen3-0.6b", "qwen3-1.7b"};

const std::set<std::string> kWithoutArchitecture = {
    "deepseek-v4-flash",   "gpt-j-6b",        "kimi-k3",      "longcat-flash", "mimo-7b",     "minimax-m1",
    "minimax-m3",          "minimax-text-01", "nemotron-22b", "nemotron-340b", "nemotron-8b", "opt-6.7b",
    "ring-mini-linear-2.0"};

void check_same_cost(const Decoder& read, const Decoder& original) {
  CHECK(read.hidden == original.hidden);
  CHECK(read.vocab == original.vocab);
  CHECK(read.max_position == original.max_position);
  CHECK(read.norm == original.norm);
  CHECK(read.lm_head_bias == original.lm_head_bias);
  CHECK(read.position_embeddings == original.position_embeddings);
  CHECK(read.kinds == original.kinds);
  CHECK(read.layer_kinds == original.layer_kinds);
  CHECK(read.kind_counts == original.kind_counts);
  CHECK(read.default_weights.empty());
  CHECK(read.next_token_layers == original.next_token_layers);
  if (original.next_token_layers > 0) CHECK(read.next_token_copies == original.next_token_copies);
  const ParameterCounts a = count_parameters(read);
  const ParameterCounts b = count_parameters(original);
  CHECK(a.layers == b.layers);
  CHECK(a.embedding == b.embedding);
  CHECK(a.lm_head == b.lm_head);
  if (read.tied_embeddings == original.tied_embeddings) CHECK(a.total == b.total);
  CHECK(a.checkpoint == b.checkpoint);
}

std::string refusal(const ConvertedGguf& converted) {
  return bad_input([&] { parse_gguf_decoder(converted.file); });
}

}  // namespace

TEST_CASE("every built-in model comes back from the GGUF file that the converter would write") {
  std::set<std::string> names;
  for (const std::string& name : decoder_names()) {
    CAPTURE(name);
    const Decoder published = load_decoder(name);
    if (published.architecture == "megatron-gpt") continue;  // never published: described by a paper
    if (kWithoutArchitecture.contains(name)) continue;
    if (published.labels > 0) continue;  // the file of a reranker does not say so
    const Decoder original = as_converted(published);
    // An encoder's pooler is dropped: a matrix and its bias.
    const std::int64_t pooler = published.pooler ? original.hidden * (original.hidden + 1) : 0;
    CHECK(count_parameters(original).total == count_parameters(published).total - pooler);
    const ConvertedGguf converted(published, {.next_token_layers = true});
    const Decoder read = parse_gguf_decoder(converted.file);
    check_same_cost(read, original);
    CHECK(read.encoder == original.encoder);
    CHECK(read.causal == original.causal);
    CHECK(read.tied_embeddings == (original.tied_embeddings && !kRepeatedHead.contains(name)));
    CHECK(read.architecture == type_in_file(original.architecture));
    // All but those of layers for further tokens.
    CHECK(match_tensors(read, converted.file).size() == ConvertedGguf(published).file.tensors.size());
    names.insert(name);
  }
  CHECK(names.contains("deepseek-v3"));
  CHECK(names.size() >= 130);
}

TEST_CASE("a GGUF file of a model without an architecture of llama.cpp is refused by its model type") {
  for (const std::string& name : kWithoutArchitecture) {
    CAPTURE(name);
    const Decoder model = load_decoder(name);
    CHECK(gguf_architecture_name(model).empty());
    CHECK_THAT(
        bad_input([&] { quantised_tensors(model, *find_gguf_file_type("q4_k_m"), GgufEra::v2026); }),
        Contains("no architecture of llama.cpp is known for " + name + " (model type '" + model.architecture + "')"));
  }
}

TEST_CASE("latent attention is the same in files from before and after April 2025") {
  for (const std::string name : {"deepseek-v2-lite", "deepseek-v2", "deepseek-r1"}) {
    CAPTURE(name);
    const Decoder original = as_converted(load_decoder(name));
    const ConvertedGguf converted(original, {.split_kv_b = true});
    const Decoder read = parse_gguf_decoder(converted.file);
    check_same_cost(read, original);
    CHECK(read.architecture == original.architecture);
    CHECK(match_tensors(read, converted.file).size() == converted.file.tensors.size());
  }
}

TEST_CASE("a GGUF file is called by its general.name, else by its file name without the ending") {
  ConvertedGguf converted(load_decoder("qwen1.5-0.5b"));
  CHECK(parse_gguf_decoder(converted.file).name == "converted");
  converted.set("general.name", std::string("Qwen1.5 0.5B Chat"));
  CHECK(parse_gguf_decoder(converted.file).name == "Qwen1.5 0.5B Chat");
  for (const std::string bad : {"", "line\nbreak", "\xff", "\xc2\x9b"}) {
    converted.set("general.name", bad);
    CHECK(parse_gguf_decoder(converted.file).name == "converted");
  }
  converted.set("general.name", std::string(121, 'x'));
  CHECK(parse_gguf_decoder(converted.file).name == "converted");
  converted.file.path = "/models/qwen-q8_0-00002-of-00003.gguf";
  converted.file.shards = {"a", "b", "c"};
  CHECK(parse_gguf_decoder(converted.file).name == "qwen-q8_0");
}

TEST_CASE("a general.name that would act on the terminal or hide something is not used") {
  ConvertedGguf converted(load_decoder("qwen1.5-0.5b"));
  const auto name = [&](std::string text) {
    converted.set("general.name", std::move(text));
    return parse_gguf_decoder(converted.file).name;
  };
  for (const std::string bad :
       {"\x1b[31m", "\u007f", "\u0085", "\u00ad", "\u061c", "\u180e", "\u200b", "\u200f", "\u2028", "\u2029", "\u202a",
        "\u202e", "\u2060", "\u2066", "\u2069", "\ufeff", "\ufffb", "\U000e0041"}) {
    CAPTURE(bad);
    CHECK(name("a" + bad + "b") == "converted");
  }
  // The neighbours of those ranges, and scripts of all widths and directions.
  for (const std::string good :
       {"a b~", "\u00a0\u00ac\u00ae", "\u200a\u2010\u2027\u202f\u2070", "通义千问 é", "مرحبا", "\U0001f999"}) {
    CAPTURE(good);
    CHECK(name(good) == good);
  }
}

TEST_CASE("what a terminal must not get is a question mark in a name and a source made from a file name") {
  ConvertedGguf converted(load_decoder("qwen1.5-0.5b"));
  converted.file.path = "/mo\ndels/\x1b[31mred\u202e\xff\u009b模型.gguf";
  const Decoder model = parse_gguf_decoder(converted.file);
  CHECK(model.name == "?[31mred???模型");
  CHECK(model.source == "GGUF file /mo?dels/?[31mred???模型.gguf (architecture qwen2, file type q4_k_m)");
}

TEST_CASE("the source of a GGUF model names file, architecture and file type") {
  ConvertedGguf converted(load_decoder("qwen1.5-0.5b"));
  CHECK(parse_gguf_decoder(converted.file).source ==
        "GGUF file /models/converted.gguf (architecture qwen2, file type q4_k_m)");
  converted.set("general.file_type", std::int64_t{1024});
  CHECK_THAT(parse_gguf_decoder(converted.file).source, Contains("file type 1024"));
  converted.erase("general.file_type");
  CHECK_THAT(parse_gguf_decoder(converted.file).source, Contains("(architecture qwen2)"));
}

TEST_CASE("the length of the vocabulary goes before vocab_size, which is used without one") {
  ConvertedGguf converted(load_decoder("llama-2-7b"));
  converted.set_arch("vocab_size", std::int64_t{31'999});
  CHECK(parse_gguf_decoder(converted.file).vocab == 32'000);
  converted.erase("tokenizer.ggml.tokens");
  CHECK(parse_gguf_decoder(converted.file).vocab == 31'999);
  converted.erase_arch("vocab_size");
  CHECK_THAT(refusal(converted), Contains("missing key 'llama.vocab_size'"));
}

TEST_CASE("which layers see the window: all, every second, or those of sliding_window_pattern") {
  const auto windows = [](const ConvertedGguf& converted) {
    const Decoder model = parse_gguf_decoder(converted.file);
    std::vector<std::int64_t> first;
    for (std::size_t i = 0; i < 6; ++i) {
      first.push_back(model.kinds[model.layer_kinds[i]].attention.window.value_or(0));
    }
    return first;
  };
  using Windows = std::vector<std::int64_t>;
  ConvertedGguf gemma(load_decoder("gemma-2-2b"));
  gemma.set_arch("attention.sliding_window", std::int64_t{1024});
  CHECK(windows(gemma) == Windows{1024, 0, 1024, 0, 1024, 0});
  gemma.erase_arch("attention.sliding_window");
  CHECK(windows(gemma) == Windows{4096, 0, 4096, 0, 4096, 0});
  gemma.set_arch("attention.sliding_window_pattern", std::int64_t{3});
  CHECK(windows(gemma) == Windows{4096, 4096, 0, 4096, 4096, 0});
  GgufArray pattern{.length = 26, .numbers = std::vector<double>(26, 0)};
  pattern.numbers[2] = 1;
  gemma.set_arch("attention.sliding_window_pattern", pattern);
  CHECK(windows(gemma) == Windows{0, 0, 4096, 0, 0, 0});
  ConvertedGguf mistral(load_decoder("mistral-7b-v0.1"));
  CHECK(windows(mistral) == Windows(6, 4096));
  mistral.erase_arch("attention.sliding_window");
  CHECK(windows(mistral) == Windows(6, 0));
  mistral.set_arch("attention.sliding_window", std::int64_t{0});
  CHECK(windows(mistral) == Windows(6, 0));
  ConvertedGguf qwen(load_decoder("qwen2-0.5b"));
  qwen.set_arch("attention.sliding_window", std::int64_t{4096});
  CHECK(windows(qwen) == Windows(6, 0));  // whose loader does not ask for the key
}

TEST_CASE("head counts and widths may differ from layer to layer") {
  ConvertedGguf converted(load_decoder("llama-2-7b"));  // 32 layers, 32 heads of 128
  GgufArray kv_heads{.length = 32, .numbers = std::vector<double>(32, 32)};
  kv_heads.numbers[31] = 4;
  converted.set_arch("attention.head_count_kv", kv_heads);
  GgufArray widths{.length = 32, .numbers = std::vector<double>(32, 11'008)};
  widths.numbers[0] = 5504;
  converted.set_arch("feed_forward_length", widths);
  const Decoder model = parse_gguf_decoder(converted.file);
  CHECK(model.kind_counts == std::vector<std::int64_t>{1, 30, 1});
  CHECK(model.kinds[0].feed_forward.intermediate == 5504);
  CHECK(model.kinds[2].attention.kv_heads == 4);
  CHECK(model.kinds[2].attention.head_dim == 128);
  widths.length = 31;
  converted.set_arch("feed_forward_length", widths);
  CHECK_THAT(refusal(converted), Contains("'llama.feed_forward_length' lists 31 layers, the model has 32"));
}

TEST_CASE("biases and query and key norms are there when the first layer has their tensors") {
  ConvertedGguf converted(load_decoder("llama-2-7b"));
  CHECK_FALSE(parse_gguf_decoder(converted.file).kinds[0].attention.qkv_bias);
  converted.add_tensor("blk.0.attn_q.bias", {4096, 1, 1, 1}, GgmlType::f32);
  converted.add_tensor("blk.0.attn_k_norm.weight", {128, 1, 1, 1}, GgmlType::f32);
  converted.add_tensor("blk.0.attn_q_norm.weight", {128, 1, 1, 1}, GgmlType::f32);
  converted.add_tensor("blk.0.ffn_down.bias", {4096, 1, 1, 1}, GgmlType::f32);
  const Layer layer = parse_gguf_decoder(converted.file).kinds[0];
  CHECK(layer.attention.qkv_bias);
  CHECK(layer.attention.qk_norm == QkNorm::head);
  CHECK_FALSE(layer.attention.o_bias);
  CHECK(layer.feed_forward.bias);
}

TEST_CASE("experts of the first Qwen files have no width of their own: feed_forward_length over experts per token") {
  ConvertedGguf converted(load_decoder("qwen1.5-moe-a2.7b"));
  converted.set_arch("feed_forward_length", std::int64_t{5632});
  converted.erase_arch("expert_feed_forward_length");
  converted.erase_arch("expert_shared_feed_forward_length");
  const Experts experts = *parse_gguf_decoder(converted.file).kinds[0].feed_forward.experts;
  CHECK(experts.intermediate == 5632 / 4);
  CHECK(experts.shared_intermediate == 5632);
  CHECK(experts.shared_gate);
}

TEST_CASE("an architecture that is not known is refused with its place and the nearest or all names") {
  ConvertedGguf converted(load_decoder("qwen1.5-0.5b"));
  converted.set("general.architecture", std::string("qwen2mo"));
  const std::string message = refusal(converted);
  CHECK_THAT(message, Contains("/models/converted.gguf: byte "));
  CHECK_THAT(message, Contains("general.architecture 'qwen2mo' is not supported"));
  CHECK_THAT(message, Contains("did you mean 'qwen2moe'"));
  CHECK(std::count(message.begin(), message.end(), ',') == 1);  // three names
  converted.set("general.architecture", std::string("deepseek4"));
  CHECK_THAT(refusal(converted), Contains("DeepSeek-V4's compressed keys and hyper-connections"));
  converted.set("general.architecture", std::string("rwkv7"));
  CHECK_THAT(refusal(converted), Contains("general.architecture 'rwkv7' is not supported"));
  converted.set("general.architecture", std::int64_t{3});
  CHECK_THAT(refusal(converted), Contains("'general.architecture', which must be a string"));
  converted.erase("general.architecture");
  CHECK_THAT(refusal(converted), Contains("missing key 'general.architecture'"));
  converted.set("general.type", std::string("adapter"));
  CHECK_THAT(refusal(converted), Contains("the file holds 'adapter', not a model"));
}

TEST_CASE("all missing, mistyped and absurd keys are reported together, contradictions among the rest left out") {
  ConvertedGguf converted(load_decoder("llama-3-8b"));
  converted.erase_arch("embedding_length");
  converted.erase_arch("feed_forward_length");
  converted.set_arch("attention.head_count", std::string("32"));
  converted.set_arch("attention.head_count_kv", std::int64_t{5});
  converted.set_arch("context_length", std::int64_t{1} << 60);
  const std::string message = refusal(converted);
  CHECK_THAT(message, Contains("/models/converted.gguf: missing key 'llama.embedding_length'"));
  CHECK_THAT(message, Contains("missing key 'llama.feed_forward_length'"));
  CHECK_THAT(message, Contains("'llama.attention.head_count' must be an integer"));
  CHECK_THAT(message, Contains("'llama.context_length' is 1152921504606846976, must be from 0 to 1000000000"));
  CHECK_THAT(message, !Contains("divisible"));
}

TEST_CASE("an absurd number of layers is refused before anything is made for each of them") {
  ConvertedGguf converted(load_decoder("llama-3-8b"));
  for (const std::int64_t layers : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    converted.set_arch("block_count", layers);
    CHECK_THAT(refusal(converted), Contains("'llama.block_count' is " + std::to_string(layers)));
  }
}

TEST_CASE("dimensions that are each in range but make an absurd model are refused") {
  ConvertedGguf converted(load_decoder("llama-3-8b"));
  converted.set_arch("embedding_length", std::int64_t{1'000'000});
  converted.set_arch("feed_forward_length", std::int64_t{10'000'000});
  converted.set_arch("attention.key_length", std::int64_t{100'000});
  converted.set_arch("attention.value_length", std::int64_t{100'000});
  converted.set_arch("attention.head_count", std::int64_t{100'000});
  converted.set_arch("attention.head_count_kv", std::int64_t{100'000});
  CHECK_THAT(refusal(converted), Contains("more than the 1e+15 supported"));
}

TEST_CASE("keys that contradict each other are reported at one of them") {
  const auto with = [](const std::string& model, std::string_view key, GgufValue value) {
    ConvertedGguf converted(load_decoder(model));
    converted.set_arch(key, std::move(value));
    return refusal(converted);
  };
  CHECK_THAT(with("llama-3-8b", "attention.head_count_kv", std::int64_t{5}),
             Contains("attention.head_count (32) is not divisible by attention.head_count_kv (5)"));
  CHECK_THAT(with("llama-2-7b", "attention.head_count", std::int64_t{96}),
             Contains("embedding_length (4096) is not divisible by attention.head_count (96)"));
  CHECK_THAT(with("llama-3-8b", "rope.dimension_count", std::int64_t{129}),
             Contains("rope.dimension_count (129) is more than the width of a head (128)"));
  CHECK_THAT(with("mixtral-8x7b", "expert_used_count", std::int64_t{9}),
             Contains("expert_used_count (9) is more than expert_count (8)"));
  CHECK_THAT(with("llama-3-8b", "expert_count", std::int64_t{8}), Contains("no layer with a router"));
  CHECK_THAT(with("deepseek-v3", "leading_dense_block_count", std::int64_t{5}),
             Contains("layer 3 has a router (ffn_gate_inp.weight), leading_dense_block_count is 5"));
  CHECK_THAT(with("deepseek-v2", "attention.key_length", std::int64_t{64}),
             Contains("attention.key_length (64) must be more than rope.dimension_count (64)"));
  CHECK_THAT(with("qwen-7b", "feed_forward_length", std::int64_t{11'007}), Contains("is not divisible by 2"));
  ConvertedGguf norms(load_decoder("phi-2"));
  norms.erase_arch("attention.layer_norm_epsilon");
  norms.set_arch("attention.layer_norm_rms_epsilon", 1e-5);
  CHECK_THAT(refusal(norms), Contains("the architecture phi2 uses phi2.attention.layer_norm_epsilon"));
}

TEST_CASE("variants that would cost something else are refused") {
  const auto with = [](std::string_view key, GgufValue value) {
    ConvertedGguf converted(load_decoder("deepseek-v3"));
    converted.set_arch(key, std::move(value));
    return refusal(converted);
  };
  CHECK_THAT(with("attention.causal", false), Contains("not causal"));
  CHECK_THAT(with("attention.max_alibi_bias", 8.0), Contains("max_alibi_bias' is not supported"));
}

TEST_CASE("more kinds of layers than a decoder can tell apart are refused") {
  ConvertedGguf converted(load_decoder("llama-2-7b"));
  converted.set_arch("block_count", std::int64_t{300});
  GgufArray widths{.length = 300, .numbers = {}};
  for (int i = 0; i < 300; ++i) widths.numbers.push_back(256 + i);
  converted.set_arch("feed_forward_length", widths);
  CHECK_THAT(refusal(converted), Contains("more than 255 layers differ from each other"));
}

TEST_CASE("at most twenty problems of a GGUF file are listed, and the others counted") {
  ConvertedGguf converted(load_decoder("llama-3-8b"));
  const Decoder model = parse_gguf_decoder(converted.file);
  std::erase_if(converted.file.tensors, [](const GgufTensorInfo& t) { return t.name.starts_with("blk.3"); });
  // Layers 3, 30 and 31 of nine tensors each.
  try {
    match_tensors(model, converted.file);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.diagnostics().size() == 21);
    CHECK(error.diagnostics().back().message == "… and 7 more problems");
  }
}

TEST_CASE("a model written to a file and read back has the types of the file") {
  GgufWriter writer;
  writer.add("general.architecture", "llama").add("llama.block_count", std::uint32_t{1});
  writer.add("llama.embedding_length", std::uint32_t{256}).add("llama.feed_forward_length", std::uint32_t{512});
  writer.add("llama.attention.head_count", std::uint32_t{4}).add("llama.vocab_size", std::uint32_t{100});
  writer.add("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  writer.tensor("token_embd.weight", {256, 100}, GgmlType::q4_k).tensor("output_norm.weight", {256}, GgmlType::f32);
  for (const std::string stem : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
    writer.tensor("blk.0." + stem + ".weight", {256, 256}, GgmlType::q5_k);
  }
  for (const std::string stem : {"attn_norm", "ffn_norm"}) {
    writer.tensor("blk.0." + stem + ".weight", {256}, GgmlType::f32);
  }
  writer.tensor("blk.0.ffn_gate.weight", {256, 512}, GgmlType::q4_k);
  writer.tensor("blk.0.ffn_up.weight", {256, 512}, GgmlType::q4_k);
  writer.tensor("blk.0.ffn_down.weight", {512, 256}, GgmlType::q6_k);
  const GgufFile file = parse_gguf(writer.bytes(), "small.gguf");
  const Decoder model = parse_gguf_decoder(file);
  CHECK(model.tied_embeddings);
  CHECK(model.kinds[0].attention.kv_heads == 4);
  CHECK(model.kinds[0].attention.head_dim == 64);
  CHECK(tensor_bytes(match_tensors(model, file)).value == static_cast<double>(file.tensor_bytes));
}

}  // namespace llmperf::gguf_decoder_test
