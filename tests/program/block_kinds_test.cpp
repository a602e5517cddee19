#include "program/recovered.h"

namespace llmperf::program::block_kinds_test {

TEST_CASE("One head of keys and values for all queries, in a block whose two halves read the same") {
  ProgramText p;
  const Named x = p.argument({1, 20, 64});
  const Named h = p.layer_norm(x);
  const Named q = p.linear(h, 64);
  const Named k = p.linear(h, 16);
  const Named v = p.linear(h, 16);
  // [1, 20, 4, 16] with [1, 20, 16]: [1, 20, 4, 20], masked as [1, 4, 20, 20]
  const Named scores = p.product(p.reshape(q, {1, 20, 4, 16}), k, {.batch = {{0}, {0}}, .contracted = {{3}, {2}}});
  const Named weights = p.softmax(p.causal(p.transpose(scores, {0, 2, 1, 3})));
  const Named values = p.product(weights, v, {.batch = {{0}, {0}}, .contracted = {{3}, {1}}});
  const Named output = p.linear(p.reshape(p.transpose(values, {0, 2, 1, 3}), {1, 20, 64}), 64);
  const Named up = p.linear(h, 256);
  const Named down = p.linear(p.binary("maximum", up, 0.0), 64);
  const Recovered r(p, p.binary("add", x, p.binary("add", output, down)));
  CHECK(r.roles() == attention_roles(q, k, v, scores, values, output, {{up.name, "up"}, {down.name, "down"}}));
  const model::Layer layer = decoder_of(r).kinds[0];
  CHECK(layer.attention.heads == 4);
  CHECK(layer.attention.kv_heads == 1);
  CHECK(layer.feed_forward.activation == model::Activation::relu);
  CHECK(layer.parallel_blocks);
  CHECK(layer.norms == 1);
}

TEST_CASE("Routed experts: a router, and matrices in a batch of experts") {
  ProgramText p;
  const Named x = p.argument({16, 32});
  const Named h = p.rms_norm(x);
  const Attended a = [&] {
    const Named one = p.reshape(h, {1, 16, 32});
    return attend_heads_in_front(p, p.linear(one, 32), p.linear(one, 32), p.linear(one, 32), 2, true);
  }();
  const Named after = p.binary("add", x, p.reshape(a.output, {16, 32}));
  const Named g = p.rms_norm(after);
  const Named router = p.linear(g, 8);
  const Named chosen = p.add("chlo.top_k(" + router.name +
                                 ", k = 2) : tensor<16x8xf32> -> (tensor<16x2xf32>, "
                                 "tensor<16x2xi32>)",
                             {16, 2});
  (void)chosen;
  const Named spread = p.broadcast(g, {1, 2}, {8, 16, 32});  // every expert sees all tokens
  const auto expert = [&](const Named& t, std::int64_t out) {
    return p.product(t, p.argument({8, t.dims[2], out}), {.batch = {{0}, {0}}, .contracted = {{2}, {1}}});
  };
  const Named gate = expert(spread, 24);
  const Named up = expert(spread, 24);
  const Named down = expert(p.binary("multiply", p.silu(gate), up), 32);
  const Recovered r(p, down);
  CHECK(r.roles().at(router.name) == "router");
  CHECK(r.roles().at(gate.name) == "expert_gate");
  CHECK(r.roles().at(up.name) == "expert_up");
  CHECK(r.roles().at(down.name) == "expert_down");
  const auto experts = decoder_of(r).kinds[0].feed_forward.experts;
  REQUIRE(experts);
  CHECK(experts->count == 8);
  CHECK(experts->intermediate == 24);
}

TEST_CASE("Scores with a bias that is looked up, and a projection with an adapter, are still what they are") {
  ProgramText p;
  const Named x = p.argument({1, 16, 64});
  const Named h = p.rms_norm(x);
  const Named q = p.linear(h, 64);
  const Named into = p.linear(h, 4);
  const Named out = p.linear(into, 64);
  const Named adapted = p.binary("add", out, q);
  const Named k = p.linear(h, 64);
  const Named v = p.linear(h, 64);
  const auto split = [&](const Named& t) { return p.transpose(p.reshape(t, {1, 16, 4, 16}), {0, 2, 1, 3}); };
  const Named scores = p.product(split(adapted), split(k), {.batch = {{0, 1}, {0, 1}}, .contracted = {{3}, {3}}});
  const Named table = p.argument({32, 4});
  const Named buckets = p.indices({16, 16, 1});
  const Named looked_up =
      p.add("\"stablehlo.gather\"(" + table.name + ", " + buckets.name +
                ") <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], "
                "start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 4>}> : (tensor<32x4xf32>, "
                "tensor<16x16x1xi32>) -> tensor<16x16x4xf32>",
            {16, 16, 4});
  const Named bias = p.reshape(p.transpose(looked_up, {2, 0, 1}), {1, 4, 16, 16});
  const Named values = p.product(p.softmax(p.binary("add", bias, scores)), split(v),
                                 {.batch = {{0, 1}, {0, 1}}, .contracted = {{3}, {2}}});
  const Named output = p.linear(p.reshape(p.transpose(values, {0, 2, 1, 3}), {1, 16, 64}), 64);
  const Recovered r(p, p.binary("add", x, output));
  CHECK(r.roles() == attention_roles(q, k, v, scores, values, output, {{into.name, "other"}, {out.name, "other"}}));
}

TEST_CASE("Queries through two matrices with a norm between: the first is latent") {
  ProgramText p;
  const Named x = p.argument({1, 16, 64});
  const Named h = p.rms_norm(x);
  const Named q_a = p.linear(h, 24);
  const Named q = p.linear(p.rms_norm(q_a), 64);
  const Attended a = attend_heads_in_front(p, q, p.linear(h, 64), p.linear(h, 64), 4, true);
  const Recovered r(p, p.binary("add", x, a.output));
  CHECK(r.roles().at(q_a.name) == "latent");
  CHECK(r.roles().at(q.name) == "query");
  REQUIRE(r.blocks.blocks.size() == 1);
  CHECK(r.blocks.blocks[0].hidden == 64);
  CHECK(r.blocks.blocks[0].attentions[0].latent);
}

TEST_CASE("Products of a backward pass are no attention") {
  ProgramText p;
  const Named x = p.argument({1, 16, 64});
  const Named h = p.rms_norm(x);
  const auto split = [&](const Named& t) { return p.transpose(p.reshape(t, {1, 16, 4, 16}), {0, 2, 1, 3}); };
  const Named q = split(p.linear(h, 64));
  const Named k = split(p.linear(h, 64));
  const Named v = split(p.linear(h, 64));
  const Named scores = p.product(q, k, {.batch = {{0, 1}, {0, 1}}, .contracted = {{3}, {3}}});
  const Named weights = p.softmax(p.causal(scores));
  const Named values = p.product(weights, v, {.batch = {{0, 1}, {0, 1}}, .contracted = {{3}, {2}}});
  const Named gradient = p.argument({1, 4, 16, 16});
  const Named of_v = p.product(weights, gradient, {.batch = {{0, 1}, {0, 1}}, .contracted = {{2}, {2}}});
  const Named of_weights = p.product(gradient, v, {.batch = {{0, 1}, {0, 1}}, .contracted = {{3}, {3}}});
  const Named inner = p.binary("subtract", of_weights, p.statistic("add", p.binary("multiply", of_weights, weights)));
  const Named of_scores = p.binary("multiply", weights, inner);
  const Named of_q = p.product(of_scores, k, {.batch = {{0, 1}, {0, 1}}, .contracted = {{3}, {2}}});
  const Recovered r(p, p.binary("add", p.binary("add", of_q, of_v), values));
  CHECK(r.roles().at(scores.name) == "scores");
  CHECK(r.roles().at(values.name) == "values");
  for (const Named& product : {of_v, of_weights, of_q}) CHECK(r.roles().at(product.name) == "other");
  REQUIRE(r.blocks.blocks.size() == 1);
  CHECK(r.blocks.blocks[0].attentions.size() == 1);
}

TEST_CASE("A loop over tokens with a cache passes over one layer, whose queries see the whole cache") {
  ProgramText p;
  const Named x = p.argument({1, 1, 64});
  const Named keys = p.argument({1, 32, 2, 16});
  const Named cached = p.argument({1, 32, 2, 16});
  const Named at = p.indices({});
  const Named h = p.rms_norm(x);
  const Named q = p.linear(h, p.argument({64, 64}));
  const Named k = p.linear(h, p.argument({64, 32}));
  const Named v = p.linear(h, p.argument({64, 32}));
  const auto written = [&](const Named& cache, const Named& row) {
    return p.add("stablehlo.dynamic_update_slice " + cache.name + ", " + p.reshape(row, {1, 1, 2, 16}).name + ", " +
                     at.name + ", " + at.name + ", " + at.name + ", " + at.name +
                     " : (tensor<1x32x2x16xf32>, tensor<1x1x2x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, "
                     "tensor<i32>) -> tensor<1x32x2x16xf32>",
                 {1, 32, 2, 16});
  };
  const Named all_keys = written(keys, k);
  const Named all_values = written(cached, v);
  const Named scores =
      p.product(p.reshape(q, {1, 1, 2, 2, 16}), all_keys, {.batch = {{0, 2}, {0, 2}}, .contracted = {{4}, {3}}});
  const Named values = p.product(p.softmax(scores), all_values, {.batch = {{0, 1}, {0, 2}}, .contracted = {{4}, {1}}});
  const Named output = p.linear(p.reshape(values, {1, 1, 64}), p.argument({64, 64}));
  const Named after = p.binary("add", x, output);
  const Named g = p.rms_norm(after);
  const Named gate = p.linear(g, p.argument({64, 96}));
  const Named up = p.linear(g, p.argument({64, 96}));
  const Named down = p.linear(p.binary("multiply", p.silu(gate), up), p.argument({96, 64}));
  const Named y = p.binary("add", after, down);
  // x, both caches and the counter go round; the weights do not change.
  const std::string step = "func.func private @step" + p.function({y, all_keys, all_values});
  const std::string types = "tensor<1x1x64xf32>, tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>";
  const std::string weights =
      ", tensor<64xf32>, tensor<64x64xf32>, tensor<64x32xf32>, tensor<64x32xf32>, "
      "tensor<64x64xf32>, tensor<64xf32>, tensor<64x96xf32>, tensor<64x96xf32>, "
      "tensor<96x64xf32>";
  const std::string main = R"(func.func @main(%x: tensor<1x1x64xf32>, %k: tensor<1x32x2x16xf32>,
      %v: tensor<1x32x2x16xf32>, %n1: tensor<64xf32>, %wq: tensor<64x64xf32>, %wk: tensor<64x32xf32>,
      %wv: tensor<64x32xf32>, %wo: tensor<64x64xf32>, %n2: tensor<64xf32>, %wg: tensor<64x96xf32>,
      %wu: tensor<64x96xf32>, %wd: tensor<96x64xf32>) -> tensor<1x1x64xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:4 = stablehlo.while(%i = %zero, %a = %x, %b = %k, %c = %v) : tensor<i32>, )" +
                           types + R"(
     cond {
      %end = stablehlo.constant dense<16> : tensor<i32>
      %more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %s:3 = func.call @step(%a, %b, %c, %i, %n1, %wq, %wk, %wv, %wo, %n2, %wg, %wu, %wd) : ()" +
                           types + ", tensor<i32>" + weights + ") -> (" + types + R"()
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %s#0, %s#1, %s#2 : tensor<i32>, )" +
                           types + R"(
    }
    return %r#1 : tensor<1x1x64xf32>
  }
)";
  const Recovered r(parse_text("test.mlir", main + step));
  CHECK(r.roles() ==
        attention_roles(q, k, v, scores, values, output, {{gate.name, "gate"}, {up.name, "up"}, {down.name, "down"}}));
  REQUIRE(r.blocks.blocks.size() == 1);
  CHECK(r.blocks.blocks[0].layers == 1);
  CHECK(r.blocks.blocks[0].passes == 16);
  const AttentionShape expected = {
      .batch = 1, .queries = 1, .keys = 32, .heads = 4, .kv_heads = 2, .head_dim = 16, .v_head_dim = 16};
  CHECK(r.blocks.blocks[0].attentions[0] == expected);
  CHECK(decoder_of(r).hidden == 64);
}

TEST_CASE("Layers that run over a prompt and over a token again are the layers of one model") {
  ProgramText p;
  struct Layer {
    Named q, k, v, o, up, down;
  };
  const auto weights = [&] {
    return Layer{p.argument({64, 64}), p.argument({64, 64}),  p.argument({64, 64}),
                 p.argument({64, 64}), p.argument({64, 256}), p.argument({256, 64})};
  };
  const Layer layers[] = {weights(), weights()};
  const auto run = [&](Named x) {
    const std::int64_t tokens = x.dims[1];
    for (const Layer& layer : layers) {
      const Named h = p.rms_norm(x);
      const auto heads = [&](const Named& w) { return p.reshape(p.linear(h, w), {1, tokens, 4, 16}); };
      const Named scores =
          p.product(heads(layer.q), heads(layer.k), {.batch = {{0, 2}, {0, 2}}, .contracted = {{3}, {3}}});
      const Named values =
          p.product(p.softmax(scores), heads(layer.v), {.batch = {{0, 1}, {0, 2}}, .contracted = {{3}, {1}}});
      const Named joined = p.reshape(p.transpose(values, {0, 2, 1, 3}), {1, tokens, 64});
      x = p.binary("add", x, p.linear(joined, layer.o));
      x = p.binary("add", x, p.linear(p.silu(p.linear(p.rms_norm(x), layer.up)), layer.down));
    }
    return x;
  };
  const Named prompt = run(p.argument({1, 8, 64}));
  const Named token = run(p.argument({1, 2, 64}));
  const Recovered r(parse_text("test.mlir", "func.func @main" + p.function({prompt, token})));
  REQUIRE(r.blocks.blocks.size() == 2);
  CHECK(r.blocks.blocks[0].layers == 2);
  CHECK_FALSE(r.blocks.blocks[0].again);
  CHECK(r.blocks.blocks[1].layers == 2);
  CHECK(r.blocks.blocks[1].again);
}

TEST_CASE("An MLP is no block, and no model") {
  ProgramText p;
  const Named up = p.linear(p.argument({8, 16}), 64);
  const Named down = p.linear(p.binary("maximum", up, 0.0), 16);
  const Recovered r(p, down);
  CHECK(r.roles() == Roles{{up.name, "up"}, {down.name, "down"}});
  CHECK(r.blocks.blocks.empty());
  CHECK(says(refusal(r), "outside of blocks 1 up, 1 down"));
}

TEST_CASE("Attention without a mask and without a product to words is an encoder, which is refused") {
  ProgramText p;
  const Named x = p.argument({1, 16, 64});
  const Named h = p.layer_norm(x);
  const Attended a = attend_heads_in_front(p, p.linear(h, 64), p.linear(h, 64), p.linear(h, 64), 4, false);
  const Named after = p.binary("add", x, a.output);
  const Named down = p.linear(p.gelu_tanh(p.linear(p.layer_norm(after), 256)), 64);
  const Recovered r(p, p.binary("add", after, down));
  CHECK(r.blocks.blocks.size() == 1);
  CHECK(says(refusal(r), "an encoder"));
  CHECK(says(refusal(r), "1 x block of self attention, feed-forward"));
}

}  // namespace llmperf::program::block_kinds_test
