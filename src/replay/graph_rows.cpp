#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/list.h"
#include "measure/row_ops.h"
#include "model/quantization.h"
#include "replay/replay.h"

namespace llmperf::replay {
namespace {

using measure::OpRow;
using Row = std::variant<OpRow, std::string>;

std::optional<Dtype> dtype_of(const model::ElementFormat& element) {
  const std::optional<Dtype> dtype = parse_dtype(element.name);
  return dtype && element.block == 1 ? dtype : std::nullopt;
}

// The scheme whose linear layers are stored like that, empty where it is the type of the activations; nothing when no
// name gives it.
std::optional<std::string> scheme_of(const model::StoredFormat& format, Dtype activation) {
  const auto is = [&](const std::string& name) {
    const model::StoredFormat linear = model::parse_weight_scheme(name, activation).linear;
    return linear.bits == format.bits && linear.group == format.group && linear.kernel == format.kernel &&
           linear.block == format.block && linear.bits_per_group == format.bits_per_group;
  };
  if (is(std::string(name(activation == Dtype::tf32 ? Dtype::fp32 : activation)))) return std::string();
  std::vector<std::string> names = {"fp32", "bf16", "fp16", "fp8", "fp8-block128", "int8", "w8a8", "mxfp4"};
  if (format.group > 0) {
    for (const char* family : {"w4a16", "awq"}) names.push_back(fmt::format("{}-g{}", family, format.group));
  }
  const auto found = std::find_if(names.begin(), names.end(), is);
  return found == names.end() ? std::nullopt : std::optional(*found);
}

// An op and the attention of its layer, null where there is none.
struct Place {
  const graph::Op& op;
  const graph::Attention* attention;
};

Row row(const graph::Gemm& g, const Place&) {
  if (g.joined.any()) return "has element-wise work joined to it";
  if (g.accumulated_bits > 0) return "adds up gradients";
  if (g.cached_operand && dtype_of(g.cached) != g.activation) {
    return fmt::format("multiplies a cache stored as {}", g.cached.name);
  }
  measure::GemmShape shape{g.m, g.n, g.k, g.batch, {}};
  if (g.weights) {
    const std::optional<std::string> scheme = scheme_of(*g.weights, g.activation);
    if (!scheme) return "has weights in a format that measurements have no name for";
    shape.weights = *scheme;
    if (g.weight_matrices > 1 && g.batch == 1) {
      shape.batch = std::max<std::int64_t>(1, std::llround(g.weight_matrices));
      shape.m = std::max<std::int64_t>(1, std::llround(static_cast<double>(g.m) / g.weight_matrices));
    }
  }
  return measure::row_of(g.activation, std::move(shape));
}

// Rows of latent attention have no widths: they are of DeepSeek's.
Row latent_row(const graph::Attention& a, std::string kv_dtype) {
  const measure::LatentShape shape{.phase = a.shared_kv ? measure::Phase::decode : measure::Phase::prefill,
                                   .batch = a.sequences,
                                   .q_len = a.q_tokens,
                                   .kv_len = a.context + a.q_tokens,
                                   .heads = a.heads,
                                   .kv_dtype = std::move(kv_dtype)};
  Row row = measure::row_of(a.activation, shape);
  const std::vector<graph::Op> ops = measure::ops_of(std::get<OpRow>(row), {});
  const auto& same = std::get<graph::Attention>(ops.front().body);
  if (a.keys > 0 || a.kv_heads != same.kv_heads || a.qk_dim != same.qk_dim || a.v_dim != same.v_dim) {
    return fmt::format("is latent attention of other widths than {} and {}", same.qk_dim, same.v_dim);
  }
  return row;
}

Row row(const graph::Attention& a, const Place&) {
  if (a.backward) return "is a backward pass";
  if (a.softcap) return "caps its scores";
  if (a.query_ranks > 1 || a.key_ranks > 1) return "is divided over the sequence";
  const std::int64_t keys = a.keys > 0 ? a.keys : a.context + a.q_tokens;
  if (a.picked || a.v_dim == 0) return "chooses its keys";
  if (a.pool > 1) return "has keys of several tokens";
  const bool cached = a.keys == 0;
  const std::optional<Dtype> stored = cached ? dtype_of(a.cached.keys) : a.activation;
  if (!stored || (cached && a.cached.keys != a.cached.values)) {
    return fmt::format("reads a cache stored as {}", a.cached.name());
  }
  std::string kv_dtype = *stored == a.activation ? std::string() : std::string(name(*stored));
  if (a.qk_dim != a.v_dim || a.shared_kv) return latent_row(a, std::move(kv_dtype));
  const bool decode = a.keys == 0 && a.q_tokens == 1;
  return measure::row_of(a.activation,
                         measure::AttentionShape{.phase = decode ? measure::Phase::decode : measure::Phase::prefill,
                                                 .batch = a.sequences,
                                                 .q_len = a.q_tokens,
                                                 .kv_len = keys,
                                                 .heads = a.heads,
                                                 .kv_heads = a.kv_heads,
                                                 .head_dim = a.qk_dim,
                                                 .causal = cached,
                                                 .kv_dtype = std::move(kv_dtype),
                                                 .window = a.window && *a.window < keys ? *a.window : 0});
}

Row row(const graph::Vector& v, const Place& at) {
  const measure::VectorOp* known = measure::vector_op(graph::name(v.kind));
  if (known == nullptr) return fmt::format("no replay of {}", graph::name(v.kind));
  if (at.op.launches != 1) return fmt::format("stands for the {} kernels of a chain", at.op.launches);
  if (v.reads != known->reads || v.writes != known->writes) {
    return fmt::format("reads and writes other tensors than {} does", graph::name(v.kind));
  }
  measure::VectorShape shape{.layer = std::string(graph::name(v.kind)), .tokens = v.rows, .width = v.width};
  const graph::Attention* attention = v.kind == graph::VectorKind::rope ? at.attention : nullptr;
  if (attention && v.rows % (attention->heads + attention->kv_heads) == 0) {
    shape.heads = attention->heads;
    shape.kv_heads = attention->kv_heads;
  }
  return measure::row_of(v.activation, std::move(shape));
}

Row row(const graph::Gather& g, const Place&) {
  if (scheme_of(*g.table, g.activation) != std::string()) return "looks up a table of another type";
  return measure::row_of(g.activation, measure::GatherShape{g.rows, g.width, g.entries});
}

Row row(const graph::Copy& c, const Place& at) {
  const std::optional<Dtype> dtype = dtype_of(c.from);
  const graph::Attention* attention = at.attention;
  if (!c.to_cache || !attention || !dtype || c.from != c.to || c.read_elements != c.write_elements) {
    return "no replay of such copies";
  }
  const auto tokens = static_cast<std::int64_t>(c.rows);
  if (static_cast<double>(tokens) != c.rows || tokens < 1) return "holds a fraction of a token";
  const double each = c.write_elements / c.rows / 2 / static_cast<double>(attention->kv_heads);
  if (each != std::floor(each)) return "no replay of such caches";
  return measure::row_of(*dtype, measure::CacheShape{tokens, attention->kv_heads, static_cast<std::int64_t>(each)});
}

Row row(const graph::Collective& c, const Place&) {
  const std::optional<Dtype> dtype = dtype_of(c.element);
  const measure::CollectiveShape shape{c.kind, c.ranks, c.bytes()};
  if (!dtype || !measure::word_of(shape)) return fmt::format("no replay of {}", graph::name(c.kind));
  return measure::row_of(*dtype, shape);
}

Row row(const graph::Transfer&, const Place&) { return "crosses the link to the host"; }
Row row(const graph::Scan& s, const Place&) {
  if (s.has_past && s.tokens > 1) return "goes on with a prompt";
  return measure::row_of(
      s.activation, measure::ScanShape{s.kind, s.sequences, s.tokens, s.heads, s.key_heads, s.key_dim, s.value_dim});
}
Row row(const graph::Convolution&, const Place&) { return "no replay of convolutions"; }
Row row(const graph::Overhead&, const Place&) { return "is no op"; }

// Of a product and the sum over ranks that runs beside it: one kernel does both.
std::optional<OpRow> joint_row(const graph::Op& product, const graph::Op& sum) {
  const auto* collective = std::get_if<graph::Collective>(&sum.body);
  if (!collective || !sum.overlaps || collective->kind != graph::CollectiveKind::all_reduce) return std::nullopt;
  const auto* gemm = std::get_if<graph::Gemm>(&product.body);
  if (!gemm || product.count != sum.count) return std::nullopt;
  const Row row = row_of(product, nullptr);
  if (!std::holds_alternative<OpRow>(row)) return std::nullopt;
  OpRow joint = std::get<OpRow>(row);
  auto& shape = std::get<measure::GemmShape>(joint.shape);
  if (shape.batch > 1 || !shape.weights.empty()) return std::nullopt;
  shape.ranks = collective->ranks;
  joint.op = *measure::word_of(joint.shape);
  return joint;
}

}  // namespace

Row row_of(const graph::Op& op, const graph::Attention* attention) {
  if (op.place == graph::Place::host || op.place == graph::Place::link) return "runs on the host";
  return std::visit([&](const auto& body) { return row(body, Place{op, attention}); }, op.body);
}

std::size_t DistinctOps::add(const DistinctOp& op) {
  const auto* row = std::get_if<OpRow>(&op.what);
  const std::string key = row ? measure::describe(*row) : op.names.front() + '\n' + std::get<std::string>(op.what);
  const auto [found, added] = known_.try_emplace(key, ops.size());
  if (added) ops.push_back({{}, 0, op.what});
  DistinctOp& known = ops[found->second];
  for (const std::string& name : op.names) {
    if (!contains(known.names, name)) known.names.push_back(name);
  }
  known.count += op.count;
  return found->second;
}

Step step_of(const graph::Graph& graph, Sums sums) {
  Step step;
  DistinctOps distinct;
  for (std::size_t i = 0; i < graph.size();) {
    // Ops of one kind of layer stand together, each with all its executions; their common divisor is the number of
    // layers.
    std::size_t end = i + 1;
    while (end < graph.size() && graph[i].layer_kind >= 0 && graph[end].layer_kind == graph[i].layer_kind) ++end;
    StepBlock block{{}, graph[i].layer_kind >= 0 ? graph[i].count : 1};
    for (std::size_t k = i; k < end; ++k) block.times = std::gcd(block.times, graph[k].count);
    for (; i < end; ++i) {
      const graph::Op& op = graph[i];
      if (std::holds_alternative<graph::Overhead>(op.body)) continue;
      if (const auto joint = sums == Sums::joint && i + 1 < end ? joint_row(op, graph[i + 1]) : std::nullopt) {
        const std::string name = fmt::format("{}+{}", op.name, graph[i + 1].name);
        block.places.push_back({distinct.add({{name}, op.count, *joint}), op.count / block.times});
        ++i;
        continue;
      }
      const std::size_t at = distinct.add({{std::string(op.name)}, op.count, row_of(op, attention_beside(op, graph))});
      block.places.push_back({at, op.count / block.times});
    }
    if (!block.places.empty()) step.blocks.push_back(std::move(block));
  }
  step.ops = std::move(distinct.ops);
  return step;
}

Step list_of(const std::vector<OpRow>& rows) {
  Step step;
  DistinctOps distinct;
  for (const OpRow& row : rows) distinct.add({{row.op}, 0, row});
  step.ops = std::move(distinct.ops);
  return step;
}

}  // namespace llmperf::replay
