// What the devices of a plan send each other, against the formulas of docs/formulas.md.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "catch.h"
#include "cost/collective.h"
#include "estimate/plan_cases.h"
#include "graph/random_decoder.h"

namespace llmperf::plan_volume_test {

using graph::Collective;
using graph::CollectiveKind;
using graph::Execution;
using graph::Graph;
using graph::Op;
using graph::Plan;
using graph::SequenceGroup;
using test::decoder;
using test::execution;
using test::gpt_block;

namespace {

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

}  // namespace llmperf::plan_volume_test
