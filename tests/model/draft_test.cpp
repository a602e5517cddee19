// Layers that draft: parameters against the checkpoints that have them, and the matrices of a step.
#include <string>

#include "base/error.h"
#include "catch.h"
#include "model/decoder.h"
#include "model/parameters.h"

namespace llmperf::draft_test {

using namespace llmperf::model;

TEST_CASE("an EAGLE-3 head holds what the published ones do, without the embedding it shares") {
  // SpecForge's configurations: fc 3 h^2, q, k, v of 2 h, o, MLP, four norms, 32,000 rows of a head.
  CHECK(count_parameters(eagle_draft(load_decoder("llama-3-8b"))).total == 424'689'664);
  CHECK(count_parameters(eagle_draft(load_decoder("llama-3-70b"))).total == 1'403'027'456);
  constexpr std::int64_t h = 4096;
  CHECK(3 * h * h + 2 * h * (32 + 2 * 8) * 128 + h * h + 3 * h * 14336 + 4 * h + 32000 * h == 424'689'664);
}

TEST_CASE("a layer for further tokens is the model's last, a product of two vectors and three norms") {
  const Decoder v3 = load_decoder("deepseek-v3");
  const Decoder draft = next_token_draft(v3);
  const ParameterCounts counts = count_parameters(draft);
  CHECK(counts.total == 11'610'068'224);
  CHECK(counts.embedding == 0);
  // A token uses 8 of 256 experts: 688,100,608 of these.
  CHECK(counts.activated == 688'100'608);
  std::int64_t layer = 0;
  for (const Tensor& tensor : layer_tensors(v3, v3.kinds[v3.layer_kinds.back()])) layer += tensor.elements();
  CHECK(counts.total == layer + 2 * 7168 * 7168 + 3 * 7168);
  // With its copies of the embedding and the head it is what the files hold beside the model.
  const ParameterCounts whole = count_parameters(v3);
  CHECK(whole.checkpoint - whole.total == counts.total + 2 * 129280 * 7168);
}

TEST_CASE("a model without layers for further tokens is told what else can draft") {
  try {
    next_token_draft(load_decoder("llama-3-8b"));
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("llama-3-8b has no layers that predict further tokens") != std::string::npos);
  }
}

TEST_CASE("a head for a model of latent attention and experts has heads of 128 and the width of its dense layers") {
  const Decoder draft = eagle_draft(load_decoder("deepseek-v3"));
  const Layer& layer = draft.kinds.front();
  CHECK(layer.attention.heads == 56);
  CHECK(layer.attention.kv_heads == 8);
  CHECK_FALSE(layer.attention.latent);
  CHECK(layer.feed_forward.intermediate == 18432);
  // Where there is no dense layer: six times the hidden width, as the head of Qwen3-235B-A22B has it.
  CHECK(eagle_draft(load_decoder("mixtral-8x7b")).kinds.front().feed_forward.intermediate == 6 * 4096);
}

TEST_CASE("vocabularies are the same but for a hundredth of padding") {
  Decoder a;
  Decoder b;
  a.vocab = 152064;
  b.vocab = 151936;
  CHECK(shares_vocabulary(a, b));
  b.vocab = 128256;
  CHECK_FALSE(shares_vocabulary(a, b));
  CHECK_FALSE(shares_vocabulary(b, a));
}

}  // namespace llmperf::draft_test
