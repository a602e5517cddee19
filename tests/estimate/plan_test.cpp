// What a plan costs, against the closed forms of the usual parallelism analyses (a GPT block, 2 bytes an element;
// alpha = (n - 1) / n) and by hand for published models.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "catch.h"
#include "cost/collective.h"
#include "cost/memory.h"
#include "estimate/estimate.h"
#include "estimate/explain.h"
#include "estimate/schedule.h"
#include "graph/random_decoder.h"
#include "model/parameters.h"

using namespace llmperf;
using estimate::Choices;
using estimate::Estimate;
using estimate::Estimator;
using estimate::Explanation;
using estimate::Scenario;
using graph::Collective;
using graph::CollectiveKind;
using graph::Execution;
using graph::Graph;
using graph::Op;
using graph::Plan;
using graph::SequenceGroup;

namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

const model::Decoder& decoder(const std::string& name) {
  static std::map<std::string, model::Decoder> loaded;
  const auto found = loaded.find(name);
  return found != loaded.end() ? found->second : loaded.emplace(name, model::load_decoder(name)).first->second;
}

const hardware::Device& device(const std::string& name) {
  static std::map<std::string, hardware::Device> loaded;
  const auto found = loaded.find(name);
  return found != loaded.end() ? found->second : loaded.emplace(name, hardware::load_device(name)).first->second;
}

Estimator estimator(const std::string& model, const std::string& hardware, const Plan& plan,
                    const std::function<void(Choices&)>& more = {}) {
  Choices choices;
  choices.plan = plan;
  REQUIRE(graph::legal(decoder(model), plan));
  if (more) more(choices);
  return Estimator(estimate::make_setup(decoder(model), device(hardware), choices));
}

Execution execution(const model::Decoder& m, const Plan& plan) {
  Execution e;
  e.model = &m;
  e.weights = model::uniform_layout(m, model::parse_weight_scheme("bf16"));
  e.kv.keys = e.kv.values = model::parse_kv_scheme("bf16");
  e.plan = plan;
  return e;
}

// Layers of the GPT block, with other dimensions; g: query heads of a KV head.
model::Decoder gpt_block(std::int64_t hidden, std::int64_t heads, std::int64_t g = 1, std::int64_t layers = 1) {
  const model::Decoder& block = decoder("gpt-block");
  model::Layer layer = block.kinds.front();
  layer.attention.heads = heads;
  layer.attention.kv_heads = heads / g;
  layer.attention.head_dim = layer.attention.v_head_dim = hidden / heads;
  layer.feed_forward.intermediate = 4 * hidden;
  model::Decoder m;
  m.name = "gpt";
  m.norm = block.norm;
  m.hidden = hidden;
  m.vocab = block.vocab;
  for (std::int64_t i = 0; i < layers; ++i) m.add_layer(layer);
  return m;
}

struct Dimensions {
  std::int64_t b, s, h, a;
  double bsh() const { return d(b) * d(s) * d(h); }
};
// Random ones that `divisor` divides.
Dimensions dimensions(test::Random& random, std::int64_t divisor) {
  const std::int64_t a = divisor * random.in(1, 4);
  return {random.in(1, 6), 2 * divisor * random.in(1, 8), a * 8 * random.in(1, 6), a};
}

bool in_layers(const Op& op) { return op.layer_kind >= 0; }

// Bytes that a device sends in the ops that `counts` picks.
double sent(const Graph& graph, const std::function<bool(const Op&, const Collective&)>& counts) {
  double sum = 0;
  for (const Op& op : graph) {
    const auto* c = std::get_if<Collective>(&op.body);
    if (c && counts(op, *c)) sum += cost::sent_bytes(*c).value * d(op.count);
  }
  return sum;
}
double sent_in_layers(const Graph& graph, CollectiveKind kind) {
  return sent(graph, [&](const Op& op, const Collective& c) { return in_layers(op) && c.kind == kind; });
}
double sent_in_layers(const Graph& graph) {
  return sent(graph, [](const Op& op, const Collective&) { return in_layers(op); });
}

Graph prompt(const model::Decoder& m, const Plan& plan, const Dimensions& x) {
  REQUIRE(graph::legal(m, plan));
  const Execution e = execution(m, plan);
  const SequenceGroup group{x.b, x.s, 0};
  Graph graph;
  graph::build_step(e, {&group, 1}, graph::Part::all, graph);
  // The formats are the execution's, which ends here; collectives have none.
  std::erase_if(graph, [](const Op& op) { return !std::holds_alternative<Collective>(op.body); });
  return graph;
}

}  // namespace

// ---- Volumes

TEST_CASE("a GPT-3 block over 8 devices: two all-reduces of 2 b s h bytes each") {
  // b 1, s 2048, h 12288: 50,331,648 bytes; each device sends 2 * 7/8 of them, twice.
  const Graph graph = prompt(decoder("gpt-block"), {.tensor = 8}, {1, 2048, 12288, 96});
  int reduces = 0;
  for (const Op& op : graph) {
    if (!in_layers(op)) continue;
    ++reduces;
    const auto& c = std::get<Collective>(op.body);
    CHECK(c.kind == CollectiveKind::all_reduce);
    CHECK(c.ranks == 8);
    CHECK(c.bytes().value == 50331648);
  }
  CHECK(reduces == 2);
  CHECK(sent_in_layers(graph) == 96 * 176160768.0);  // layers
}

TEST_CASE("tensor parallelism sends 8 alpha b s h bytes in the forward pass of a layer") {
  test::Random random(1);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t n = random.in(2, 16);
    const Dimensions x = dimensions(random, n);
    const std::int64_t layers = random.in(1, 5);
    const model::Decoder m = gpt_block(x.h, x.a, 1, layers);
    const double alpha = d(n - 1) / d(n);
    CHECK(sent_in_layers(prompt(m, {.tensor = n}, x)) == Approx(8 * alpha * x.bsh() * d(layers)));
    // Fewer KV heads change nothing: what travels is the result.
    const model::Decoder grouped = gpt_block(x.h, x.a, x.a / n, layers);
    CHECK(sent_in_layers(prompt(grouped, {.tensor = n}, x)) == Approx(8 * alpha * x.bsh() * d(layers)));
  }
}

TEST_CASE("sequence parallelism takes two all-gathers and two reduce-scatters of b s h: the same bytes") {
  test::Random random(2);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t n = random.in(2, 16);
    const Dimensions x = dimensions(random, n);
    const model::Decoder m = gpt_block(x.h, x.a);
    const Graph graph = prompt(m, {.tensor = n, .sequence_parallel = true}, x);
    const double alpha = d(n - 1) / d(n);
    CHECK(sent_in_layers(graph, CollectiveKind::all_gather) == Approx(2 * 2 * alpha * x.bsh()));
    CHECK(sent_in_layers(graph, CollectiveKind::reduce_scatter) == Approx(2 * 2 * alpha * x.bsh()));
    CHECK(sent_in_layers(graph) == Approx(sent_in_layers(prompt(m, {.tensor = n}, x))));
  }
}

TEST_CASE("Ulysses sends 6 alpha b s h / n bytes for q, k, v and 2 alpha b s h / n for the result") {
  test::Random random(3);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t n = random.in(2, 16);
    const Dimensions x = dimensions(random, n);
    const double alpha = d(n - 1) / d(n);
    const Graph graph = prompt(gpt_block(x.h, x.a), {.ulysses = n}, x);
    const auto named = [&](std::string_view name) {
      return sent(graph, [&](const Op& op, const Collective& c) {
        return op.name == name && c.kind == CollectiveKind::all_to_all;
      });
    };
    const double one = 2 * alpha * x.bsh() / d(n);
    CHECK(named("q_all_to_all") == Approx(one));
    CHECK(named("k_all_to_all") == Approx(one));
    CHECK(named("v_all_to_all") == Approx(one));
    CHECK(named("o_all_to_all") == Approx(one));
    CHECK(sent_in_layers(graph) == Approx(8 * alpha * x.bsh() / d(n)));
    // Grouped heads: k and v shrink by kv_heads / heads.
    const std::int64_t g = x.a / n;
    CHECK(sent_in_layers(prompt(gpt_block(x.h, x.a, g), {.ulysses = n}, x)) == Approx((2 + 2 / d(g)) * one));
  }
}

TEST_CASE("Ring sends 4 alpha b s h bytes, beside attention") {
  test::Random random(4);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t n = random.in(2, 16);
    const Dimensions x = dimensions(random, n);
    const double alpha = d(n - 1) / d(n);
    const Graph graph = prompt(gpt_block(x.h, x.a), {.ring = n}, x);
    CHECK(sent_in_layers(graph) == Approx(4 * alpha * x.bsh()));
    for (const Op& op : graph) {
      if (in_layers(op)) CHECK(op.overlaps);
    }
    const std::int64_t g = x.a / n;
    CHECK(sent_in_layers(prompt(gpt_block(x.h, x.a, g), {.ring = n}, x)) == Approx(4 * alpha * x.bsh() / d(g)));
  }
}

TEST_CASE("Ulysses times Ring sends what each does with the other's share, and is the other where one is 1") {
  test::Random random(5);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t u = random.in(1, 6);
    const std::int64_t r = random.in(1, 6);
    const std::int64_t t = random.in(1, 3);
    const Dimensions x = dimensions(random, u * r * t);
    const Graph graph = prompt(gpt_block(x.h, x.a), {.tensor = t, .ulysses = u, .ring = r}, x);
    const double of_heads = x.bsh() / d(t);
    CHECK(sent_in_layers(graph, CollectiveKind::all_to_all) ==
          Approx(8 * d(u - 1) / d(u) * of_heads / d(u * r)).margin(1e-9));
    CHECK(sent_in_layers(graph, CollectiveKind::ring_pass) ==
          Approx(4 * d(r - 1) / d(r) * of_heads / d(u)).margin(1e-9));
    CHECK(sent_in_layers(graph, CollectiveKind::all_reduce) ==
          Approx(8 * d(t - 1) / d(t) * x.bsh() / d(u * r)).margin(1e-9));
  }
}

TEST_CASE("two-dimensional products h -> e gather b s h (n-1)/(m n) and scatter b s e (m-1)/(m n) elements") {
  test::Random random(6);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t m = random.in(1, 4);  // rows
    const std::int64_t n = random.in(1, 4);  // columns
    const Dimensions x = dimensions(random, m * n);
    const Graph graph = prompt(gpt_block(x.h, x.a), {.tensor = m * n, .tensor_rows = m}, x);
    // qkv h -> 3 h, out h -> h, up h -> 4 h, down 4 h -> h: inputs 7 h, outputs 9 h.
    const auto mn = d(m * n);
    CHECK(sent_in_layers(graph, CollectiveKind::all_gather) == Approx(2 * 7 * x.bsh() * d(n - 1) / mn).margin(1e-9));
    CHECK(sent_in_layers(graph, CollectiveKind::reduce_scatter) ==
          Approx(2 * 9 * x.bsh() * d(m - 1) / mn).margin(1e-9));
    // Beside them only the statistics of the two norms: a mean and a variance per token.
    CHECK(sent_in_layers(graph, CollectiveKind::all_reduce) ==
          Approx(2 * 2 * d(x.b * x.s) * 2 * 2 * (mn - 1) / mn).margin(1e-9));
  }
}

TEST_CASE("a stage sends 2 b s h bytes to the next one, each device its share") {
  test::Random random(7);
  for (int i = 0; i < 100; ++i) {
    const std::int64_t t = random.in(2, 4);
    const std::int64_t u = random.in(1, 3);
    const std::int64_t p = random.in(2, 6);
    const Dimensions x = dimensions(random, t * u);
    const model::Decoder m = gpt_block(x.h, x.a, 1, p * random.in(1, 3));
    const auto sends = [&](Plan plan) {
      plan.pipeline = p;
      return sent(prompt(m, plan, x), [](const Op&, const Collective& c) { return c.kind == CollectiveKind::send; });
    };
    const double boundaries = d(p - 1);
    CHECK(sends({}) == Approx(2 * x.bsh() * boundaries));
    CHECK(sends({.ulysses = u}) == Approx(2 * x.bsh() * boundaries / d(u)));
    CHECK(sends({.tensor = t}) == Approx(2 * x.bsh() * boundaries));
    CHECK(sends({.tensor = t, .sequence_parallel = true}) == Approx(2 * x.bsh() * boundaries / d(t)));
    CHECK(sends({.tensor = t, .tensor_rows = 1}) == Approx(2 * x.bsh() * boundaries / d(t)));
  }
}

// ---- Memory

namespace {

// Bytes at 2 per element: all devices of the plan together, every copy counted.
double weights_of_all_devices(const model::Decoder& m, const Plan& plan) {
  const Execution e = execution(m, plan);
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
    elements += d(m.hidden * (m.norm == model::Norm::layer ? 2 : 1));
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
      const double copies = a.latent ? d(plan.tensor) : std::max(1.0, d(plan.tensor) / d(a.kv_heads));
      expected += cost::layer_kv_bytes(e.kv, a, e.cached_tokens(a, tokens)).value * d(m.count_of_kind(kind)) * copies;
    }
    double all = 0;
    for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
      all += cost::stage_kv_bytes(e, graph::stage_layers(m, plan, stage), tokens).value;
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

// ---- Estimates

namespace {

// Of a random model: a legal plan, a scenario that it divides, on hardware of any size.
struct Case {
  model::Decoder model;
  hardware::Device hardware;
  estimate::Setup setup;
  Scenario scenario;
};
std::unique_ptr<Case> random_case(test::Random& random) {
  auto c = std::make_unique<Case>();
  c->model = test::random_decoder(random);
  c->hardware = device(random.chance() ? "h100-sxm" : "atlas-800i-a2");
  Choices choices;
  choices.plan = test::random_plan(random, c->model);
  choices.runtime = test::random_options(random);
  choices.activations = "bf16";
  static const char* const kSchemes[] = {"bf16", "fp8", "w8a8", "w4a16-g32"};
  choices.weights = kSchemes[random.in(0, 3)];
  const Plan& p = choices.plan;
  std::int64_t batch = p.data * random.in(1, 3);
  if (random.chance()) batch *= p.pipeline;
  if (random.in(0, 2) == 0) {
    choices.pipeline_batches = random.in(1, 3);
    batch = p.data * choices.pipeline_batches * random.in(1, 2);
  }
  c->scenario = {batch, test::smallest_prompt(p) * random.in(1, 20), random.in(1, 200)};
  c->setup = estimate::make_setup(c->model, c->hardware, choices);
  return c;
}

bool agrees(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

void check_rules(const Explanation& x) {
  INFO(x.path << " = " << x.formula);
  const std::string numbers = estimate::substitute(x.formula, x.variables);
  const double value = estimate::evaluate(numbers, {});
  if (!agrees(value, x.value)) CHECK(value == x.value);
  for (const Explanation& part : x.parts) check_rules(part);
}

}  // namespace

TEST_CASE("every number of an estimate with a plan is reproduced by its formula") {
  test::Random random(21);
  for (int i = 0; i < 25; ++i) {
    const auto c = random_case(random);
    INFO("case " << i << ", " << graph::to_text(c->setup.execution.plan));
    Estimator e(c->setup);
    const Estimate result = e.run(c->scenario);
    REQUIRE(result.fits);
    for (const std::string& path : explainable_paths(result)) {
      try {
        check_rules(explain(e, result, path));
      } catch (const std::exception& error) {
        FAIL_CHECK(path << ": " << error.what());
      }
    }
  }
}

TEST_CASE("the mean decode step is the mean of the steps, whatever the plan") {
  test::Random random(22);
  for (int i = 0; i < 60; ++i) {
    const auto c = random_case(random);
    c->scenario.generate = std::min<std::int64_t>(c->scenario.generate, 40) + 1;
    INFO("case " << i << ", " << graph::to_text(c->setup.execution.plan));
    Estimator e(c->setup);
    const Estimate result = e.run(c->scenario);
    const estimate::Phase& decode = result.phases.at(1);
    cost::Work sum;
    double ops_seconds = 0;
    for (std::int64_t step = 0; step < decode.steps; ++step) {
      const SequenceGroup group = e.decode_at(c->scenario, c->scenario.prompt + step);
      Graph graph;
      graph::build_step(c->setup.execution, {&group, 1}, graph::Part::all, graph);
      for (const Op& op : graph) {
        const cost::Work work = e.work(op);
        sum += work * d(op.count * decode.micro_batches);
        ops_seconds += e.time(op, work).total.value * d(op.count * decode.micro_batches);
      }
    }
    const double steps = d(decode.steps);
    CHECK(decode.work.matrix.value == Approx(sum.matrix.value / steps).epsilon(1e-7));
    CHECK(decode.work.bytes().value == Approx(sum.bytes().value / steps).epsilon(1e-7));
    CHECK(decode.work.network.value == Approx(sum.network.value / steps).epsilon(1e-7));
    CHECK(decode.ops_time.value == Approx(ops_seconds / steps).epsilon(1e-7));
  }
}

TEST_CASE("the times of ops are those of the phase, and network bytes those of its collectives") {
  test::Random random(23);
  for (int i = 0; i < 100; ++i) {
    const auto c = random_case(random);
    INFO("case " << i << ", " << graph::to_text(c->setup.execution.plan));
    Estimator e(c->setup);
    const Estimate result = e.run(c->scenario);
    for (const estimate::Phase& phase : result.phases) {
      double seconds = 0;
      double network = 0;
      for (const estimate::OpEstimate& op : phase.ops) {
        seconds += op.step_time().value;
        if (const auto* collective = std::get_if<Collective>(&op.op.body)) {
          network += cost::sent_bytes(*collective).value * d(op.op.count);
        }
      }
      CHECK(phase.ops_time.value == Approx(seconds).epsilon(1e-9));
      CHECK(phase.ops_time.value == Approx((phase.time + phase.overlapped + phase.pipelined).value).epsilon(1e-9));
      CHECK(phase.work.network.value == Approx(network).epsilon(1e-9));
      CHECK(phase.time.value >= phase.roof.value * (1 - 1e-9));
      if (e.setup().execution.plan.devices() == 1) CHECK(phase.work.network.value == 0);
    }
  }
}

TEST_CASE("replicas serve their share of the batch in the time one takes for it") {
  for (const char* model : {"llama-2-7b", "mixtral-8x7b"}) {
    Estimator one = estimator(model, "h200-sxm", {.tensor = 4});
    Estimator three = estimator(model, "h200-sxm", {.tensor = 4, .data = 3});
    const Estimate a = one.run({5, 300, 50});
    const Estimate b = three.run({15, 300, 50});
    CHECK(b.total.value == a.total.value);
    CHECK(b.tokens_per_second == Approx(3 * a.tokens_per_second));
    CHECK(b.largest_batch == 3 * a.largest_batch);
    CHECK(b.longest_context == a.longest_context);
  }
}

TEST_CASE("equal stages prefill in micro-batches + stages - 1 slots, and decode one micro-batch after the other") {
  // Four layers, no head to speak of: one vocabulary entry.
  model::Decoder m = gpt_block(4096, 32, 1, 4);
  m.vocab = 1;
  Choices choices;
  choices.activations = "bf16";
  hardware::Device hardware = device("h100-sxm");
  const auto prefill = [&](std::int64_t stages, std::int64_t batches, std::int64_t batch) {
    choices.plan.pipeline = stages;
    choices.pipeline_batches = batches;
    return Estimator(estimate::make_setup(m, hardware, choices)).run({batch, 1024, 2});
  };
  const double layer = [&] {
    double sum = 0;
    const Estimate whole = prefill(1, 0, 1);
    for (const auto& op : whole.phases[0].ops) sum += op.op.layer_kind >= 0 ? op.step_time().value / 4 : 0;
    return sum;
  }();
  for (const std::int64_t batches : {1, 2, 8}) {
    const Estimate e = prefill(4, batches, batches);
    CHECK(e.phases[0].micro_batches == batches);
    // What the stages send and the ends of the model add is less than a tenth here.
    const double slots = d(batches + 3);
    CHECK(e.ttft.value > slots * layer);
    CHECK(e.ttft.value < slots * layer * 1.1);
  }
}
