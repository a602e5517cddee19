#include "graph/training_graph.h"

#include <algorithm>
#include <map>
#include <string>

#include "catch.h"
#include "graph/random_decoder.h"
#include "model/parameters.h"

namespace llmperf::training_graph_test {

using graph::Axis;
using graph::Collective;
using graph::CollectiveKind;
using graph::Execution;
using graph::Gemm;
using graph::Graph;
using graph::Op;
using graph::Plan;
using graph::Recompute;
using graph::SequenceGroup;
using graph::TrainingOptions;

namespace {

// b sequences of s tokens, hidden size h, a heads, L layers, v words; divided by n.
struct Gpt {
  std::int64_t b, s, h, a, n, layers, v;
  model::Decoder decoder() const {
    model::Decoder m;
    m.name = "gpt";
    m.hidden = h;
    m.vocab = v;
    m.norm = model::Norm::layer;
    m.tied_embeddings = true;
    m.dropout = true;
    model::Layer layer;
    model::Attention& attention = layer.attention;
    attention.heads = attention.kv_heads = a;
    attention.head_dim = attention.v_head_dim = h / a;
    attention.qkv_bias = attention.o_bias = true;
    model::FeedForward& mlp = layer.feed_forward;
    mlp.intermediate = 4 * h;
    mlp.gated = false;
    mlp.bias = true;
    for (std::int64_t i = 0; i < layers; ++i) m.add_layer(layer);
    return m;
  }
  double tokens_width() const { return static_cast<double>(b * s * h); }
  double scores() const { return static_cast<double>(a * b * s) * static_cast<double>(s); }
};

Gpt random_gpt(test::Random& random) {
  const std::int64_t n = std::int64_t{1} << random.in(1, 3);
  const std::int64_t a = n * random.in(1, 4);
  return {.b = random.in(1, 4),
          .s = 2 * n * random.in(1, 32),
          .h = a * 8 * random.in(1, 8),
          .a = a,
          .n = n,
          .layers = random.in(1, 4),
          .v = n * random.in(50, 400)};
}

struct Passes {
  Graph forward;
  Graph backward;
};
Execution execution(const model::Decoder& m, const Plan& plan, const char* options = "none") {
  Execution e;
  e.model = &m;
  e.weights = model::uniform_layout(m, model::parse_weight_scheme("bf16"));
  e.runtime = hardware::parse_runtime_options(options);
  e.plan = plan;
  e.training = true;
  return e;
}
Passes passes(const Execution& e, const SequenceGroup& group, const TrainingOptions& options = {}) {
  Passes p;
  graph::build_step(e, {&group, 1}, graph::Part::all, p.forward);
  graph::build_backward(p.forward, options, p.backward);
  return p;
}

double flops(const Graph& graph) {
  double sum = 0;
  for (const Op& op : graph) {
    const auto* g = std::get_if<Gemm>(&op.body);
    if (g) sum += 2.0 * static_cast<double>(g->m * g->n * g->batch * op.count) * static_cast<double>(g->k);
  }
  return sum;
}

// Bytes that one layer keeps, by what they belong to.
std::map<std::string, double> kept(const Graph& forward, std::int64_t layers, Recompute recompute) {
  static const std::map<std::string_view, const char*> kParts = {{"up_proj", "mlp"},   {"activation", "mlp"},
                                                                 {"down_proj", "mlp"}, {"mlp_dropout", "mlp"},
                                                                 {"mlp_norm", "norm"}, {"next_norm", "norm"}};
  std::map<std::string, double> sums = {{"attention", 0}, {"mlp", 0}, {"norm", 0}, {"all", 0}};
  for (const Op& op : forward) {
    if (op.layer_kind < 0 || graph::given_up(op, {.recompute = recompute}) > 0) continue;
    const double bytes = op.saved.value * static_cast<double>(op.count) / static_cast<double>(layers);
    const auto part = kParts.find(op.name);
    sums[part == kParts.end() ? "attention" : part->second] += bytes;
    sums["all"] += bytes;
  }
  return sums;
}
double kept_bytes(const Gpt& g, const Plan& plan, Recompute recompute = Recompute::none, const char* options = "none") {
  const model::Decoder m = g.decoder();
  const Execution e = execution(m, plan, options);
  return kept(passes(e, {g.b, g.s, 0}).forward, g.layers, recompute).at("all");
}

// Elements that one device sends per layer, and how many exchanges that is.
struct Sent {
  double elements = 0;
  double exchanges = 0;
};
double sent(const Collective& c) {
  const double n = static_cast<double>(c.ranks);
  const double all = c.rows * c.width;
  switch (c.kind) {
    case CollectiveKind::all_reduce: return 2 * (n - 1) / n * all;
    case CollectiveKind::send: return all;
    case CollectiveKind::ring_pass: return (n - 1) * all;
    default: return (n - 1) / n * all;
  }
}
Sent sent_by_layer(const Graph& graph, CollectiveKind kind, std::int64_t layers) {
  Sent sum;
  for (const Op& op : graph) {
    const auto* c = std::get_if<Collective>(&op.body);
    if (op.layer_kind < 0 || c == nullptr || c->kind != kind) continue;
    const double times = static_cast<double>(op.count) / static_cast<double>(layers);
    sum.elements += times * sent(*c);
    sum.exchanges += times;
  }
  return sum;
}

Approx near(double value) { return Approx(value).epsilon(1e-12); }

constexpr int kCases = 25;

}  // namespace

TEST_CASE("a GPT block has 12 h^2 + 13 h parameters") {
  test::Random random(1);
  for (int i = 0; i < kCases; ++i) {
    const Gpt g = random_gpt(random);
    CHECK(model::count_parameters(g.decoder()).layers == (12 * g.h * g.h + 13 * g.h) * g.layers);
  }
}

TEST_CASE("products take 24 b s h^2 + 4 b s^2 h per layer and 2 b s h v at the end, and twice that going back") {
  test::Random random(2);
  for (int i = 0; i < kCases; ++i) {
    const Gpt g = random_gpt(random);
    const model::Decoder m = g.decoder();
    const Execution e = execution(m, {});
    const Passes p = passes(e, {g.b, g.s, 0});
    const double bsh = g.tokens_width();
    const double forward =
        (24 * bsh * static_cast<double>(g.h) + 4 * bsh * static_cast<double>(g.s)) * static_cast<double>(g.layers) +
        2 * bsh * static_cast<double>(g.v);
    CHECK(flops(p.forward) == near(forward));
    CHECK(flops(p.backward) == near(2 * forward));
    // 72 b L s h^2 (1 + s / (6 h)), and 6 b s h v of the logits.
    const double ratio = static_cast<double>(g.s) / static_cast<double>(6 * g.h);
    CHECK(flops(p.forward) + flops(p.backward) ==
          near(72 * bsh * static_cast<double>(g.h * g.layers) * (1 + ratio) + 6 * bsh * static_cast<double>(g.v)));
  }
}

TEST_CASE("selective recomputation computes the two products of the scores again, full recomputation the layers") {
  test::Random random(3);
  for (int i = 0; i < kCases; ++i) {
    const Gpt g = random_gpt(random);
    const model::Decoder m = g.decoder();
    const Execution e = execution(m, {});
    const SequenceGroup group{g.b, g.s, 0};
    const double none = flops(passes(e, group).backward);
    const double scores = 4 * g.tokens_width() * static_cast<double>(g.s * g.layers);
    const double layers = 24 * g.tokens_width() * static_cast<double>(g.h * g.layers) + scores;
    CHECK(flops(passes(e, group, {.recompute = Recompute::selective}).backward) == near(none + scores));
    CHECK(flops(passes(e, group, {.recompute = Recompute::full}).backward) == near(none + layers));
  }
}

TEST_CASE("a GPT block keeps 11 b s h + 5 a b s^2 bytes of attention, 19 b s h of the MLP and 4 b s h of norms") {
  test::Random random(4);
  for (int i = 0; i < kCases; ++i) {
    const Gpt g = random_gpt(random);
    const model::Decoder m = g.decoder();
    const Execution e = execution(m, {});
    const std::map<std::string, double> by_part = kept(passes(e, {g.b, g.s, 0}).forward, g.layers, Recompute::none);
    CHECK(by_part.at("attention") == near(11 * g.tokens_width() + 5 * g.scores()));
    CHECK(by_part.at("mlp") == near(19 * g.tokens_width()));
    CHECK(by_part.at("norm") == near(4 * g.tokens_width()));
  }
}

TEST_CASE("what is kept under tensor and sequence parallelism and recomputation follows Korthikanti et al.") {
  test::Random random(5);
  for (int i = 0; i < kCases; ++i) {
    const Gpt g = random_gpt(random);
    const double bsh = g.tokens_width();
    const double t = static_cast<double>(g.n);
    const Plan tensor{.tensor = g.n};
    const Plan both{.tensor = g.n, .sequence_parallel = true};
    CHECK(kept_bytes(g, tensor) == near(bsh * (10 + 24 / t) + 5 * g.scores() / t));
    CHECK(kept_bytes(g, both) == near((34 * bsh + 5 * g.scores()) / t));
    CHECK(kept_bytes(g, tensor, Recompute::selective) == near(bsh * (10 + 24 / t)));
    CHECK(kept_bytes(g, both, Recompute::selective) == near(34 * bsh / t));
    CHECK(kept_bytes(g, tensor, Recompute::full) == near(2 * bsh));
    CHECK(kept_bytes(g, both, Recompute::full) == near(2 * bsh / t));
  }
}

TEST_CASE("flash attention keeps no scores, but a number per row of them") {
  test::Random random(6);
  for (int i = 0; i < kCases; ++i) {
    const Gpt g = random_gpt(random);
    const double sums = 4 * static_cast<double>(g.a * g.b * g.s);
    CHECK(kept_bytes(g, {}, Recompute::none, "flash_attention") == near(34 * g.tokens_width() + sums));
    CHECK(kept_bytes(g, {}, Recompute::selective, "flash_attention") == near(34 * g.tokens_width() + sums));
  }
}

TEST_CASE("Ulysses and ring attention divide all that is kept, the scores too") {
  test::Random random(7);
  for (int i = 0; i < kCases; ++i) {
    const Gpt g = random_gpt(random);
    const double whole = 34 * g.tokens_width() + 5 * g.scores();
    CHECK(kept_bytes(g, {.ulysses = g.n}) == near(whole / static_cast<double>(g.n)));
    CHECK(kept_bytes(g, {.ring = g.n}) == near(whole / static_cast<double>(g.n)));
  }
}

TEST_CASE("tensor parallelism sums 4 times per layer: 8 alpha b s h elements of a device") {
  test::Random random(8);
  for (int i = 0; i < kCases; ++i) {
    const Gpt g = random_gpt(random);
    const model::Decoder m = g.decoder();
    const Execution e = execution(m, {.tensor = g.n});
    const Passes p = passes(e, {g.b, g.s, 0});
    const double alpha = 1 - 1 / static_cast<double>(g.n);
    for (const Graph* pass : {&p.forward, &p.backward}) {
      const Sent sums = sent_by_layer(*pass, CollectiveKind::all_reduce, g.layers);
      CHECK(sums.exchanges == 2);
      CHECK(sums.elements == near(4 * alpha * g.tokens_width()));
    }
  }
}

TEST_CASE("sequence parallelism gathers 6 times and scatters 4 times per layer: 10 alpha b s h elements") {
  test::Random random(9);
  for (int i = 0; i < kCases; ++i) {
    const Gpt g = random_gpt(random);
    const model::Decoder m = g.decoder();
    const Execution e = execution(m, {.tensor = g.n, .sequence_parallel = true});
    const Passes p = passes(e, {g.b, g.s, 0});
    const double once = (1 - 1 / static_cast<double>(g.n)) * g.tokens_width();
    const auto count = [&](const Graph& graph, CollectiveKind kind, double times) {
      const Sent s = sent_by_layer(graph, kind, g.layers);
      CHECK(s.exchanges == times);
      CHECK(s.elements == near(times * once));
    };
    count(p.forward, CollectiveKind::all_gather, 2);
    count(p.forward, CollectiveKind::reduce_scatter, 2);
    count(p.backward, CollectiveKind::all_gather, 4);
    count(p.backward, CollectiveKind::reduce_scatter, 2);
    count(p.backward, CollectiveKind::all_reduce, 0);
  }
}

TEST_CASE("Ulysses exchanges 8 times per layer: 8 alpha b s h / n elements") {
  test::Random random(10);
  for (int i = 0; i < kCases; ++i) {
    const Gpt g = random_gpt(random);
    const model::Decoder m = g.decoder();
    const Execution e = execution(m, {.ulysses = g.n});
    const Passes p = passes(e, {g.b, g.s, 0});
    const double n = static_cast<double>(g.n);
    for (const Graph* pass : {&p.forward, &p.backward}) {
      const Sent s = sent_by_layer(*pass, CollectiveKind::all_to_all, g.layers);
      CHECK(s.exchanges == 4);
      CHECK(s.elements == near(4 * (1 - 1 / n) * g.tokens_width() / n));
    }
  }
}

TEST_CASE("ring attention passes keys and values, and going back their gradients too") {
  test::Random random(11);
  for (int i = 0; i < kCases; ++i) {
    const Gpt g = random_gpt(random);
    const model::Decoder m = g.decoder();
    const Execution e = execution(m, {.ring = g.n}, "flash_attention");
    const Passes p = passes(e, {g.b, g.s, 0});
    const double once = 2 * (1 - 1 / static_cast<double>(g.n)) * g.tokens_width();
    CHECK(sent_by_layer(p.forward, CollectiveKind::ring_pass, g.layers).elements == near(once));
    CHECK(sent_by_layer(p.backward, CollectiveKind::ring_pass, g.layers).elements == near(2 * once));
    for (const Graph* pass : {&p.forward, &p.backward}) {
      const auto ring = std::find_if(pass->begin(), pass->end(), [](const Op& op) { return op.overlaps; });
      REQUIRE(ring != pass->end());
      CHECK(std::holds_alternative<graph::Attention>(std::prev(ring)->body));
    }
  }
}

TEST_CASE("two-dimensional tensor parallelism: dual exchanges, and the inputs gathered once more") {
  test::Random random(12);
  for (int i = 0; i < kCases; ++i) {
    Gpt g = random_gpt(random);
    g.n = 4;
    g.a = 4 * random.in(1, 4);
    g.h = g.a * 8 * random.in(1, 8);
    const model::Decoder m = g.decoder();
    const Execution e = execution(m, {.tensor = 4, .tensor_rows = 2});
    const Passes p = passes(e, {g.b, g.s, 0});
    const double gathered = sent_by_layer(p.forward, CollectiveKind::all_gather, g.layers).elements;
    const double scattered = sent_by_layer(p.forward, CollectiveKind::reduce_scatter, g.layers).elements;
    CHECK(gathered > 0);
    CHECK(scattered > 0);
    CHECK(sent_by_layer(p.backward, CollectiveKind::all_gather, g.layers).elements == near(scattered + gathered));
    CHECK(sent_by_layer(p.backward, CollectiveKind::reduce_scatter, g.layers).elements == near(gathered));
  }
}

TEST_CASE("going back, sums of input gradients run beside weight gradients and gathers beside input gradients") {
  const Gpt g{.b = 1, .s = 64, .h = 128, .a = 4, .n = 4, .layers = 2, .v = 400};
  const model::Decoder m = g.decoder();
  for (const bool sequence_parallel : {false, true}) {
    const Execution e = execution(m, {.tensor = 4, .sequence_parallel = sequence_parallel});
    const Graph backward = passes(e, {g.b, g.s, 0}).backward;
    int beside = 0;
    for (std::size_t i = 1; i < backward.size(); ++i) {
      if (!backward[i].overlaps) continue;
      ++beside;
      const auto& c = std::get<Collective>(backward[i].body);
      const bool gathers = c.kind == CollectiveKind::all_gather;
      INFO(backward[i].name << " beside " << backward[i - 1].name);
      CHECK(backward[i - 1].name.ends_with(gathers ? " dgrad" : " wgrad"));
      CHECK(std::holds_alternative<Gemm>(backward[i - 1].body));
    }
    CHECK(beside == (sequence_parallel ? 6 : 3));  // both blocks and lm_head
  }
}

TEST_CASE("weight gradients are as large as the weights, and experts' as large as those that tokens reach") {
  model::Decoder m = Gpt{.b = 1, .s = 8, .h = 64, .a = 4, .n = 1, .layers = 1, .v = 100}.decoder();
  model::Layer layer = m.kinds[0];
  layer.feed_forward.intermediate = 0;
  layer.feed_forward.experts = model::Experts{.count = 8, .per_token = 2, .intermediate = 32};
  m.add_layer(layer);
  const Execution e = execution(m, {});
  const Passes p = passes(e, {1, 8, 0}, {.gradient_bits = 32});
  int products = 0;
  for (const Op& op : p.forward) {
    const auto* g = std::get_if<Gemm>(&op.body);
    if (g == nullptr || g->weights == nullptr) continue;
    const auto wgrad = std::find_if(p.backward.begin(), p.backward.end(), [&](const Op& b) {
      return b.name == std::string(op.name) + " wgrad" && b.layer_kind == op.layer_kind;
    });
    REQUIRE(wgrad != p.backward.end());
    const auto& w = std::get<Gemm>(wgrad->body);
    CHECK(w.m == g->n);
    CHECK(w.n == g->k);
    CHECK(w.k == g->m);
    CHECK(w.weight_matrices == g->weight_matrices);
    CHECK(w.accumulated_bits == 32);
    ++products;
  }
  CHECK(products > 8);
}

TEST_CASE("every op of a forward pass can be differentiated, whatever the model, the options and the plan") {
  test::Random random(13);
  for (int i = 0; i < 400; ++i) {
    model::Decoder m = test::plain_decoder(random);
    m.dropout = random.chance();
    Execution e = execution(m, test::random_plan(random, m));
    e.runtime = test::random_options(random);
    const SequenceGroup group{test::smallest_batch(e.plan), test::smallest_prompt(e.plan), 0};
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      const Passes p = passes(e, group, {.recompute = recompute});
      // Products without flash attention: two for one, and the recomputed ones.
      const double again = flops(p.backward) - 2 * flops(p.forward);
      CHECK(again >= -1e-9 * flops(p.forward));
      if (recompute == Recompute::none) CHECK(again == Approx(0).margin(1e-9 * flops(p.forward)));
      for (const Op& op : p.backward) {
        CHECK(op.saved.value == 0);
        CHECK(op.count > 0);
      }
    }
  }
}

}  // namespace llmperf::training_graph_test
