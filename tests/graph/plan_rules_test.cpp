// What a plan may divide.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "graph/plan.h"
#include "graph/random_decoder.h"

namespace llmperf::plan_rules_test {

using graph::Plan;

TEST_CASE("legal and problems agree, and both agree with the rules written out") {
  test::Random random(11);
  int legal = 0;
  for (int i = 0; i < 20000; ++i) {
    const model::Decoder m = test::random_decoder(random);
    Plan p;
    const auto degree = [&] { return random.in(0, 2) == 0 ? random.in(1, 9) : 1; };
    p.tensor = degree();
    p.ulysses = degree();
    p.ring = degree();
    p.expert = degree();
    p.data = degree();
    p.pipeline = degree();
    p.sequence_parallel = random.in(0, 3) == 0;
    if (random.in(0, 5) == 0) p.tensor_rows = random.in(1, 4);
    bool ok = p.pipeline <= m.num_layers() && !(p.sequence_parallel && p.tensor == 1);
    bool experts = false;
    for (const model::Layer& layer : m.kinds) {
      const model::Attention& a = layer.attention;
      ok &= a.heads % (p.tensor * p.ulysses) == 0;
      if (const auto& r = layer.recurrent) {
        ok &= p.ulysses * p.ring == 1 && p.tensor_rows == 0 && r->heads % p.tensor == 0;
        ok &= r->value_dim == 1 || r->key_heads % p.tensor == 0 || p.tensor % r->key_heads == 0;
      }
      if (a.indexer || a.compression || a.shares_cache) ok &= p.ulysses * p.ring == 1 && p.tensor_rows == 0;
      if (!layer.attends()) {
        ok &= a.heads == 0;
      } else if (a.latent) {
        ok &= p.ulysses * p.ring == 1;
      } else {
        const bool kv = a.kv_heads % p.tensor == 0 || p.tensor % a.kv_heads == 0;
        ok &= kv && std::max<std::int64_t>(1, a.kv_heads / p.tensor) % p.ulysses == 0;
      }
      if (const auto& x = layer.feed_forward.experts) {
        experts = true;
        ok &= x->count % p.expert == 0 && x->shared_intermediate % p.tensor == 0;
        ok &= p.expert >= p.tensor || x->intermediate % (p.tensor / p.expert) == 0;
      }
      ok &= layer.feed_forward.intermediate % p.tensor == 0;
      if (p.tensor_rows > 0) ok &= !a.latent && !layer.feed_forward.experts;
    }
    if (p.expert > 1) {
      ok &= experts;
      ok &= p.expert <= p.tensor ? p.tensor % p.expert == 0 : p.expert % p.tensor == 0 && p.stage() % p.expert == 0;
    }
    if (p.tensor_rows > 0)
      ok &= m.streams.count == 1 && !p.sequence_parallel && p.tensor % p.tensor_rows == 0 && m.hidden % p.tensor == 0;
    INFO(graph::to_text(p));
    CHECK(graph::legal(m, p) == ok);
    const auto problems = graph::problems(m, p);
    CHECK(problems.empty() == ok);
    std::set<std::string> messages;
    for (const graph::Problem& problem : problems) {
      CHECK_FALSE(problem.message.empty());
      CHECK(messages.insert(problem.message).second);
    }
    legal += ok;
  }
  CHECK(legal > 2000);
}

namespace {

std::vector<std::string> messages(const char* model, const Plan& plan) {
  std::vector<std::string> lines;
  for (const graph::Problem& p : graph::problems(model::load_decoder(model), plan)) {
    lines.push_back(p.message + " | " + p.hint);
  }
  return lines;
}
using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("every illegal degree is named with the nearest legal ones") {
  CHECK(messages("llama-2-70b", {.tensor = 7}) ==  // 64 heads, 8 KV heads; 28672 = 7 * 4096
        Lines{"`tp`: 64 heads, 8 KV heads of llama-2-70b do not divide by 7 | nearest legal: 4 or 8"});
  CHECK(messages("llama-2-70b", {.pipeline = 7}).empty());  // 80 layers in stages of 11 and 12
  CHECK(messages("llama-2-70b", {.pipeline = 81}) ==
        Lines{"`pp`: llama-2-70b has 80 layers, too few for 81 stages | at most 80"});
  CHECK(messages("llama-2-70b", {.tensor = 2, .ulysses = 8}) ==  // 4 KV heads are left on a device
        Lines{"`sp` ulysses: 4 KV heads of a device of llama-2-70b do not divide by 8 | nearest legal: 4"});
  CHECK(messages("mixtral-8x7b", {.expert = 3, .data = 12}) ==
        Lines{"`ep`: 8 experts of mixtral-8x7b do not divide by 3 | nearest legal: 2 or 4"});
  // What no search may go through one by one.
  CHECK(messages("mixtral-8x7b", {.expert = 1'000'000'000, .data = 1'000'000'000}).back() ==
        "`ep`: 8 experts of mixtral-8x7b do not divide by 1000000000 | nearest legal: 8");
  CHECK(messages("mixtral-8x7b", {.expert = 8}).size() == 1);  // eight devices of experts on one device
  CHECK(messages("llama-2-70b", {.expert = 8}).size() == 1);   // no experts at all: nothing else to say
  CHECK(messages("deepseek-v2-lite", {.ring = 2}).size() == 1);
  CHECK(messages("llama-2-70b", {.sequence_parallel = true}).size() == 1);
  CHECK(messages("mixtral-8x7b", {.tensor = 4, .tensor_rows = 2}).size() == 1);
  CHECK(graph::nearest_divisors(100, 80) == "80");
  CHECK(graph::nearest_divisors(3, 64) == "2 or 4");
  CHECK(graph::nearest_divisors(4, 61) == "1 or 61");
}

}  // namespace llmperf::plan_rules_test
