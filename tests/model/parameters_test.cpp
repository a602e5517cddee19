#include "model/parameters.h"

#include <map>

#include "catch.h"
#include "model/model_file.h"
#include "model_files.h"

namespace llmperf::parameters_test {

using namespace llmperf::model;

namespace {

// What the final norm weighs: a weight per hidden element, and a bias with LayerNorm.
std::int64_t expected_final_norm(const Decoder& model) { return model.hidden * (model.norm == Norm::layer ? 2 : 1); }

}  // namespace

TEST_CASE("every published parameter count is met exactly") {
  const auto rows = read_rows(fixture("model_facts.csv"));
  REQUIRE(rows.size() == 82);
  for (const auto& row : rows) {
    INFO(row[0]);
    const ParameterCounts counts = count_parameters(load_decoder(row[0]));
    CHECK(counts.total == std::stoll(row[1]));
    if (!row[2].empty()) CHECK(counts.activated == std::stoll(row[2]));
    if (!row[3].empty()) CHECK(counts.checkpoint == std::stoll(row[3]));
  }
}

TEST_CASE("for every built-in model the parts add up to the total") {
  for (const std::string& name : decoder_names()) {
    INFO(name);
    const Decoder model = load_decoder(name);
    const ParameterCounts counts = count_parameters(model);
    CHECK(model.name == name);
    if (model.is_plain_transformer()) CHECK(counts.final_norm == expected_final_norm(model));
    CHECK(counts.attention + counts.recurrent + counts.feed_forward + counts.norms == counts.layers);
    const bool tied = model.tied_embeddings && !model.encoder;
    const std::int64_t head = tied ? counts.lm_head - model.vocab * model.hidden : counts.lm_head;
    CHECK(counts.embedding + counts.layers + counts.final_norm + head == counts.total);
    CHECK(counts.activated <= counts.total);
    CHECK(counts.checkpoint >= counts.total);

    std::int64_t sum = 0;
    for (const Tensor& tensor : outer_tensors(model)) sum += tensor.elements();
    for (const unsigned char kind : model.layer_kinds) {
      for (const Tensor& tensor : layer_tensors(model, model.kinds[kind])) sum += tensor.elements();
    }
    CHECK(sum == counts.total);
  }
}

TEST_CASE("the tensors of a Qwen1.5-7B layer are those of its checkpoint") {
  const Decoder model = load_decoder("qwen1.5-7b");
  REQUIRE(model.kinds.size() == 1);
  REQUIRE(model.num_layers() == 32);
  std::map<std::string_view, std::pair<std::int64_t, std::int64_t>> shapes;
  for (const Tensor& tensor : layer_tensors(model, model.kinds[0])) shapes[tensor.name] = {tensor.n, tensor.k};
  const std::map<std::string_view, std::pair<std::int64_t, std::int64_t>> expected = {
      {"input_layernorm.weight", {4096, 1}},          {"self_attn.q_proj.weight", {4096, 4096}},
      {"self_attn.q_proj.bias", {4096, 1}},           {"self_attn.k_proj.weight", {4096, 4096}},
      {"self_attn.k_proj.bias", {4096, 1}},           {"self_attn.v_proj.weight", {4096, 4096}},
      {"self_attn.v_proj.bias", {4096, 1}},           {"self_attn.o_proj.weight", {4096, 4096}},
      {"post_attention_layernorm.weight", {4096, 1}}, {"mlp.gate_proj.weight", {11008, 4096}},
      {"mlp.up_proj.weight", {11008, 4096}},          {"mlp.down_proj.weight", {4096, 11008}},
  };
  CHECK(shapes == expected);
}

TEST_CASE("layer matrices follow the closed form with biases on q, k and v and no norms") {
  // (h+1) h + 2 (h+1) h / g + h h + 3 h i per layer
  const std::int64_t h = 5120, i = 27392, layers = 64;
  const std::int64_t kv = h / 5;  // 40 heads, 8 key and value heads
  const ParameterCounts counts = count_parameters(load_decoder("qwen1.5-32b"));
  CHECK(counts.layer_matrices == layers * ((h + 1) * h + 2 * (h + 1) * kv + h * h + 3 * h * i));
  CHECK(counts.layer_matrices_activated == counts.layer_matrices);
  CHECK(counts.layers - counts.layer_matrices == layers * 2 * h);
}

TEST_CASE("the multi-head variants of the study differ from the published models in their key and value heads only") {
  const Decoder published = load_decoder("qwen1.5-32b");
  Decoder variant = load_decoder("qwen1.5-32b-mha");
  CHECK(kv_values_per_token(variant) == 5 * kv_values_per_token(published));
  variant.kinds[0].attention.kv_heads = 8;
  CHECK(variant.kinds == published.kinds);

  Decoder large = load_decoder("qwen1.5-110b-mha");
  CHECK(large.kinds[0].feed_forward.intermediate == 49152);
  large.kinds[0].attention.kv_heads = 8;
  CHECK(large.kinds == load_decoder("qwen1.5-110b").kinds);
}

TEST_CASE("a token uses its routed experts, the shared ones and everything else") {
  // Mixtral: 6 of 8 experts idle in each of 32 layers, 3 * 4096 * 14336 elements each.
  const ParameterCounts mixtral = count_parameters(load_decoder("mixtral-8x7b"));
  CHECK(mixtral.total - mixtral.activated == std::int64_t{32} * 6 * 3 * 4096 * 14336);
  CHECK(mixtral.layer_matrices - mixtral.layer_matrices_activated == mixtral.total - mixtral.activated);
  // gpt-oss: the biases of an idle expert are idle too.
  const ParameterCounts oss = count_parameters(load_decoder("gpt-oss-20b"));
  CHECK(oss.total - oss.activated == std::int64_t{24} * 28 * (3 * 2880 * 2880 + 3 * 2880));
}

TEST_CASE("a token adds two values per key and value head and dimension to the cache, or one latent") {
  CHECK(kv_values_per_token(load_decoder("qwen1.5-7b")) == 2 * 32 * 32 * 128);
  CHECK(kv_values_per_token(load_decoder("llama-3-70b")) == 2 * 80 * 8 * 128);
  CHECK(kv_values_per_token(load_decoder("deepseek-v3")) == 61 * (512 + 64));
}

TEST_CASE("layers that differ are kinds of their own") {
  const Decoder gemma = load_decoder("gemma-2-2b");
  REQUIRE(gemma.kinds.size() == 2);
  CHECK(gemma.count_of_kind(0) == 13);
  CHECK(gemma.kinds[gemma.layer_kinds[0]].attention.window == 4096);
  CHECK_FALSE(gemma.kinds[gemma.layer_kinds[1]].attention.window);
  const Decoder deepseek = load_decoder("deepseek-v3");
  REQUIRE(deepseek.kinds.size() == 2);
  CHECK(deepseek.count_of_kind(0) == 3);
  CHECK(deepseek.kinds[0].feed_forward.intermediate == 18432);
  CHECK(deepseek.kinds[1].feed_forward.experts->count == 256);
}

TEST_CASE("a tied output matrix is counted once, and twice in files that repeat it") {
  const ParameterCounts tied = count_parameters(load_decoder("llama-3.2-1b"));
  CHECK(tied.lm_head == std::int64_t{128256} * 2048);
  CHECK(tied.embedding + tied.layers + tied.final_norm == tied.total);
  CHECK(tied.checkpoint == tied.total);
  const ParameterCounts repeated = count_parameters(load_decoder("qwen3-0.6b"));
  CHECK(repeated.checkpoint - repeated.total == std::int64_t{151936} * 1024);
}

TEST_CASE("files hold layers that predict further tokens, which nothing runs") {
  const Decoder model = load_decoder("deepseek-v3");
  const ParameterCounts counts = count_parameters(model);
  CHECK(counts.total == std::int64_t{671'026'419'200});
  // A layer with experts (its attention, router, 256 experts and the shared one, norms), the projection of two inputs,
  // three norms; and the embedding and the output matrix again. The model card says 685 G.
  const std::int64_t layer =
      std::int64_t{187'107'328} + std::int64_t{257} * 3 * 7168 * 2048 + 256 * 7168 + 256 + 2 * 7168;
  CHECK(counts.checkpoint - counts.total == layer + 2 * 7168 * 7168 + 3 * 7168 + 2 * std::int64_t{129280} * 7168);
  CHECK(counts.checkpoint / 1'000'000'000 == 684);
}

}  // namespace llmperf::parameters_test
