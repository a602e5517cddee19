#include <algorithm>
#include <limits>

#include "graph/hlo/blocks_pass.h"
#include "graph/hlo/lower_work.h"

namespace llmperf::graph::hlo {
namespace {

using Positions = std::vector<std::int64_t>;

std::int64_t extent_of(const Flow& flow, const Positions& positions, std::optional<AxisKind> kind = {}) {
  Axes axes;
  for (const std::int64_t position : positions) {
    if (static_cast<std::size_t>(position) < flow.axes.size()) {
      axes.push_back(flow.axes[static_cast<std::size_t>(position)]);
    }
  }
  return kind ? extent(axes, *kind) : extent(axes);
}
// What is no column of weights and no repetition.
std::int64_t rows_of(const Flow& flow, const Positions& positions) {
  return times(extent_of(flow, positions, AxisKind::row), extent_of(flow, positions, AxisKind::other));
}

bool intersects(const std::vector<FlowSource>& a, const std::vector<FlowSource>& b) {
  return std::any_of(a.begin(), a.end(), [&](FlowSource s) { return std::find(b.begin(), b.end(), s) != b.end(); });
}

// Whether the rows that are free in the queries lie outside some that are batch.
bool outer(const AttentionFlow& a) {
  double sequence = std::numeric_limits<double>::infinity();
  for (const std::int64_t position : a.query_free) {
    for (const Axis& axis : a.queries.axes[static_cast<std::size_t>(position)]) {
      if (axis.kind == AxisKind::row) sequence = std::min(sequence, axis.at);
    }
  }
  for (const std::int64_t position : a.batch) {
    for (const Axis& axis : a.queries.axes[static_cast<std::size_t>(position)]) {
      if (axis.kind == AxisKind::row && axis.at > sequence) return true;
    }
  }
  return false;
}

constexpr Role crossed(Role role) {
  switch (role) {
    case Role::query: return Role::cross_query;
    case Role::key: return Role::cross_key;
    case Role::value: return Role::cross_value;
    case Role::key_value: return Role::cross_key_value;
    case Role::scores: return Role::cross_scores;
    case Role::values: return Role::cross_values;
    case Role::attention: return Role::cross_attention;
    case Role::output: return Role::cross_output;
    default: return role;
  }
}

// Of a product that makes some of queries, keys and values.
constexpr Role projection_role(bool q, bool k, bool v) {
  if (q) return k && v ? Role::qkv : k || v ? Role::query_key : Role::query;
  return k && v ? Role::key_value : k ? Role::key : Role::value;
}

bool holds(const Flow& flow, NodeId product) {
  return std::find(flow.sources.begin(), flow.sources.end(), product) != flow.sources.end();
}

}  // namespace

void BlockRecovery::find_attentions() {
  for (const AttentionFlow& a : flow_.attentions) add_attention(a);
}

AttentionShape BlockRecovery::shape_of(const AttentionFlow& a) const {
  AttentionShape s;
  s.head_dim = extent_of(a.queries, a.contracted);
  s.v_head_dim = a.value_width;
  s.heads =
      times(extent_of(a.queries, a.batch, AxisKind::feature), extent_of(a.queries, a.query_free, AxisKind::feature));
  if (a.scores == a.values) {
    const Node& node = program_.node(a.values);
    if (const auto known = library_attention(program_, node)) {
      s.batch = known->sequences;
      s.queries = known->q_tokens;
      s.keys = known->keys;
      s.heads = known->heads;
      s.kv_heads = known->kv_heads;
    } else if (a.queries.axes.size() > 2 && a.keys.axes.size() > 2) {  // [sequences x heads, tokens, width]
      s.queries = extent(a.queries.axes[a.queries.axes.size() - 2]);
      s.keys = extent(a.keys.axes[a.keys.axes.size() - 2]);
      s.kv_heads = extent_of(a.keys, a.batch, AxisKind::feature);
      s.batch = extent_of(a.queries, a.batch) / std::max<std::int64_t>(1, times(s.queries, s.heads));
    }
  } else {
    s.batch = rows_of(a.queries, a.batch);
    s.queries = rows_of(a.queries, a.query_free);
    s.keys = extent_of(a.keys, a.key_free);
    s.kv_heads = extent_of(a.keys, a.key_batch, AxisKind::feature);
    const bool made = a.queries.product() != kNone;
    if (!made && s.heads == 1 && !a.batch.empty()) {  // from an argument: heads are the last of the batch
      s.heads = extent_of(a.queries, {a.batch.back()});
      s.batch = extent_of(a.queries, a.batch) / std::max<std::int64_t>(1, s.heads);
    }
    if (a.keys.product() == kNone && s.kv_heads == 1) {
      const std::int64_t total = extent_of(a.keys, a.key_batch);
      const std::int64_t repeated = extent_of(a.keys, a.key_batch, AxisKind::repeated);
      const std::int64_t matrices = total / std::max<std::int64_t>(1, repeated);
      if (s.batch > 0 && matrices % s.batch == 0) s.kv_heads = matrices / s.batch;
    }
  }
  // A fused projection that is cut inside its heads leaves a number that does not divide.
  if (s.kv_heads <= 0 || s.heads % s.kv_heads != 0) s.kv_heads = s.heads;
  s.masked = (a.marks & kMasked) != 0;
  s.softcap = (a.marks & kTanh) != 0;
  s.rotary = a.queries.has(kRotated) || a.keys.has(kRotated);
  s.qk_norm = a.queries.norm != kNone;
  return s;
}

bool BlockRecovery::is_cross(const AttentionFlow& a) const {
  const ProductFlow* q = a.queries.sources.empty() ? nullptr : product(a.queries.sources[0]);
  const ProductFlow* k = a.keys.sources.empty() ? nullptr : product(a.keys.sources[0]);
  if (intersects(a.queries.sources, a.keys.sources)) return false;
  if (k == nullptr) return q != nullptr && a.keys.root != a.queries.root;
  if (a.keys.root != a.queries.root) return true;
  if (q == nullptr || k->weights < 0 || q->weights < 0) return false;
  const auto rows = [](const ProductFlow& p) { return static_cast<double>(extent(input_of(p).axes)) / p.contracted; };
  return rows(*q) != rows(*k);
}

void BlockRecovery::add_attention(const AttentionFlow& a) {
  Unit unit;
  unit.first = a.scores;
  unit.stream = a.queries.root;
  unit.attention = shape_of(a);
  unit.over_outer_axis = a.scores != a.values && outer(a);
  bool cross = is_cross(a);
  if (cross && product(a.keys.sources.empty() ? kNone : a.keys.sources[0]) == nullptr) {
    adopt_projections(a, unit);  // of a cache that the program does not fill before it reads
    cross = unit.nodes.empty();
  }
  add_projections(a, cross, unit);
  const auto as = [&](Role r) { return cross ? crossed(r) : r; };
  if (a.scores == a.values) {
    assign(a.values, as(Role::attention), unit);
  } else {
    assign(a.scores, as(Role::scores), unit);
    assign(a.values, as(Role::values), unit);
  }
  add_output(a, cross, unit);
  if (cross) unit.attention->kind = AttentionKind::cross;
  count_layers(unit);
  units_.push_back(std::move(unit));
}

void BlockRecovery::add_projections(const AttentionFlow& a, bool cross, Unit& unit) {
  std::vector<FlowSource> sources;
  for (const Flow* flow : {&a.queries, &a.keys, &a.value_operand}) {
    sources.insert(sources.end(), flow->sources.begin(), flow->sources.end());
  }
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  // Of two matrices in a row, with at most a norm between them, the first.
  const auto first_of = [&](const ProductFlow& p) {
    const NodeId before = input_of(p).product();
    const ProductFlow* first = product(before);
    const bool chained = first != nullptr && first->weights >= 0 && !input_of(p).has(kActivationMarks | kMultiplied);
    return chained ? before : kNone;
  };
  for (const FlowSource source : sources) {
    const ProductFlow* p = product(source);
    const NodeId first = p == nullptr || p->weights < 0 ? kNone : first_of(*p);
    if (first == kNone || role(first) != Role::other) continue;
    assign(first, Role::latent, unit);
    unit.attention->latent = true;
  }
  for (const FlowSource source : sources) {
    const ProductFlow* p = product(source);
    if (p == nullptr || p->weights < 0 || role(source) != Role::other) continue;
    const bool of_queries = holds(a.queries, source);
    const Role r = projection_role(of_queries, holds(a.keys, source), holds(a.value_operand, source));
    assign(source, cross ? crossed(r) : r, unit);
    unit.attention->qkv_bias = unit.attention->qkv_bias || p->bias;
    unit.attention->fused_qkv = unit.attention->fused_qkv || r == Role::qkv;
    const NodeId first = first_of(*p);
    if (of_queries) describe_input(first == kNone ? *p : *product(first), unit);
  }
}

// Products that read what the query projection reads, and make as many columns as the keys have.
void BlockRecovery::adopt_projections(const AttentionFlow& a, Unit& unit) {
  const ProductFlow* q = product(a.queries.product());
  if (q == nullptr || q->weights < 0) return;
  const auto width = static_cast<double>(times(unit.attention->kv_heads, unit.attention->head_dim));
  int found = 0;
  for (const NodeId node : readers_[input_of(*q).sources.empty() ? kNone : input_of(*q).sources[0]]) {
    const ProductFlow& p = *product(node);
    if (found == 2 || p.features != width || role(node) != Role::other) continue;
    if (node == a.queries.product() || input_of(p).sources != input_of(*q).sources) continue;
    assign(node, found++ == 0 ? Role::key : Role::value, unit);
  }
}

void BlockRecovery::add_output(const AttentionFlow& a, bool cross, Unit& unit) {
  for (const NodeId node : readers_[a.values]) {
    if (role(node) != Role::other) continue;
    const ProductFlow& p = *product(node);
    assign(node, cross ? Role::cross_output : Role::output, unit);
    unit.attention->o_bias = p.bias;
    unit.post_norms += p.post_norm ? 1 : 0;
    if (unit.hidden == 0) unit.hidden = static_cast<std::int64_t>(p.features);
    return;
  }
}

}  // namespace llmperf::graph::hlo
