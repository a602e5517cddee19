#include "program/recovered.h"

namespace llmperf::program::block_layouts_test {

TEST_CASE("GPT-2: a fused projection cut in three, LayerNorm, GELU, biases, learned positions and a tied table") {
  ProgramText p;
  const Named words = p.argument({1000, 64});
  const Named ids = p.indices({2, 16, 1});
  const Named x0 = p.add(
      "\"stablehlo.gather\"(" + words.name + ", " + ids.name +
          ") <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = "
          "[0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 64>}> : (tensor<1000x64xf32>, tensor<2x16x1xi32>) "
          "-> "
          "tensor<2x16x64xf32>",
      {2, 16, 64});
  Named x = p.binary("add", x0, p.broadcast(p.argument({16, 64}), {1, 2}, {2, 16, 64}));
  std::vector<Named> products;
  for (int layer = 0; layer < 2; ++layer) {
    const Named qkv = p.linear(p.layer_norm(x), 192);
    const Named biased = p.bias(qkv);
    const Attended a =
        attend_heads_in_front(p, p.slice(biased, 0, 64), p.slice(biased, 64, 128), p.slice(biased, 128, 192), 4, true);
    x = p.binary("add", x, p.bias(a.output));
    const Named up = p.linear(p.layer_norm(x), 256);
    const Named down = p.linear(p.gelu_tanh(p.bias(up)), 64);
    x = p.binary("add", x, p.bias(down));
    products = {qkv, a.scores, a.values, a.output, up, down};
  }
  const Named logits = p.linear(p.layer_norm(x), p.transpose(words, {1, 0}));
  const Recovered r(p, logits);

  const char* const expected[] = {"qkv", "scores", "values", "output", "up", "down"};
  for (std::size_t i = 0; i < products.size(); ++i) CHECK(r.roles().at(products[i].name) == expected[i]);
  CHECK(r.roles().at(logits.name) == "lm_head");
  CHECK(r.roles().at(x0.name) == "embedding");
  CHECK(r.blocks.blocks.size() == 1);

  const model::Decoder m = decoder_of(r);
  CHECK(m.num_layers() == 2);
  CHECK(m.hidden == 64);
  CHECK(m.vocab == 1000);
  CHECK(m.position_embeddings == 16);
  CHECK(m.tied_embeddings);
  CHECK(m.norm == model::Norm::layer);
  REQUIRE(m.kinds.size() == 1);
  const model::Attention attention = {.heads = 4,
                                      .kv_heads = 4,
                                      .head_dim = 16,
                                      .v_head_dim = 16,
                                      .window = {},
                                      .latent = {},
                                      .qkv_bias = true,
                                      .o_bias = true,
                                      .fused_qkv = true};
  CHECK(m.kinds[0].attention == attention);
  const model::FeedForward mlp = {
      .intermediate = 256, .gated = false, .activation = model::Activation::gelu_tanh, .bias = true, .experts = {}};
  CHECK(m.kinds[0].feed_forward == mlp);
  CHECK(m.kinds[0].norms == 2);
}

TEST_CASE("Heads in groups: products of five dimensions, a group of queries for each head of keys") {
  ProgramText p;
  const Named x = p.argument({3, 10, 48});
  const Named h = p.rms_norm(x);
  const Named q = p.linear(h, 8 * 6);
  const Named k = p.linear(h, 2 * 6);
  const Named v = p.linear(h, 2 * 6);
  // [3, 10, 2, 4, 6] with [3, 10, 2, 6]: [3, 2, 10, 4, 10]
  const Named scores = p.product(p.reshape(q, {3, 10, 2, 4, 6}), p.reshape(k, {3, 10, 2, 6}),
                                 {.batch = {{0, 2}, {0, 2}}, .contracted = {{4}, {3}}});
  const Named values =
      p.product(p.softmax(scores), p.reshape(v, {3, 10, 2, 6}), {.batch = {{0, 1}, {0, 2}}, .contracted = {{4}, {1}}});
  const Named output = p.linear(p.reshape(p.transpose(values, {0, 2, 1, 3, 4}), {3, 10, 48}), 48);
  const Named y = p.binary("add", x, output);
  const Recovered r(p, y);
  CHECK(r.roles() == attention_roles(q, k, v, scores, values, output));
  REQUIRE(r.blocks.blocks.size() == 1);
  const AttentionShape expected = {
      .batch = 3, .queries = 10, .keys = 10, .heads = 8, .kv_heads = 2, .head_dim = 6, .v_head_dim = 6};
  CHECK(r.blocks.blocks[0].attentions[0] == expected);
  CHECK(says(refusal(r), "without a feed-forward"));
}

TEST_CASE("Rows of all sequences in one dimension, batch and heads merged, softmax in another type") {
  ProgramText p;
  const Named x = p.argument({2, 12, 32});
  const Named rows = p.reshape(p.rms_norm(x), {24, 32});
  const Named q = p.linear(rows, 32);
  const Named k = p.linear(rows, 32);
  const Named v = p.linear(rows, 32);
  const auto split = [&](const Named& t) {
    return p.reshape(p.transpose(p.reshape(t, {2, 12, 4, 8}), {0, 2, 1, 3}), {8, 12, 8});
  };
  const Named scores = p.product(p.binary("multiply", split(q), 0.35), p.transpose(split(k), {0, 2, 1}),
                                 {.batch = {{0}, {0}}, .contracted = {{2}, {1}}});
  const Named wide =
      p.add("stablehlo.convert " + scores.name + " : (tensor<8x12x12xf32>) -> tensor<8x12x12xf32>", {8, 12, 12});
  const Named values = p.product(p.softmax(p.causal(wide)), split(v), {.batch = {{0}, {0}}, .contracted = {{2}, {1}}});
  const Named merged = p.reshape(p.transpose(p.reshape(values, {2, 4, 12, 8}), {0, 2, 1, 3}), {24, 32});
  const Named output = p.linear(merged, 32);
  const Named after = p.binary("add", x, p.reshape(output, {2, 12, 32}));
  const Named h = p.reshape(p.rms_norm(after), {24, 32});
  const Named gate_up = p.linear(h, 2 * 80);
  const Named down = p.linear(p.binary("multiply", p.silu(p.slice(gate_up, 0, 80)), p.slice(gate_up, 80, 160)), 32);
  const Recovered r(p, p.binary("add", after, p.reshape(down, {2, 12, 32})));
  CHECK(r.roles() ==
        attention_roles(q, k, v, scores, values, output, {{gate_up.name, "gate_up"}, {down.name, "down"}}));
  REQUIRE(r.blocks.blocks.size() == 1);
  const AttentionShape expected = {
      .batch = 2, .queries = 12, .keys = 12, .heads = 4, .kv_heads = 4, .head_dim = 8, .v_head_dim = 8, .masked = true};
  CHECK(r.blocks.blocks[0].attentions[0] == expected);
  const model::FeedForward mlp = {.intermediate = 80, .fused_gate_up = true, .experts = {}};
  CHECK(decoder_of(r).kinds[0].feed_forward == mlp);
}

}  // namespace llmperf::program::block_layouts_test
