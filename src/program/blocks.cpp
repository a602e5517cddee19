#include "program/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "program/dataflow.h"
#include "program/work.h"

namespace llmperf::program {
namespace {

struct Unit {
  NodeId first = kNone;         // in the order of the program
  TensorId stream = kNone;      // where the tokens began
  List<FlowSource> input = {};  // what its first products read
  List<NodeId> nodes = {};      // products, by node
  List<NodeId> norms = {};      // that were applied to its inputs
  int post_norms = 0;           // … to its result
  bool centred = false;         // their means were subtracted
  std::int64_t hidden = 0;      // width of what it reads
  std::int64_t layers = 1;
  std::int64_t passes = 1;
  std::optional<AttentionShape> attention = {};  // either
  std::optional<FeedForwardShape> feed_forward = {};
  bool over_outer_axis = false;  // attention along an axis that lies outside another one of its rows
};

const Flow& input_of(const ProductFlow& product) { return product.operands[product.weights == 0 ? 1 : 0]; }

constexpr std::string_view kKindNames[] = {"self", "spatial", "temporal", "cross"};

struct Draft {
  TransformerBlock block;
  TensorId stream = kNone;
  List<NodeId> norms;
  int post_norms = 0;
  bool centred = false;
};

// Whether a loop's slices of one value make up the whole of it: one layer of stacked weights in every pass.
bool takes_layers(const Program& program, const Node& slice) {
  if (slice.loop < 0 || slice.operands.empty() || slice.results.empty()) return false;
  const Type& whole = program.type(slice.operands[0]);
  const Type& part = program.type(slice.results[0]);
  const double passes = static_cast<double>(program.loop(slice.loop).trips);
  return passes * part.elements() == whole.elements();
}

// The program's argument or constant that a tensor is a form of, or in a loop over layers the slices of; kNone of what
// is computed.
TensorId stored_weights(const Program& program, TensorId t) {
  while (true) {
    const Tensor& tensor = program.tensor(t);
    if (tensor.same != kNone) {
      t = tensor.same;
    } else if (tensor.node == kNone) {
      return t;
    } else {
      const Node& node = program.node(tensor.node);
      const std::string_view op = node.instruction->op();
      if (op == "constant") return t;
      const bool form = node.traits.op_class == OpClass::free || op == "transpose" || op == "convert" ||
                        op == "broadcast_in_dim" || (op == "dynamic_slice" && takes_layers(program, node));
      if (!form || node.operands.empty()) return kNone;
      t = node.operands[0];
    }
  }
}

bool alike(const Draft& a, const Draft& b) {
  const TransformerBlock& x = a.block;
  const TransformerBlock& y = b.block;
  return a.stream == b.stream && x.hidden == y.hidden && x.passes == y.passes && x.norm == y.norm &&
         x.norms == y.norms && x.parallel_blocks == y.parallel_blocks && x.attentions == y.attentions &&
         x.feed_forward == y.feed_forward && x.products.size() == y.products.size() &&
         std::equal(x.products.begin(), x.products.end(), y.products.begin(),
                    [](const RoleNodes& p, const RoleNodes& q) { return p.role == q.role; });
}

// Among the roles from `begin` on.
void note(std::vector<RoleNodes>& roles, std::size_t begin, Role role, NodeId node) {
  const auto same = std::find_if(roles.begin() + static_cast<std::ptrdiff_t>(begin), roles.end(),
                                 [&](const RoleNodes& r) { return r.role == role; });
  if (same != roles.end()) {
    same->nodes.push_back(node);
  } else {
    roles.push_back({role, {node}});
  }
}

// Whether a block that has `shapes` does not take another attention of this shape.
bool repeats(const std::vector<AttentionShape>& shapes, const AttentionShape& shape) {
  return std::ranges::any_of(shapes, [&](const AttentionShape& s) {
    return s.kind == shape.kind && s.batch == shape.batch && s.queries == shape.queries;
  });
}

std::int64_t extent_of(const Flow& flow, const Integers& positions, std::optional<AxisKind> kind = {}) {
  Axes axes;
  for (const std::int64_t position : positions) {
    if (static_cast<std::size_t>(position) < flow.axes.size()) {
      axes.push_back(flow.axes[position]);
    }
  }
  return kind ? extent(axes, *kind) : extent(axes);
}
// What is no column of weights and no repetition.
std::int64_t rows_of(const Flow& flow, const Integers& positions) {
  return times(extent_of(flow, positions, AxisKind::row), extent_of(flow, positions, AxisKind::other));
}

bool intersects(const List<FlowSource>& a, const List<FlowSource>& b) {
  return std::ranges::any_of(a, [&](FlowSource s) { return contains(b, s); });
}

// Whether the rows that are free in the queries lie outside some that are batch.
bool outer(const AttentionFlow& a) {
  double sequence = std::numeric_limits<double>::infinity();
  for (const std::int64_t position : a.query_free) {
    for (const Axis& axis : a.queries.axes[position]) {
      if (axis.kind == AxisKind::row) sequence = std::min(sequence, axis.at);
    }
  }
  for (const std::int64_t position : a.batch) {
    for (const Axis& axis : a.queries.axes[position]) {
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

bool holds(const Flow& flow, NodeId product) { return contains(flow.sources, product); }

// By what is left of the function in the text. A tanh without a power before it is how a logistic function can be
// computed; a clamp alone is what remains of an expanded erf.
std::optional<model::Activation> activation_of(const Flow& flow) {
  using enum model::Activation;
  if (flow.has(kErf)) return gelu;
  if (flow.has(kTanh)) return flow.has(kPower) ? gelu_tanh : silu;
  if (flow.has(kLogistic | kExponential)) return silu;
  if (flow.has(kRectified)) return relu;
  if (flow.has(kClamped)) return gelu;
  return std::nullopt;
}

struct Roles {
  Role gate, up, gate_up, down;
};
constexpr Roles kDense = {Role::gate, Role::up, Role::gate_up, Role::down};
constexpr Roles kExperts = {Role::expert_gate, Role::expert_up, Role::expert_gate_up, Role::expert_down};

class BlockRecovery {
 public:
  explicit BlockRecovery(const Program& program) : program_(program), flow_(follow(program)) {
    for (const auto& [node, p] : flow_.products) {
      if (p.weights < 0) continue;
      for (const FlowSource source : input_of(p).sources) readers_[source].push_back(node);
    }
  }

  Blocks run() {
    blocks_.roles.assign(program_.nodes.size(), Role::other);
    find_attentions();
    find_feed_forwards();
    name_frames();
    find_head();
    group();

    List<bool> inside(program_.nodes.size(), false);
    for (const TransformerBlock& block : blocks_.blocks) {
      for (const RoleNodes& products : block.products) {
        for (const NodeId node : products.nodes) inside[node] = true;
      }
    }
    for (std::size_t i = 0; i < program_.nodes.size(); ++i) {
      const OpClass c = program_.nodes[i].traits.op_class;
      const Role r = blocks_.roles[i];
      if (inside[i] || (c != OpClass::product && c != OpClass::attention && r == Role::other)) continue;
      note(blocks_.outside, 0, r, static_cast<NodeId>(i));
    }
    return std::move(blocks_);
  }

 private:
  // --- attention
  void find_attentions() {
    for (const AttentionFlow& a : flow_.attentions) add_attention(a);
  }

  void add_attention(const AttentionFlow& a) {
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

  AttentionShape shape_of(const AttentionFlow& a) const {
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

  bool is_cross(const AttentionFlow& a) const {
    const ProductFlow* q = a.queries.sources.empty() ? nullptr : product(a.queries.sources[0]);
    const ProductFlow* k = a.keys.sources.empty() ? nullptr : product(a.keys.sources[0]);
    if (intersects(a.queries.sources, a.keys.sources)) return false;
    if (k == nullptr) return q != nullptr && a.keys.root != a.queries.root;
    if (a.keys.root != a.queries.root) return true;
    if (q == nullptr || k->weights < 0 || q->weights < 0) return false;
    const auto rows = [](const ProductFlow& p) { return static_cast<double>(extent(input_of(p).axes)) / p.contracted; };
    return rows(*q) != rows(*k);
  }

  void add_projections(const AttentionFlow& a, bool cross, Unit& unit) {
    std::set<FlowSource> sources;
    for (const Flow* flow : {&a.queries, &a.keys, &a.value_operand}) {
      sources.insert(flow->sources.begin(), flow->sources.end());
    }
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
  void adopt_projections(const AttentionFlow& a, Unit& unit) {
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

  void add_output(const AttentionFlow& a, bool cross, Unit& unit) {
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

  // --- feed-forwards, the head
  void find_feed_forwards() {
    for (const auto& [node, p] : flow_.products) {
      if (p.weights >= 0 && role(node) == Role::other && !p.modulates) add_feed_forward(node, p);
    }
    for (const auto& [node, p] : flow_.products) {
      if (!p.ranked || p.weights < 0 || role(node) != Role::other || p.features > p.contracted) continue;
      for (Unit& unit : units_) {
        if (!unit.feed_forward || unit.feed_forward->experts != static_cast<std::int64_t>(p.features)) continue;
        if (unit.feed_forward->per_token > 0 || unit.nodes.empty() || unit.nodes.back() < node) continue;
        assign(node, Role::router, unit);
        unit.feed_forward->per_token = p.chosen;
        unit.feed_forward->router_bias = p.bias;
        break;
      }
    }
  }

  void add_feed_forward(NodeId down, const ProductFlow& d) {
    const Flow& input = input_of(d);
    if (!input.has(kActivationMarks | kMultiplied) || input.sources.empty() || input.sources.size() > 2) return;
    for (const FlowSource source : input.sources) {
      const ProductFlow* p = product(source);
      if (p == nullptr || p->weights < 0 || p->ranked) return;
      if (role(source) != Role::other) return;
    }
    FeedForwardShape f;
    f.intermediate = static_cast<std::int64_t>(d.contracted);
    f.experts = d.experts > 1 ? d.experts : 0;
    f.activation = activation_of(input);
    f.bias = d.bias;
    const Roles& roles = f.experts > 0 ? kExperts : kDense;
    const ProductFlow& first = *product(input.sources[0]);
    // One matrix for each expert, or one for all that is cut into experts afterwards.
    const double width = d.contracted * (f.experts > 0 && first.experts == 1 ? static_cast<double>(f.experts) : 1);
    Unit unit;
    unit.stream = input_of(first).root;
    describe_input(first, unit);
    if (input.sources.size() == 2) {
      f.gated = true;
      const FlowSource gate = input.gate == kNone ? input.sources[0] : input.gate;
      for (const FlowSource source : input.sources) {
        assign(source, source == gate ? roles.gate : roles.up, unit);
        f.bias = f.bias || product(source)->bias;
      }
    } else {
      f.gated = f.fused_gate_up = first.features == 2 * width;
      f.bias = f.bias || first.bias;
      assign(input.sources[0], f.gated ? roles.gate_up : roles.up, unit);
    }
    assign(down, roles.down, unit);
    unit.post_norms = d.post_norm ? 1 : 0;
    unit.feed_forward = f;
    count_layers(unit);
    units_.push_back(std::move(unit));
  }

  // The lookup that the tokens begin with, learned positions, and the product to words after the last block.
  void find_head() {
    const Unit* last = nullptr;
    for (const Unit& unit : units_) {
      if (unit.attention && unit.attention->kind != AttentionKind::cross &&
          (last == nullptr || unit.nodes.back() > last->nodes.back())) {
        last = &unit;
      }
    }
    if (last == nullptr) return;
    const TensorId stream = last->stream;
    NodeId end = kNone;
    for (const Unit& unit : units_) {
      if (unit.stream == stream && !unit.nodes.empty()) end = std::max(end, unit.nodes.back());
    }

    const Lookup* words = nullptr;
    std::int64_t positions = 0;
    for (const Lookup& lookup : flow_.lookups) {
      if (lookup.result != stream && !flow_.joined.contains(lookup.result)) continue;
      if (words == nullptr || lookup.rows > words->rows) {
        if (words != nullptr) positions = std::max(positions, words->rows);
        words = &lookup;
      } else {
        positions = std::max(positions, lookup.rows);
      }
    }
    const auto hidden = static_cast<double>(last->hidden);
    NodeId head = kNone;
    for (const auto& [node, p] : flow_.products) {
      if (node <= end || p.weights < 0 || p.residual || role(node) != Role::other) continue;
      if (input_of(p).root != stream || p.contracted != hidden) continue;
      const bool to_words = words != nullptr ? p.features == static_cast<double>(words->rows) : p.features > 2 * hidden;
      if (to_words) head = node;
    }
    if (words != nullptr) {
      blocks_.embedding = WordTable{words->node, words->rows, words->width};
      blocks_.roles[words->node] = Role::embedding;
      for (const auto& [table, rows] : flow_.added_tables) positions = std::max(positions, rows);
      blocks_.position_embeddings = positions;
    }
    if (head == kNone) return;
    const ProductFlow& p = flow_.products.at(head);
    blocks_.roles[head] = Role::lm_head;
    blocks_.lm_head = OutputHead{head, static_cast<std::int64_t>(p.features),
                                 words != nullptr && p.operands[p.weights].root == words->table, p.bias};
  }

  // --- from units to blocks
  void describe_input(const ProductFlow& product, Unit& unit) const {
    const Flow& input = input_of(product);
    unit.input = input.sources;
    unit.hidden = static_cast<std::int64_t>(product.contracted);
    if (input.norm == kNone) return;
    unit.norms.push_back(input.norm);
    unit.centred = unit.centred || input.has(kCentred);
  }

  void assign(NodeId node, Role role, Unit& unit) {
    blocks_.roles[node] = role;
    unit.nodes.insert(std::upper_bound(unit.nodes.begin(), unit.nodes.end(), node), node);
  }

  // Attention along an axis that lies outside another of its rows is over frames, what else the same tokens go through
  // over the patches of a frame.
  void name_frames() {
    struct Stream {
      bool temporal = false;
      std::int64_t tokens = 0;  // of a sequence, as cross attention has them
    };
    std::map<TensorId, Stream> streams;
    for (const Unit& unit : units_) {
      if (!unit.attention) continue;
      Stream& stream = streams[unit.stream];
      if (unit.attention->kind == AttentionKind::cross) {
        stream.tokens = std::max(stream.tokens, unit.attention->queries);
      } else {
        stream.temporal = stream.temporal || unit.over_outer_axis;
      }
    }
    for (Unit& unit : units_) {
      if (!unit.attention || unit.attention->kind == AttentionKind::cross) continue;
      const Stream& stream = streams[unit.stream];
      if (unit.over_outer_axis) {
        unit.attention->kind = AttentionKind::temporal;
      } else if (stream.temporal || stream.tokens > unit.attention->queries) {
        unit.attention->kind = AttentionKind::spatial;
      }
    }
  }

  void group() {
    std::map<List<FlowSource>, NodeId> attention_of;  // by what it reads
    for (const Unit& unit : units_) {
      if (unit.attention && !unit.input.empty()) attention_of.emplace(unit.input, unit.first);
    }
    std::map<NodeId, NodeId> beside;  // the first node of a feed-forward, and of the attention that reads the same
    for (const Unit& unit : units_) {
      const auto found = attention_of.find(unit.input);
      if (unit.feed_forward && found != attention_of.end()) beside[unit.first] = found->second;
    }
    const auto place = [&](const Unit& unit) {
      const auto found = beside.find(unit.first);
      const bool parallel = unit.feed_forward && found != beside.end();
      return std::pair(parallel ? std::max(found->second, unit.first) : unit.first, parallel ? 1 : 0);
    };
    std::ranges::stable_sort(units_, [&](const Unit& a, const Unit& b) { return place(a) < place(b); });

    std::vector<Draft> drafts;
    std::map<TensorId, std::size_t> open;  // by stream
    for (Unit& unit : units_) {
      const auto found = open.find(unit.stream);
      Draft* draft = found == open.end() ? nullptr : &drafts[found->second];
      if (unit.attention) {
        const bool parallel = draft != nullptr && draft->block.parallel_blocks;
        if (draft == nullptr || (draft->block.feed_forward && !parallel) ||
            repeats(draft->block.attentions, *unit.attention)) {
          open[unit.stream] = drafts.size();
          draft = &drafts.emplace_back();
          draft->stream = unit.stream;
          draft->block.layers = unit.layers;
          draft->block.passes = unit.passes;
        }
        draft->block.attentions.push_back(*unit.attention);
      } else {
        if (draft == nullptr) continue;  // of no block
        // Passes over matrices of their own within a layer are experts.
        const std::int64_t matrices = unit.layers / draft->block.layers;
        if (unit.feed_forward->experts == 0 && matrices > 1) unit.feed_forward->experts = matrices;
        if (!draft->block.feed_forward) {
          draft->block.feed_forward = unit.feed_forward;
          draft->block.parallel_blocks = beside.contains(unit.first);
        } else {
          FeedForwardShape& f = *draft->block.feed_forward;
          const FeedForwardShape& g = *unit.feed_forward;
          if ((f.experts > 0) != (g.experts > 0)) {
            const std::int64_t shared = f.experts > 0 ? g.intermediate : f.intermediate;
            if (g.experts > 0) f = g;
            f.shared_intermediate = shared;
          } else {
            blocks_.notes.push_back("a block has two feed-forwards: the dimensions are those of the first");
          }
        }
      }
      TransformerBlock& block = draft->block;
      if (block.hidden == 0) block.hidden = unit.hidden;
      for (const NodeId norm : unit.norms) {
        if (!contains(draft->norms, norm)) draft->norms.push_back(norm);
      }
      draft->post_norms += unit.post_norms;
      draft->centred = draft->centred || unit.centred;
      const std::size_t begin = block.products.size();
      for (const NodeId node : unit.nodes) note(block.products, begin, role(node), node);
    }

    std::vector<Draft> kinds;
    for (Draft& draft : drafts) {
      draft.block.norms = static_cast<int>(draft.norms.size()) + draft.post_norms;
      if (draft.block.norms > 0) draft.block.norm = draft.centred ? model::Norm::layer : model::Norm::rms;
      const auto same = std::ranges::find_if(kinds, [&](const Draft& d) { return alike(d, draft); });
      if (same == kinds.end()) {
        kinds.push_back(std::move(draft));
        continue;
      }
      same->block.layers += draft.block.layers;
      for (std::size_t i = 0; i < draft.block.products.size(); ++i) {
        List<NodeId>& nodes = same->block.products[i].nodes;
        nodes.insert(nodes.end(), draft.block.products[i].nodes.begin(), draft.block.products[i].nodes.end());
      }
    }
    std::set<TensorId> seen;
    for (Draft& draft : kinds) {
      // Prefill and decoding of one program: all its weights are those of blocks before.
      std::set<TensorId> weights;
      for (const RoleNodes& products : draft.block.products) {
        const Role r = products.role;
        if (r == Role::scores || r == Role::values) continue;  // with keys and values, which may look like weights
        for (const NodeId node : products.nodes) {
          const ProductFlow* p = product(node);
          if (p == nullptr || p->weights < 0) continue;
          const auto operand = static_cast<std::size_t>(p->weights);
          weights.insert(stored_weights(program_, program_.node(node).operands[operand]));
        }
      }
      draft.block.again = !weights.empty() && std::includes(seen.begin(), seen.end(), weights.begin(), weights.end());
      weights.erase(kNone);
      seen.insert(weights.begin(), weights.end());
      draft.block.name = fmt::format("block {}", blocks_.blocks.size() + 1);
      blocks_.blocks.push_back(std::move(draft.block));
    }
  }

  // A loop over stacked weights is layers, any other one passes over the same.
  void count_layers(Unit& unit) const {
    if (unit.nodes.empty()) return;
    unit.first = unit.nodes.front();
    for (const NodeId node : unit.nodes) {
      const ProductFlow* p = product(node);
      if (p == nullptr || p->weights < 0) continue;
      const int loop = p->operands[p->weights].varies_in;
      if (loop >= 0) unit.layers = std::max(unit.layers, program_.loop(loop).trips);
    }
    unit.passes = std::max<std::int64_t>(1, program_.node(unit.first).count / unit.layers);
  }

  const ProductFlow* product(NodeId node) const {
    const auto found = flow_.products.find(node);
    return found == flow_.products.end() ? nullptr : &found->second;
  }

  Role role(NodeId node) const { return blocks_.roles[node]; }

  const Program& program_;
  Dataflow flow_;
  std::map<FlowSource, List<NodeId>> readers_;  // products with weights that read what a source made
  Blocks blocks_;
  std::vector<Unit> units_;
};

}  // namespace

std::string_view name(Role role) { return word_at(kRoleWords, static_cast<std::size_t>(role)); }
std::string_view name(AttentionKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

Blocks recover_blocks(const Program& program) { return BlockRecovery(program).run(); }

}  // namespace llmperf::program
