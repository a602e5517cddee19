#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "catch.h"
#include "graph/stdit_graph.h"
#include "graph/video_cases.h"

namespace llmperf::graph::stdit_plan_test {
namespace {

// Multiplications of an op, all executions.
double products(const Op& op) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  double each = 0;
  if (const auto* g = std::get_if<Gemm>(&op.body)) each = d(g->m) * d(g->n) * d(g->k) * d(g->batch);
  if (const auto* a = std::get_if<Attention>(&op.body)) {
    each = d(a->sequences) * d(a->heads) * d(a->q_tokens) * d(a->keys) * d(a->qk_dim + a->v_dim);
  }
  return each * d(op.count);
}
double vector_elements(const Op& op) {
  const auto* v = std::get_if<Vector>(&op.body);
  return v ? static_cast<double>(v->rows * v->width * op.count) * (v->reads + v->writes) : 0;
}

struct Sum {
  double products = 0;
  double elements = 0;
  bool operator==(const Sum&) const = default;
};
// By name and block; ops outside the blocks are whole on every device.
std::map<std::string, Sum> sums(const Graph& graph) {
  std::map<std::string, Sum> result;
  for (const Op& op : graph) {
    if (op.layer_kind < 0 || op.place == Place::network) continue;
    Sum& sum = result[std::to_string(op.layer_kind) + " " + std::string(op.name)];
    sum.products += products(op);
    sum.elements += vector_elements(op);
  }
  return result;
}
double sent(const Graph& graph, std::string_view name) {
  double elements = 0;
  for (const Op& op : graph) {
    const auto* c = std::get_if<Collective>(&op.body);
    if (c && op.name == name) elements += c->rows * c->width;
  }
  return elements;
}
std::int64_t collectives(const Graph& graph, CollectiveKind kind) {
  std::int64_t count = 0;
  for (const Op& op : graph) {
    const auto* c = std::get_if<Collective>(&op.body);
    if (c && c->kind == kind) count += op.count;
  }
  return count;
}

// 720p: 45 x 80 patches; 15 latent frames.
constexpr std::int64_t kTokens = 2 * 15 * 3600;
constexpr std::int64_t kHidden = 1152;

}  // namespace

TEST_CASE("Shares of the devices of a plan add up to the whole step") {
  struct Case {
    const char* what;
    Plan plan;
    bool whole_norms;  // every device of the tensor axis normalises and gates all tokens
  };
  const Case cases[] = {
      {"ulysses", {.ulysses = 4}, false},
      {"tensor", {.tensor = 4}, true},
      {"tensor, sequence parallel", {.tensor = 4, .sequence_parallel = true}, false},
      {"two-dimensional", {.tensor = 4, .tensor_rows = 2}, false},
      {"ulysses and tensor", {.tensor = 2, .ulysses = 4}, true},
  };
  const auto begins = [](std::string_view name, std::initializer_list<std::string_view> prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [&](std::string_view p) { return name.substr(2).starts_with(p); });
  };
  VideoCase c("stdit3-xl2", "704x1280", 51);  // 44 rows of patches
  for (const bool eager : {false, true}) {
    if (eager) c.eager();
    c.execution.plan = {};
    const auto whole = sums(c.step());
    for (const Case& k : cases) {
      c.execution.plan = k.plan;
      const auto devices = static_cast<double>(k.plan.devices());
      const auto tensor = static_cast<double>(k.plan.tensor);
      for (const auto& [name, part] : sums(c.step())) {
        INFO(k.what << (eager ? ", eager: " : ", fused: ") << name);
        REQUIRE(whole.contains(name));
        // Of a sequence and not of a token: whole on every device.
        if (begins(name, {"modulate_vectors", "modulate_scale", "frame_mask_scale", "rope_tables"})) continue;
        const bool residual = begins(name, {"modulate", "frame_mask", "gate", "rearrange_to_space"});
        double shares = devices;
        if (residual && k.whole_norms) shares = devices / tensor;
        if (begins(name, {"rearrange_to_time"})) shares = devices / tensor;  // of gathered tokens
        if (begins(name, {"cross_kv_proj"})) shares = tensor;                // the text is not divided
        CHECK(part.products * shares == Approx(whole.at(name).products));
        CHECK(part.elements * shares == Approx(whole.at(name).elements));
      }
    }
  }
}

TEST_CASE("Ulysses exchanges q, k, v and results of spatial attention, queries and results of cross-attention") {
  VideoCase c("stdit3-xl2", "704x1280", 51);  // 44 rows of patches
  c.execution.plan.ulysses = 4;
  const Graph step = c.step();
  const double local = 2.0 * 15 * 44 * 80 / 4;
  CHECK(sent(step, "qkv_all_to_all") == local * 3 * kHidden);
  CHECK(sent(step, "attention_all_to_all") == local * kHidden);
  CHECK(sent(step, "cross_q_all_to_all") == 2 * local * kHidden);  // in blocks of both kinds
  CHECK(sent(step, "cross_all_to_all") == 2 * local * kHidden);
  CHECK(collectives(step, CollectiveKind::all_to_all) == 28 * (4 + 2));
  CHECK(collectives(step, CollectiveKind::all_reduce) == 0);
}

TEST_CASE("Rows of patches that do not divide are padded to the largest share") {
  VideoCase c("stdit3-xl2", "720p", 51);  // 45 rows
  c.execution.plan.ulysses = 4;
  for (const Op& op : c.step()) {
    if (op.name == "qkv_proj") CHECK(std::get<Gemm>(op.body).m == 2 * 15 * 12 * 80);
    if (op.name == "spatial_attention") CHECK(std::get<Attention>(op.body).keys == 48 * 80);
  }
}

TEST_CASE("Tensor parallelism sums after self-attention, cross-attention and MLP") {
  VideoCase c("stdit3-xl2", "720p", 51);
  c.execution.plan.tensor = 4;
  Graph step = c.step();
  CHECK(collectives(step, CollectiveKind::all_reduce) == 56 * 3);
  CHECK(sent(step, "mlp_reduce") == 2.0 * kTokens * kHidden);
  c.execution.plan.sequence_parallel = true;
  step = c.step();
  CHECK(collectives(step, CollectiveKind::all_reduce) == 0);
  CHECK(collectives(step, CollectiveKind::all_gather) == 56 * 3);
  CHECK(collectives(step, CollectiveKind::reduce_scatter) == 56 * 3);
}

TEST_CASE("Two-dimensional plans gather every product's input along columns and scatter its result along rows") {
  VideoCase c("stdit3-xl2", "720p", 51);
  c.execution.plan.tensor = 4;
  c.execution.plan.tensor_rows = 2;
  const Graph step = c.step();
  // qkv, output; cross q, kv, output; up, down
  CHECK(collectives(step, CollectiveKind::all_gather) == 56 * 7);
  CHECK(collectives(step, CollectiveKind::reduce_scatter) == 56 * 7);
  for (const Op& op : step) {
    if (op.name != "mlp_up_proj") continue;
    const auto& up = std::get<Gemm>(op.body);
    CHECK(up.n == 4608 / 2);
    CHECK(up.k == 1152 / 2);
  }
}

TEST_CASE("A pipeline sends the residual stream between its stages") {
  VideoCase c("stdit3-xl2", "720p", 51);
  c.execution.plan.pipeline = 4;
  const Graph step = c.step();
  CHECK(collectives(step, CollectiveKind::send) == 3);
  CHECK(sent(step, "stage_send") == 1.0 * kTokens * kHidden);
}

TEST_CASE("Pieces of the latent add up to the whole step, and each sees the keys of all") {
  VideoCase c("stdit3-xl2", "720p", 51);  // 45 rows
  for (const bool eager : {false, true}) {
    if (eager) c.eager();
    c.execution.patches = 1;
    const auto whole = sums(c.step());
    c.execution.patches = 9;
    for (const auto& [name, part] : sums(c.step())) {
      INFO(name);
      const std::string_view op = std::string_view(name).substr(2);
      const bool again = op == "modulate_vectors" || op == "modulate_scale" || op == "frame_mask_scale" ||
                         op == "rope_tables" || op == "cross_kv_proj";
      const double pieces = again ? 1 : 9;
      CHECK(part.products * pieces == Approx(whole.at(name).products));
      CHECK(part.elements * pieces == Approx(whole.at(name).elements));
    }
  }
  for (const Op& op : c.step()) {
    if (op.name != "spatial_attention") continue;
    CHECK(std::get<Attention>(op.body).q_tokens == 5 * 80);
    CHECK(std::get<Attention>(op.body).keys == 45 * 80);
  }
}

TEST_CASE("Plans that do not divide a video model are refused with what would") {
  const model::VideoDit m = model::load_video_dit("stdit3-xl2");
  CHECK(problems(m, {}).empty());
  CHECK(problems(m, {.tensor = 2, .ulysses = 8, .data = 3, .pipeline = 7}).empty());
  const auto refused = [&](const Plan& plan, const char* message, const char* hint) {
    const std::vector<Problem> found = problems(m, plan);
    REQUIRE_FALSE(found.empty());
    CHECK(found.front().message.find(message) != std::string::npos);
    CHECK(found.front().hint.find(hint) != std::string::npos);
  };
  refused({.ulysses = 3}, "16 heads of stdit3-xl2 do not divide by 3", "2 or 4");
  refused({.pipeline = 3}, "28 pairs of layers", "2 or 4");
  refused({.ring = 2}, "`sp` ring", "ulysses");
  refused({.expert = 2}, "`ep`", "leave it out");
  refused({.sequence_parallel = true}, "`megatron-sp`", "`tp`");
  refused({.tensor = 4, .tensor_rows = 2, .sequence_parallel = true}, "ROWSxCOLUMNS", "`megatron-sp`");
}

}  // namespace llmperf::graph::stdit_plan_test
