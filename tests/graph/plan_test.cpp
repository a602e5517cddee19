#include "graph/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "catch.h"
#include "graph/random_decoder.h"
#include "model/parameters.h"

namespace llmperf::plan_test {

using graph::Axis;
using graph::Collective;
using graph::CollectiveKind;
using graph::Execution;
using graph::Gemm;
using graph::Graph;
using graph::Op;
using graph::Part;
using graph::Plan;
using graph::SequenceGroup;

namespace {

Execution execution(const model::Decoder& m, const Plan& plan = {}, const hardware::RuntimeOptions& options = {}) {
  Execution e;
  e.model = &m;
  e.weights = model::uniform_layout(m, model::parse_weight_scheme("bf16"));
  e.runtime = options;
  e.plan = plan;
  e.routing.balanced = true;  // devices of experts get alike, so that the sum over all is that without a plan
  return e;
}

Graph step(const Execution& e, const SequenceGroup& group, Part part = Part::all) {
  Graph graph;
  graph::build_step(e, {&group, 1}, part, graph);
  return graph;
}

// Everything of an op but the addresses of its formats.
struct Described {
  std::string operator()(const Gemm& g) const {
    return fmt::format("gemm {} {} {} {} {} {} {} {}", g.m, g.n, g.k, g.batch, g.weights != nullptr, g.weight_matrices,
                       g.bias, g.cached_operand);
  }
  std::string operator()(const graph::Attention& a) const {
    return fmt::format("attention {} {} {} {} {} {} {} {} {} {} {} {}", a.sequences, a.q_tokens, a.context, a.heads,
                       a.kv_heads, a.qk_dim, a.v_dim, a.window.value_or(-1), a.query_tile, a.shared_kv, a.query_ranks,
                       a.key_ranks);
  }
  std::string operator()(const graph::Vector& v) const {
    return fmt::format("vector {} {} {} {} {} {}", static_cast<int>(v.kind), v.rows, v.width, v.reads, v.writes,
                       v.parameters.value);
  }
  std::string operator()(const graph::Gather& g) const { return fmt::format("gather {} {}", g.rows, g.width); }
  std::string operator()(const graph::Copy& c) const {
    return fmt::format("copy {} {} {} {}", c.read_elements, c.write_elements, c.from_cache, c.to_cache);
  }
  std::string operator()(const graph::Transfer& t) const { return fmt::format("transfer {} {}", t.rows, t.width); }
  std::string operator()(const Collective& c) const {
    return fmt::format("{} {} {} {} {} {}", name(c.kind), name(c.axis), c.ranks, c.stride, c.rows, c.width);
  }
  std::string operator()(const graph::Convolution&) const { return "convolution"; }
  std::string operator()(const graph::Scan& scan) const { return fmt::format("scan {} {}", scan.tokens, scan.heads); }
  std::string operator()(const graph::Overhead&) const { return "overhead"; }
};
std::vector<std::string> described(const Graph& graph) {
  std::vector<std::string> lines;
  for (const Op& op : graph) {
    lines.push_back(fmt::format("{} x {} kind {} at {} {} {}: {}", op.name, op.count, op.layer_kind, name(op.place),
                                op.grows_with_context, op.overlaps, std::visit(Described{}, op.body)));
  }
  return lines;
}

const Collective* collective(const Op& op) { return std::get_if<Collective>(&op.body); }

Graph without_collectives(Graph graph) {
  std::erase_if(graph, [](const Op& op) { return collective(op) != nullptr; });
  return graph;
}

// FLOPs of an op's matrix products, all executions.
double matrix_flops(const Op& op) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  if (const auto* g = std::get_if<Gemm>(&op.body)) return 2 * d(g->m) * d(g->n) * d(g->k) * d(g->batch) * d(op.count);
  if (const auto* a = std::get_if<graph::Attention>(&op.body)) {
    double pairs = 0;
    for (std::int64_t i = 1; i <= a->q_tokens; ++i) {
      const std::int64_t seen = a->context + i;
      const std::int64_t window = a->window.value_or(INT64_MAX / a->pool);
      pairs += a->chunked ? d((seen - 1) % window + 1) : d(std::min(seen, window * a->pool)) / d(a->pool);
    }
    return 2 * pairs * d(a->qk_dim + a->v_dim) * d(a->heads) * d(a->sequences) * d(op.count) /
           d(a->query_ranks * a->key_ranks);
  }
  return 0;
}
using FlopsByOp = std::map<std::pair<int, std::string>, double>;  // by kind of layer and name
FlopsByOp matrix_flops(const Graph& graph) {
  FlopsByOp flops;
  for (const Op& op : graph) {
    if (const double f = matrix_flops(op); f > 0) flops[{op.layer_kind, std::string(op.name)}] += f;
  }
  return flops;
}

// Of the products before a recurrence that give keys and queries: columns of these, and all. With fewer key heads than
// devices these are held several times. Nothing of other products.
struct KeyColumns {
  double keys = 0;
  double all = 0;
};
KeyColumns key_columns(const model::Recurrent& r, std::string_view name) {
  using model::RecurrentKind;
  const auto keys = static_cast<double>(r.keys());
  const auto values = static_cast<double>(r.values());
  const bool has_keys = r.kind != RecurrentKind::mamba && r.kind != RecurrentKind::short_conv;
  if (name == "decay_b") return {keys, keys};
  if (name != "recurrent_in" || !has_keys) return {};
  switch (r.kind) {
    case RecurrentKind::gated_delta_net: return {2 * keys, 2 * keys + 2 * values};
    case RecurrentKind::mamba2: return {2 * keys, 2 * keys + 2 * values + static_cast<double>(r.heads)};
    default: return {2 * keys, 2 * keys + values};
  }
}

// How often the devices that share one replica of the model (tensor and sequence axes) together do what one device
// without a plan does once. 1 for what is divided; the rest is work that every device repeats.
double repeated(const model::Decoder& m, const Plan& plan, bool split, bool last_token_logits, int kind,
                const std::string& name) {
  const auto tensor = static_cast<double>(plan.tensor);
  const double idle = split ? 1 : static_cast<double>(plan.sequence());  // sequence ranks that do the same
  if (name == "lm_head") {
    const double rows = last_token_logits ? static_cast<double>(plan.sequence()) : idle;
    const double padded = static_cast<double>(graph::shard_vocab(m, plan)) * tensor / static_cast<double>(m.vocab);
    return rows * padded;
  }
  const bool spread = plan.expert > plan.tensor;
  static const std::set<std::string> kResidual = {"stream_mix", "layer_embed_proj"};
  if (kResidual.count(name) > 0) {
    return (plan.sequence_parallel && split && name == "stream_mix" ? 1 : tensor) * idle;
  }
  const model::Layer& layer = m.kinds[static_cast<std::size_t>(kind)];
  const model::Attention& a = layer.attention;
  const double copies = a.latent || !layer.attends() ? 1 : std::max(1.0, tensor / static_cast<double>(a.kv_heads));
  if (name == "k_proj" || name == "v_proj") return copies * idle;
  if (name == "qkv_proj") {
    const auto q = static_cast<double>(a.heads * a.head_dim) * (a.gate == model::OutputGate::with_queries ? 2 : 1);
    const auto keys = static_cast<double>(a.shares_cache ? 0 : a.kv_heads * a.head_dim);
    const auto kv = keys + static_cast<double>(a.shares_cache || a.no_v_proj ? 0 : a.kv_heads * a.v_head_dim);
    return (q + copies * kv) / (q + kv) * idle;
  }
  if (layer.recurrent) {
    const auto [keys, all] = key_columns(*layer.recurrent, name);
    const double key_copies = std::max(1.0, tensor / static_cast<double>(layer.recurrent->key_heads));
    if (all > 0) return (all + (key_copies - 1) * keys) / all * idle;
    if (name == "decay_a" || (name == "gate_a" && layer.recurrent->gate_rank > 0)) return tensor * idle;
  }
  // What every device has whole: products of no heads, with scores of an indexer among them.
  static const std::set<std::string> kWhole = {"q_a_proj",      "kv_a_proj",       "index_q",   "index_k",
                                               "index_weights", "compress",        "branch_up", "branch_down",
                                               "layer_gate",    "layer_projection"};
  if (name == "index_scores") return tensor;
  if (kWhole.count(name) > 0) return tensor * idle;
  if (name == "router" || name == "latent_down" || name == "latent_up") return (spread ? 1 : tensor) * idle;
  if (name == "shared_gate") return (spread && plan.sequence_parallel && split ? 1 : tensor) * idle;
  static const std::set<std::string> kAttention = {"attention", "scores", "weighted_sum"};
  if (kAttention.count(name) > 0) return 1;
  return idle;
}

double tensor_axis_copies(const model::Layer& layer, const Plan& plan, const model::Tensor& tensor) {
  using model::Role;
  const std::string_view name = tensor.name;
  const auto dense = static_cast<double>(plan.replicas());
  const auto whole = dense * static_cast<double>(plan.tensor);
  const double kv =
      layer.attention.latent || !layer.attends()
          ? 1
          : std::max(1.0, static_cast<double>(plan.tensor) / static_cast<double>(layer.attention.kv_heads));
  if (layer.recurrent) {
    const model::Recurrent& r = *layer.recurrent;
    const double copies = std::max(1.0, static_cast<double>(plan.tensor) / static_cast<double>(r.key_heads));
    const auto mixed = [&](double keys, double all) { return dense * (all + (copies - 1) * keys) / all; };
    const auto keys = static_cast<double>(r.keys());
    const KeyColumns columns = key_columns(r, "recurrent_in");
    if (tensor.role == Role::recurrent_in) return columns.all > 0 ? mixed(columns.keys, columns.all) : dense;
    if (name.starts_with("linear_attn.conv1d")) {
      return columns.all > 0 ? mixed(2 * keys, 2 * keys + static_cast<double>(r.values())) : dense;
    }
    if (tensor.role == Role::decay_b || (name == "linear_attn.dt_bias" && r.kind == model::RecurrentKind::kimi_delta)) {
      return dense * copies;
    }
    if (name == "linear_attn.norm.weight") {
      const bool all_values = r.kind == model::RecurrentKind::mamba2 || r.kind == model::RecurrentKind::lightning;
      return all_values ? dense : whole;
    }
    if (tensor.role == Role::gate_a && r.gate_rank == 0) return dense;
    if (tensor.role == Role::vector && tensor.part == model::Part::recurrent) return dense;
  }
  switch (tensor.role) {
    case Role::k:
    case Role::v: return dense * kv;
    case Role::q_a:
    case Role::kv_a:
    case Role::index_q:
    case Role::index_k:
    case Role::index_weights:
    case Role::compress:
    case Role::index_compress:
    case Role::decay_a:
    case Role::gate_a:
    case Role::router:
    case Role::latent_down:
    case Role::latent_up:
    case Role::stream_mix:
    case Role::branch_down:
    case Role::branch_up:
    case Role::layer_gate:
    case Role::layer_projection:
    case Role::shared_router: return whole;
    case Role::expert_gate:
    case Role::expert_up:
    case Role::expert_down: return static_cast<double>(plan.expert_replicas());
    case Role::vector: break;
    default: return dense;
  }
  if (name == "self_attn.k_proj.bias" || name == "self_attn.v_proj.bias") return dense * kv;
  if (layer.attention.qk_norm == model::QkNorm::whole) {
    if (name == "self_attn.q_norm.weight") return dense;
    if (name == "self_attn.k_norm.weight") return dense * kv;
  }
  if (name == "mlp.experts.down_proj.bias") {
    return static_cast<double>(plan.expert_replicas() * plan.expert_tensor());
  }
  if (name.starts_with("mlp.experts.")) return static_cast<double>(plan.expert_replicas());
  static const std::set<std::string_view> kDivided = {"self_attn.q_proj.bias",
                                                      "self_attn.sinks",
                                                      "mlp.gate_proj.bias",
                                                      "mlp.up_proj.bias",
                                                      "mlp.shared_experts.gate_proj.bias",
                                                      "mlp.shared_experts.up_proj.bias"};
  return kDivided.count(name) > 0 ? dense : whole;
}

// Tokens whose experts return them are no whole number of rows.
model::Decoder without_identity(model::Decoder m) {
  for (model::Layer& layer : m.kinds) {
    if (layer.feed_forward.experts) layer.feed_forward.experts->identity = 0;
  }
  return m;
}

template <class Check>
void each_random_plan(std::uint64_t seed, int count, Check&& check) {
  test::Random random(seed);
  for (int i = 0; i < count; ++i) {
    const model::Decoder m = test::random_decoder(random);
    const Plan plan = test::random_plan(random, m);
    INFO("model " << i << ", " << graph::to_text(plan));
    check(random, m, plan);
  }
}

double close_to(double x) { return std::abs(x) * 1e-12; }

}  // namespace

TEST_CASE("random plans reach every axis, alone and together") {
  int tensor = 0, rows = 0, residual = 0, ulysses = 0, ring = 0, usp = 0, inside = 0, beyond = 0, stages = 0,
      copied = 0;
  each_random_plan(1, 1200, [&](test::Random&, const model::Decoder& m, const Plan& p) {
    CHECK(graph::legal(m, p));
    tensor += p.tensor > 1;
    rows += p.tensor_rows > 1;
    residual += p.sequence_parallel;
    ulysses += p.ulysses > 1;
    ring += p.ring > 1;
    usp += p.ulysses > 1 && p.ring > 1;
    inside += p.expert > 1 && p.expert <= p.tensor;
    beyond += p.expert > p.tensor;
    stages += p.pipeline > 1;
    copied += std::any_of(m.kinds.begin(), m.kinds.end(), [&](const auto& l) {
      return l.attends() && !l.attention.latent && l.attention.kv_heads < p.tensor;
    });
  });
  INFO(fmt::format("{} {} {} {} {} {} {} {} {} {}", tensor, rows, residual, ulysses, ring, usp, inside, beyond, stages,
                   copied));
  for (const int times : {tensor, rows, residual, ulysses, ring, usp, inside, beyond, stages, copied}) {
    CHECK(times >= 10);
  }
}

TEST_CASE("weights of all devices, copies counted, are the weights of the model") {
  each_random_plan(2, 400, [&](test::Random&, const model::Decoder& m, const Plan& plan) {
    std::vector<std::int64_t> layers(m.kinds.size(), 0);
    const graph::StageSplit split = test::even_split(m, plan);
    for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
      const auto own = split.layers_of_kinds(m, stage);
      CHECK(std::accumulate(own.begin(), own.end(), std::int64_t{0}) == split.layers(stage));
      for (std::size_t kind = 0; kind < own.size(); ++kind) layers[kind] += own[kind];
    }
    CHECK(layers == m.kind_counts);
    for (const model::Layer& layer : m.kinds) {
      const auto whole = model::layer_tensors(m, layer);
      const auto local = model::layer_tensors(m, graph::shard(layer, plan));
      REQUIRE(local.size() == whole.size());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        INFO(whole[i].name);
        REQUIRE(local[i].name == whole[i].name);
        const auto all = static_cast<double>(local[i].elements() * plan.stage());
        CHECK(all == Approx(static_cast<double>(whole[i].elements()) * tensor_axis_copies(layer, plan, whole[i])));
      }
    }
    const std::int64_t vocab = graph::shard_vocab(m, plan) * (plan.shard_embedding ? plan.tensor : 1);
    CHECK(vocab >= m.vocab);
    CHECK(vocab < m.vocab + plan.tensor);
  });
}

TEST_CASE("matrix FLOPs of all devices in a prompt, repeated ones counted, are those without a plan") {
  each_random_plan(3, 400, [&](test::Random& random, const model::Decoder& drawn, const Plan& plan) {
    const model::Decoder m = without_identity(drawn);
    const hardware::RuntimeOptions options = test::random_options(random);
    const SequenceGroup group{test::smallest_batch(plan), test::smallest_prompt(plan) * random.in(1, 3), 0};
    if (group.new_tokens == 1 && plan.sequence() > 1) return;
    const FlopsByOp whole = matrix_flops(step(execution(m, {}, options), group));
    const FlopsByOp local = matrix_flops(step(execution(m, plan, options), group));
    REQUIRE(local.size() == whole.size());
    for (const auto& [op, flops] : whole) {
      if (op.second == "stream_projection") continue;  // at both ends, of rows that are divided otherwise
      INFO(op.second);
      const double expected = flops * repeated(m, plan, true, options.last_token_logits, op.first, op.second);
      REQUIRE(local.count(op) == 1);
      CHECK(local.at(op) * static_cast<double>(plan.tensor * plan.sequence()) ==
            Approx(expected).margin(close_to(expected)).epsilon(0));
    }
  });
}

TEST_CASE("in a decode step the sequence axes share the attention and repeat the rest") {
  each_random_plan(4, 400, [&](test::Random& random, const model::Decoder& m, const Plan& plan) {
    const hardware::RuntimeOptions options = test::random_options(random);
    // Full windows and whole caches divide by the ring.
    const SequenceGroup group{test::smallest_batch(plan) * plan.tensor, 1, plan.ring * 400 - 1};
    model::Decoder wide = without_identity(m);
    for (model::Layer& layer : wide.kinds) {
      if (layer.attention.window) layer.attention.window = plan.ring * *layer.attention.window;
    }
    const FlopsByOp whole = matrix_flops(step(execution(wide, {}, options), group));
    const FlopsByOp local = matrix_flops(step(execution(wide, plan, options), group));
    REQUIRE(local.size() == whole.size());
    for (const auto& [op, flops] : whole) {
      if (op.second == "stream_projection") continue;  // at both ends, of rows that are divided otherwise
      INFO(op.second);
      const double expected = flops * repeated(wide, plan, false, options.last_token_logits, op.first, op.second);
      CHECK(local.at(op) * static_cast<double>(plan.tensor * plan.sequence()) ==
            Approx(expected).margin(close_to(expected)).epsilon(0));
    }
  });
}

TEST_CASE("cache rows written by all devices are the new tokens', once per copy of a KV head") {
  each_random_plan(5, 300, [&](test::Random& random, const model::Decoder& m, const Plan& plan) {
    for (const SequenceGroup& group :
         {SequenceGroup{plan.data, test::smallest_prompt(plan), 0}, SequenceGroup{3, 1, random.in(1, 900)}}) {
      const auto written = [&](const Plan& p) {
        std::map<int, double> elements;  // by kind of layer
        for (const Op& op : step(execution(m, p), group)) {
          if (op.name == "kv_write")
            elements[op.layer_kind] += std::get<graph::Copy>(op.body).write_elements * static_cast<double>(op.count);
        }
        return elements;
      };
      const auto whole = written({});
      for (const auto& [kind, elements] : written(plan)) {
        const model::Attention& a = m.kinds[static_cast<std::size_t>(kind)].attention;
        const double copies = a.latent
                                  ? static_cast<double>(plan.tensor)
                                  : std::max(1.0, static_cast<double>(plan.tensor) / static_cast<double>(a.kv_heads));
        CHECK(elements * static_cast<double>(plan.tensor * plan.sequence()) == Approx(whole.at(kind) * copies));
      }
    }
  });
}

TEST_CASE("the ops that grow with the context are the same in the whole graph and in the part") {
  each_random_plan(6, 400, [&](test::Random& random, const model::Decoder& m, const Plan& plan) {
    const Execution e = execution(m, plan, test::random_options(random));
    for (const SequenceGroup& group :
         {SequenceGroup{2, test::smallest_prompt(plan), 0}, SequenceGroup{3, 1, random.in(1, 900)}}) {
      Graph growing = step(e, group);
      std::erase_if(growing, [](const Op& op) { return !op.grows_with_context; });
      CHECK(described(step(e, group, Part::context_dependent)) == described(growing));
    }
  });
}

TEST_CASE("on one device there is no collective, whatever the plan's switches say") {
  test::Random random(7);
  for (int i = 0; i < 100; ++i) {
    const model::Decoder m = test::random_decoder(random);
    const hardware::RuntimeOptions options = test::random_options(random);
    for (const SequenceGroup& group : {SequenceGroup{2, 24, 0}, SequenceGroup{3, 1, 70}}) {
      const Graph alone = step(execution(m, {}, options), group);
      for (const Op& op : alone) CHECK_FALSE(op.place == graph::Place::network);
      Plan plan;
      plan.shard_embedding = false;
      CHECK(described(step(execution(m, plan, options), group)) == described(alone));
      plan.tensor_rows = 1;
      if (graph::legal(m, plan)) CHECK(described(step(execution(m, plan, options), group)) == described(alone));
    }
  }
}

TEST_CASE("replicas and stages leave the ops as they are: stages only add their sends") {
  test::Random random(8);
  for (int i = 0; i < 100; ++i) {
    const model::Decoder m = test::random_decoder(random);
    const SequenceGroup group{2, random.in(1, 40), 0};
    const auto alone = described(step(execution(m), group));
    Plan plan;
    plan.data = 3;
    CHECK(described(step(execution(m, plan), group)) == alone);
    plan.pipeline = m.num_layers();
    const Graph staged = step(execution(m, plan), group);
    CHECK(described(without_collectives(staged)) == alone);
    if (plan.pipeline == 1) continue;
    const auto send = std::find_if(staged.begin(), staged.end(), collective);
    REQUIRE(send != staged.end());
    CHECK(send->count == plan.pipeline - 1);
    CHECK(collective(*send)->kind == CollectiveKind::send);
    CHECK(collective(*send)->rows == static_cast<double>(2 * group.new_tokens));
    CHECK(collective(*send)->width == static_cast<double>(m.hidden));
  }
}

TEST_CASE("every collective is among the devices of an axis that the plan divides") {
  each_random_plan(9, 300, [&](test::Random& random, const model::Decoder& m, const Plan& plan) {
    const Execution e = execution(m, plan, test::random_options(random));
    for (const SequenceGroup& group : {SequenceGroup{1, test::smallest_prompt(plan), 0}, SequenceGroup{3, 1, 70}}) {
      for (const Op& op : step(e, group)) {
        CHECK((op.place == graph::Place::network) == (collective(op) != nullptr));
        const Collective* c = collective(op);
        if (c == nullptr) continue;
        INFO(op.name);
        const std::map<Axis, std::int64_t> degrees = {{Axis::tensor, plan.tensor},
                                                      {Axis::tensor_rows, plan.tensor_rows},
                                                      {Axis::tensor_columns, plan.tensor_columns()},
                                                      {Axis::ulysses, plan.ulysses},
                                                      {Axis::ring, plan.ring},
                                                      {Axis::expert, plan.expert},
                                                      {Axis::pipeline, plan.pipeline}};
        REQUIRE(degrees.count(c->axis) == 1);
        CHECK(c->ranks == degrees.at(c->axis));
        CHECK(c->ranks > 1);
        CHECK(c->rows * c->width > 0);
      }
    }
  });
}

TEST_CASE("devices of an axis are numbered so that all axes together number every device once") {
  each_random_plan(10, 200, [&](test::Random&, const model::Decoder&, const Plan& plan) {
    std::set<std::int64_t> numbers;
    for (std::int64_t t = 0; t < plan.tensor; ++t) {
      for (std::int64_t u = 0; u < plan.ulysses; ++u) {
        for (std::int64_t r = 0; r < plan.ring; ++r) {
          for (std::int64_t p = 0; p < plan.pipeline; ++p) {
            numbers.insert(t * plan.stride(Axis::tensor) + u * plan.stride(Axis::ulysses) +
                           r * plan.stride(Axis::ring) + p * plan.stride(Axis::pipeline));
          }
        }
      }
    }
    CHECK(static_cast<std::int64_t>(numbers.size()) == plan.tensor * plan.sequence() * plan.pipeline);
    CHECK(*numbers.rbegin() < plan.devices());
    CHECK(plan.stage() * plan.pipeline == plan.devices());
    CHECK(plan.expert * plan.expert_tensor() * plan.expert_replicas() == plan.stage());
  });
}

TEST_CASE("within the tensor axis experts exchange nothing of their own") {
  const model::Decoder m = model::load_decoder("mixtral-8x7b");
  for (const std::int64_t expert : {1, 2, 4, 8}) {
    Plan plan;
    plan.tensor = 8;
    plan.expert = expert;
    REQUIRE(graph::legal(m, plan));
    for (const Op& op : step(execution(m, plan), {4, 512, 0})) {
      if (const Collective* c = collective(op)) CHECK(c->kind != CollectiveKind::all_to_all);
      // 2048 tokens to two experts each: a device serves 1 / expert of the copies, with 1 / (8 / expert) of the widths.
      if (op.name == "experts_down") {
        CHECK(std::get<Gemm>(op.body).m == 4096 / expert);
        CHECK(std::get<Gemm>(op.body).k == 14336 * expert / 8);
      }
    }
  }
}

TEST_CASE("beyond the tensor axis a device's own tokens travel to each device with experts of theirs, and back") {
  const model::Decoder m = model::load_decoder("mixtral-8x7b");
  for (const std::int64_t tensor : {1, 2, 4}) {
    Plan plan;
    plan.tensor = tensor;
    plan.expert = 8;
    plan.data = 8;
    REQUIRE(graph::legal(m, plan));
    int exchanges = 0;
    for (const Op& op : step(execution(m, plan), {4, 512, 0})) {
      const Collective* c = collective(op);
      if (c && c->kind == CollectiveKind::all_to_all) {
        ++exchanges;
        CHECK(op.count == 32);
        CHECK(c->axis == Axis::expert);
        CHECK(c->ranks == 8);
        CHECK(c->rows == Approx(static_cast<double>(4 * 512 / tensor * 2)));  // an expert each: as many as copies
        CHECK(c->width == 4096);
      }
      if (op.name == "experts_down") CHECK(std::get<Gemm>(op.body).k == 14336);
    }
    CHECK(exchanges == 2);
  }
}

TEST_CASE("a token goes once to a device that has two of its experts") {
  const model::Decoder m = model::load_decoder("mixtral-8x7b");
  // Two experts each: a device has neither of a token's two with the chance (6 x 5) / (8 x 7), so it is one of 13/7.
  for (const Op& op : step(execution(m, {.expert = 4, .data = 4}), {4, 512, 0})) {
    const Collective* c = collective(op);
    if (c && c->kind == CollectiveKind::all_to_all) CHECK(c->rows == Approx(4 * 512 * 13.0 / 7));
    if (op.name == "experts_down") CHECK(std::get<Gemm>(op.body).m == 4 * 512 * 2);  // computed for every expert
  }
}

TEST_CASE("tokens travel as experts' products take them, with the scales of their blocks, and results as activations") {
  const model::Decoder m = model::load_decoder("deepseek-v3");
  const auto bits = [&](const char* weights, Plan plan) {
    graph::Execution e = execution(m, plan);
    e.weights = model::uniform_layout(m, model::parse_weight_scheme(weights));
    std::pair<double, double> found;
    for (const Op& op : step(e, {1, 64, 0})) {
      if (op.name == "experts_dispatch") found.first = collective(op)->element.bits;
      if (op.name == "experts_return") found.second = collective(op)->element.bits;
    }
    return found;
  };
  const Plan plan = {.expert = 32, .data = 32};
  CHECK(bits("bf16", plan) == std::pair(16.0, 16.0));
  CHECK(bits("fp8-block128", plan) == std::pair(8.25, 16.0));  // 32 bits for 128 elements
  CHECK(bits("fp8", plan) == std::pair(8.0, 16.0));
  CHECK(bits("w4a16-g128", plan) == std::pair(16.0, 16.0));
  CHECK(bits("fp8-block128", {.expert = 32, .data = 32, .expert_dispatch = Dtype::bf16}) == std::pair(16.0, 16.0));
  CHECK(bits("bf16", {.expert = 32, .data = 32, .expert_dispatch = Dtype::fp8, .expert_combine = Dtype::fp8}) ==
        std::pair(8.0, 8.0));
  CHECK_FALSE(graph::legal(m, {.tensor = 8, .expert = 8, .expert_dispatch = Dtype::fp8}));
}

TEST_CASE("parallel blocks are summed over the tensor axis once, also where the experts are beyond it") {
  model::Decoder m = model::load_decoder("phi-2");
  Plan plan;
  plan.tensor = 2;
  const auto reduces = [&](const model::Decoder& decoder, const Plan& p) {
    std::int64_t sum = 0;
    for (const Op& op : step(execution(decoder, p), {1, 64, 0})) {
      if (op.layer_kind >= 0 && collective(op) && collective(op)->kind == CollectiveKind::all_reduce) sum += op.count;
    }
    return sum;
  };
  CHECK(reduces(m, plan) == m.num_layers());
  // Experts beyond the tensor axis give whole results; the attention's summands still need their sum.
  model::Decoder routed = m;
  for (model::Layer& layer : routed.kinds) {
    layer.feed_forward.intermediate = 0;
    layer.feed_forward.experts = model::Experts{.count = 8, .per_token = 2, .intermediate = 128};
  }
  plan.expert = 8;
  plan.data = 4;
  REQUIRE(graph::legal(routed, plan));
  CHECK(reduces(routed, plan) == m.num_layers());
}

TEST_CASE("replicated, the embedding and lm_head exchange nothing; sharded, a sum and the logits") {
  const model::Decoder m = model::load_decoder("llama-3-8b");
  Plan plan;
  plan.tensor = 8;
  const auto outside = [&] {
    std::vector<std::string> names;
    for (const Op& op : step(execution(m, plan), {2, 512, 0})) {
      if (op.layer_kind < 0 && collective(op)) names.emplace_back(op.name);
    }
    return names;
  };
  CHECK(outside() == std::vector<std::string>{"embed_reduce", "logits_gather"});
  plan.shard_embedding = false;
  CHECK(outside().empty());
}

TEST_CASE("a replicated lm_head after two-dimensional products first gets the whole hidden vector") {
  const model::Decoder m = model::load_decoder("llama-3-8b");
  Plan plan;
  plan.tensor = 8;
  plan.tensor_rows = 2;
  plan.shard_embedding = false;
  REQUIRE(graph::legal(m, plan));
  const Graph graph = step(execution(m, plan), {2, 512, 0});
  const auto head = std::find_if(graph.begin(), graph.end(), [](const Op& op) { return op.name == "lm_head"; });
  REQUIRE(head != graph.end());
  CHECK(std::get<Gemm>(head->body).k == 4096);
  const Collective* before = collective(*(head - 1));
  REQUIRE(before != nullptr);
  CHECK(before->kind == CollectiveKind::all_gather);
  CHECK(before->ranks == 8);
  CHECK(before->width == 4096);
}

TEST_CASE("dealing 2 r pieces 0, 1, .., r-1, r-1, .., 1, 0 gives r ranks equal numbers of causal pairs") {
  for (std::int64_t ring = 1; ring <= 9; ++ring) {
    for (const std::int64_t piece : {1, 2, 7}) {
      for (const std::int64_t context : {0, 1, 50}) {
        const std::int64_t tokens = 2 * ring * piece;
        std::vector<std::int64_t> pairs(static_cast<std::size_t>(ring), 0);
        for (std::int64_t i = 0; i < tokens; ++i) {
          const std::int64_t dealt = i / piece;
          const std::int64_t rank = dealt < ring ? dealt : 2 * ring - 1 - dealt;
          pairs[static_cast<std::size_t>(rank)] += context + i + 1;
        }
        const std::int64_t all = tokens * context + tokens * (tokens + 1) / 2;
        for (const std::int64_t each : pairs) CHECK(each * ring == all);
        if (ring == 1) continue;
        // What the graph charges one device: [pairs / ring] of every head.
        Plan plan;
        plan.ring = ring;
        CHECK(graph::sequence_pieces(plan) == 2 * ring);
        model::Decoder m = model::load_decoder("gpt-block");
        for (const Op& op : step(execution(m, plan), {1, tokens, context})) {
          // 96 heads of 128 + 128 elements, in 96 layers
          if (op.name == "attention") CHECK(matrix_flops(op) == 2.0 * static_cast<double>(pairs[0]) * 256 * 96 * 96);
        }
      }
    }
  }
}

}  // namespace llmperf::plan_test
