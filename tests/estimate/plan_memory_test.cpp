// What one device of a plan holds.
#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "catch.h"
#include "cost/memory.h"
#include "estimate/plan_cases.h"
#include "graph/random_decoder.h"
#include "model/parameters.h"

namespace llmperf::plan_memory_test {

using estimate::Choices;
using estimate::Estimate;
using estimate::Estimator;
using estimate::Scenario;
using graph::Collective;
using graph::CollectiveKind;
using graph::Execution;
using graph::Plan;
using graph::SequenceGroup;
using test::decoder;
using test::device;
using test::estimator;
using test::execution;
using test::gpt_block;

namespace {

// Bytes at 2 per element: all devices of the plan together, every copy counted.
double weights_of_all_devices(const model::Decoder& m, const Plan& plan) {
  Execution e = execution(m, plan);
  e.split = test::even_split(m, plan);
  double sum = 0;
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
    sum += cost::stage_weight_bytes(e, stage).value * d(plan.stage());
  }
  return sum;
}

}  // namespace

TEST_CASE("weight bytes of all stages and devices are those of the shares, embedding first and lm_head last") {
  test::Random random(11);
  for (int i = 0; i < 300; ++i) {
    const model::Decoder m = test::random_decoder(random);
    const Plan plan = test::random_plan(random, m);
    if (plan.devices() == 1) continue;
    INFO("model " << i << ", " << graph::to_text(plan));
    double elements = 0;  // of one device of every stage
    for (std::size_t kind = 0; kind < m.kinds.size(); ++kind) {
      for (const model::Tensor& t : model::layer_tensors(m, graph::shard(m.kinds[kind], plan))) {
        elements += d(t.elements() * m.count_of_kind(kind));
      }
    }
    const double table = d(graph::shard_vocab(m, plan) * m.hidden);
    elements += table + d(m.position_embeddings * m.hidden);
    const std::int64_t norms = (m.final_norm ? 1 : 0) + (m.embedding_norm ? 1 : 0);
    elements += d(norms * m.hidden * (m.norm == model::Norm::layer ? 2 : 1));
    const std::int64_t of_layers = m.num_layers() * m.layer_embedding_width;
    elements += d(of_layers * (m.layer_embedding_vocab + m.hidden) + m.layer_embedding_width);
    const std::int64_t n = m.streams.count;
    if (m.streams.mix == model::StreamMix::hyper_connections) elements += d(n * n * m.hidden + n + 1);
    if (m.streams.mix == model::StreamMix::altup) elements += d(2 * (n - 1) * m.hidden * m.hidden);
    if (!m.tied_embeddings || plan.pipeline > 1) elements += table;
    if (m.lm_head_bias) elements += d(m.vocab);
    CHECK(weights_of_all_devices(m, plan) == Approx(2 * elements * d(plan.stage())).epsilon(1e-12));
  }
}

TEST_CASE("KV-cache bytes of all devices are the model's, once per copy of a KV head") {
  test::Random random(12);
  for (int i = 0; i < 300; ++i) {
    const model::Decoder m = test::random_decoder(random);
    const Plan plan = test::random_plan(random, m);
    INFO("model " << i << ", " << graph::to_text(plan));
    const Execution e = execution(m, plan);
    const std::int64_t tokens = random.in(1, 700);
    double expected = 0;
    for (std::size_t kind = 0; kind < m.kinds.size(); ++kind) {
      const model::Attention& a = m.kinds[kind].attention;
      if (!m.kinds[kind].attends()) continue;
      const double copies = a.latent ? d(plan.tensor) : std::max(1.0, d(plan.tensor) / d(a.kv_heads));
      model::Attention own = a;
      own.indexer.reset();
      const double kept = cost::layer_kv_bytes(e.kv, own, e.cached_tokens(a, tokens), tokens).value;
      // Every device has all index keys.
      const double index = cost::layer_kv_bytes(e.kv, a, e.cached_tokens(a, tokens), tokens).value - kept;
      expected += (kept * copies + index * d(plan.tensor)) * d(m.count_of_kind(kind));
    }
    double all = 0;
    for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
      all += cost::stage_kv_bytes(e, test::even_split(m, plan).layers_of_kinds(m, stage), tokens).value;
    }
    CHECK(all * d(plan.tensor * plan.sequence()) == Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("experts per device are all of them over the expert axis and what is left of the tensor axis") {
  const model::Decoder& m = decoder("mixtral-8x7b");
  const double experts = 2.0 * 32 * 8 * 3 * 4096 * 14336;  // bytes
  const double dense = model::placed_weight_bytes(m, execution(m, {}).weights).device.value - experts;
  const auto bytes = [&](const Plan& plan) {
    REQUIRE(graph::legal(m, plan));
    return cost::stage_weight_bytes(execution(m, plan), 0).value;
  };
  CHECK(bytes({.expert = 8, .data = 8}) == dense + experts / 8);
  CHECK(bytes({.expert = 2, .data = 8}) == dense + experts / 2);
  for (const std::int64_t expert : {1, 2, 4, 8}) {  // within the tensor axis always an eighth
    CHECK(bytes({.tensor = 8, .expert = expert}) == bytes({.tensor = 8}));
  }
  CHECK(bytes({.tensor = 2, .data = 4}) - bytes({.tensor = 2, .expert = 8, .data = 4}) == experts / 2 - experts / 8);
}

TEST_CASE("Llama-2-70B on the eight NPUs of an Atlas 800I A2: weights, cache and collectives by hand") {
  // Per layer and NPU: q and o 8192 x 1024, k and v 8192 x 128, three matrices 8192 x 3584, two whole norms.
  const double layer = 2.0 * 8192 * 1024 + 2.0 * 8192 * 128 + 3.0 * 8192 * 3584 + 2 * 8192;
  const double table = 32000.0 * 8192;
  for (const bool sharded : {true, false}) {
    INFO((sharded ? "sharded" : "replicated"));
    Estimator e = estimator("llama-2-70b", "atlas-800i-a2", {.tensor = 8, .shard_embedding = sharded});
    const Estimate result = e.run({4, 1024, 1024});
    CHECK(result.memory.weights.value == 2 * (80 * layer + 8192 + 2 * table / (sharded ? 8 : 1)));
    // One of eight KV heads: 128 keys and 128 values in each of 80 layers, 20,480 values of 2 bytes a token.
    CHECK(result.memory.kv_cache.value == 4.0 * 2048 * 20480 * 2);
    CHECK(result.fits);
    CHECK(e.setup().notes.empty());
    std::map<std::string, const estimate::OpEstimate*> collectives;
    for (const estimate::OpEstimate& op : result.phases[0].ops) {
      if (op.op.place == graph::Place::network) collectives[std::string(op.op.name)] = &op;
    }
    CHECK(collectives.size() == (sharded ? 4 : 2));
    for (const char* name : {"attention_reduce", "mlp_reduce"}) {
      REQUIRE(collectives.count(name) == 1);
      const graph::Op& op = collectives[name]->op;
      CHECK(op.count == 80);
      CHECK(std::get<Collective>(op.body).kind == CollectiveKind::all_reduce);
      CHECK(std::get<Collective>(op.body).bytes().value == 4.0 * 1024 * 8192 * 2);
      CHECK(collectives[name]->work.network.value == 2.0 * 7 / 8 * 4 * 1024 * 8192 * 2);
    }
    const double tables = sharded ? 2.0 * 7 / 8 * 4 * 1024 * 8192 * 2 + 7.0 / 8 * 4 * 32000 * 2 : 0;
    CHECK(result.phases[0].work.network.value == 160 * 2.0 * 7 / 8 * 4 * 1024 * 8192 * 2 + tables);
    // A decode step: the same two per layer, of four tokens.
    CHECK(result.phases[1].work.network.value ==
          Approx(160 * 2.0 * 7 / 8 * 4 * 8192 * 2 +
                 (sharded ? 2.0 * 7 / 8 * 4 * 8192 * 2 + 7.0 / 8 * 4 * 32000 * 2 : 0)));
  }
}

TEST_CASE("without flash attention a device holds its share of the scores and of the repeated keys and values") {
  // 4096 tokens, 32 heads of 128 on 8 KV heads; scores and their softmax are 2 x 32 x 4096 x 4096 elements.
  model::Decoder m = gpt_block(4096, 32, 4);
  const double scores = 2.0 * 32 * 4096 * 4096;
  const double repeated = 2.0 * 4096 * 4096;
  const double rows = 4096.0 * (32 + 8 + 8 + 32) * 128;  // q, k, v and the result
  const auto attention = [&](const Plan& plan) {
    Execution e = execution(m, plan);
    e.runtime.flash_attention = false;
    const SequenceGroup group{1, 4096, 0};
    const double residual = cost::step_share(e, group).residual_elements;
    return cost::activation_peak(e, group).value / 2 - residual;
  };
  CHECK(attention({}) == rows + scores + repeated);
  CHECK(attention({.tensor = 4}) == (rows + scores + repeated) / 4);
  CHECK(attention({.ulysses = 4}) == (rows + scores + repeated) / 4);
  CHECK(attention({.ring = 4}) == (rows + scores) / 4 + repeated);  // some queries, all keys
  CHECK(attention({.ulysses = 2, .ring = 2}) == (rows + scores) / 4 + repeated / 2);
}

TEST_CASE("KV heads fewer than the tensor axis are held several times, and the notes say so") {
  Estimator eight = estimator("llama-2-70b", "h100-sxm", {.tensor = 8});
  Estimator sixteen = estimator("llama-2-70b", "h100-sxm", {.tensor = 16});
  CHECK(eight.setup().notes.empty());
  REQUIRE(sixteen.setup().notes.size() == 1);
  CHECK(sixteen.setup().notes[0] == "8 KV heads on 16 devices: each is held by 2");
  const Scenario s{4, 100, 28};
  CHECK(sixteen.memory(s).kv_cache.value == eight.memory(s).kv_cache.value);
  // The latent of latent attention is whole on every device.
  Estimator one = estimator("deepseek-v2-lite", "h100-sxm", {});
  Estimator four = estimator("deepseek-v2-lite", "h100-sxm", {.tensor = 4});
  CHECK(one.memory(s).kv_cache.value == four.memory(s).kv_cache.value);
}

TEST_CASE("the largest batch fits, and no larger batch that the plan takes does") {
  test::Random random(13);
  int checked = 0;
  for (int i = 0; i < 150; ++i) {
    const model::Decoder m = test::random_decoder(random);
    Choices choices;
    choices.plan = test::random_plan(random, m);
    choices.reserve = Bytes{0};
    choices.runtime = test::random_options(random);
    if (random.in(0, 2) == 0) choices.pipeline_batches = random.in(1, 4);
    hardware::Device hardware = device("h100-sxm");
    const Scenario one{choices.plan.data, test::smallest_prompt(choices.plan), 16};
    const cost::Memory need = Estimator(estimate::make_setup(m, hardware, choices)).memory(one);
    hardware.memory.back().capacity = need.weights + d(random.in(0, 60)) * (need.kv_cache + need.activation);
    Estimator e(estimate::make_setup(m, hardware, choices));
    const Estimate result = e.run(one);
    INFO("model " << i << ", " << graph::to_text(choices.plan) << ", batches " << choices.pipeline_batches);
    const std::int64_t unit = choices.plan.data * std::max<std::int64_t>(1, choices.pipeline_batches);
    std::int64_t largest = 0;
    for (std::int64_t batch = unit; batch <= 400 * unit; batch += unit) {
      if (e.fits({batch, one.prompt, one.generate})) largest = batch;
    }
    if (largest == 400 * unit) continue;
    ++checked;
    CHECK(result.largest_batch == largest);
  }
  CHECK(checked > 50);
}

TEST_CASE("the longest context is a prompt that the plan takes, and no longer one fits") {
  test::Random random(14);
  int checked = 0;
  for (int i = 0; i < 150; ++i) {
    const model::Decoder m = test::random_decoder(random);
    Choices choices;
    choices.plan = test::random_plan(random, m);
    choices.reserve = Bytes{0};
    choices.runtime = test::random_options(random);
    hardware::Device hardware = device("h100-sxm");
    const std::int64_t unit = test::smallest_prompt(choices.plan);
    const Scenario one{choices.plan.data * choices.plan.pipeline, 20 * unit, 16};
    const Bytes need = Estimator(estimate::make_setup(m, hardware, choices)).memory(one).total();
    hardware.memory.back().capacity = need;
    Estimator e(estimate::make_setup(m, hardware, choices));
    const Estimate result = e.run(one);
    INFO("model " << i << ", " << graph::to_text(choices.plan));
    REQUIRE(result.fits);
    const std::int64_t prompt = result.longest_context - one.generate;
    CHECK(prompt >= one.prompt);
    CHECK(prompt % graph::sequence_pieces(choices.plan) == 0);
    if (choices.plan.sequence_parallel) CHECK(prompt % (choices.plan.sequence() * choices.plan.tensor) == 0);
    CHECK(e.fits({one.batch, prompt, one.generate}));
    for (std::int64_t more = 1; more <= 30; ++more) {
      const std::int64_t longer = (prompt / unit + more) * unit;
      if (prompt < estimate::kMaxTokens / 2) CHECK_FALSE(e.fits({one.batch, longer, one.generate}));
    }
    ++checked;
  }
  CHECK(checked == 150);
}

}  // namespace llmperf::plan_memory_test
