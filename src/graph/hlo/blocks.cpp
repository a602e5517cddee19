#include "graph/hlo/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "graph/hlo/blocks_pass.h"

namespace llmperf::graph::hlo {
namespace {

constexpr std::string_view kRoleNames[] = {"other",
                                           "query",
                                           "key",
                                           "value",
                                           "query_key",
                                           "key_value",
                                           "qkv",
                                           "latent",
                                           "scores",
                                           "values",
                                           "attention",
                                           "output",
                                           "cross_query",
                                           "cross_key",
                                           "cross_value",
                                           "cross_key_value",
                                           "cross_scores",
                                           "cross_values",
                                           "cross_attention",
                                           "cross_output",
                                           "gate",
                                           "up",
                                           "gate_up",
                                           "down",
                                           "router",
                                           "expert_gate",
                                           "expert_up",
                                           "expert_gate_up",
                                           "expert_down",
                                           "embedding",
                                           "lm_head"};
static_assert(std::size(kRoleNames) == static_cast<std::size_t>(Role::lm_head) + 1);
constexpr std::string_view kKindNames[] = {"self", "spatial", "temporal", "cross"};

struct Draft {
  TransformerBlock block;
  TensorId stream = kNone;
  std::vector<NodeId> norms;
  int post_norms = 0;
  bool centred = false;
};

// Whether a loop's slices of one value make up the whole of it: one layer of stacked weights in every pass.
bool takes_layers(const Program& program, const Node& slice) {
  if (slice.loop < 0 || slice.operands.empty() || slice.results.empty()) return false;
  const Type& whole = program.type(slice.operands[0]);
  const Type& part = program.type(slice.results[0]);
  const double passes = static_cast<double>(program.loops[static_cast<std::size_t>(slice.loop)].trips);
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

// Whether a block that has `shapes` does not take another attention of this shape.
bool repeats(const std::vector<AttentionShape>& shapes, const AttentionShape& shape) {
  return std::any_of(shapes.begin(), shapes.end(), [&](const AttentionShape& s) {
    return s.kind == shape.kind && s.batch == shape.batch && s.queries == shape.queries;
  });
}

}  // namespace

std::string_view name(Role role) { return kRoleNames[static_cast<std::size_t>(role)]; }
std::string_view name(AttentionKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

const Flow& input_of(const ProductFlow& product) { return product.operands[product.weights == 0 ? 1 : 0]; }

const ProductFlow* BlockRecovery::product(NodeId node) const {
  const auto found = flow_.products.find(node);
  return found == flow_.products.end() ? nullptr : &found->second;
}

void BlockRecovery::assign(NodeId node, Role role, Unit& unit) {
  blocks_.roles[static_cast<std::size_t>(node)] = role;
  unit.nodes.insert(std::upper_bound(unit.nodes.begin(), unit.nodes.end(), node), node);
}

void BlockRecovery::describe_input(const ProductFlow& product, Unit& unit) const {
  const Flow& input = input_of(product);
  unit.input = input.sources;
  unit.hidden = static_cast<std::int64_t>(product.contracted);
  if (input.norm == kNone) return;
  unit.norms.push_back(input.norm);
  unit.centred = unit.centred || input.has(kCentred);
}

// A loop over stacked weights is layers, any other one passes over the same.
void BlockRecovery::count_layers(Unit& unit) const {
  if (unit.nodes.empty()) return;
  unit.first = unit.nodes.front();
  for (const NodeId node : unit.nodes) {
    const ProductFlow* p = product(node);
    if (p == nullptr || p->weights < 0) continue;
    const int loop = p->operands[p->weights].varies_in;
    if (loop >= 0) unit.layers = std::max(unit.layers, program_.loops[static_cast<std::size_t>(loop)].trips);
  }
  unit.passes = std::max<std::int64_t>(1, program_.node(unit.first).count / unit.layers);
}

// Attention along an axis that lies outside another of its rows is over frames, what else the same tokens go through
// over the patches of a frame.
void BlockRecovery::name_frames() {
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

void BlockRecovery::group() {
  std::map<std::vector<FlowSource>, NodeId> attention_of;  // by what it reads
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
  std::stable_sort(units_.begin(), units_.end(), [&](const Unit& a, const Unit& b) { return place(a) < place(b); });

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
      if (std::find(draft->norms.begin(), draft->norms.end(), norm) == draft->norms.end()) draft->norms.push_back(norm);
    }
    draft->post_norms += unit.post_norms;
    draft->centred = draft->centred || unit.centred;
    const std::size_t begin = block.products.size();
    for (const NodeId node : unit.nodes) {
      const auto same = std::find_if(block.products.begin() + static_cast<std::ptrdiff_t>(begin), block.products.end(),
                                     [&](const RoleNodes& r) { return r.role == role(node); });
      if (same != block.products.end()) {
        same->nodes.push_back(node);
      } else {
        block.products.push_back({role(node), {node}});
      }
    }
  }

  std::vector<Draft> kinds;
  for (Draft& draft : drafts) {
    draft.block.norms = static_cast<int>(draft.norms.size()) + draft.post_norms;
    if (draft.block.norms > 0) draft.block.norm = draft.centred ? model::Norm::layer : model::Norm::rms;
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const Draft& d) { return alike(d, draft); });
    if (same == kinds.end()) {
      kinds.push_back(std::move(draft));
      continue;
    }
    same->block.layers += draft.block.layers;
    for (std::size_t i = 0; i < draft.block.products.size(); ++i) {
      std::vector<NodeId>& nodes = same->block.products[i].nodes;
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
        const auto found = flow_.products.find(node);
        if (found == flow_.products.end() || found->second.weights < 0) continue;
        const auto operand = static_cast<std::size_t>(found->second.weights);
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

BlockRecovery::BlockRecovery(const Program& program) : program_(program), flow_(follow(program)) {
  for (const auto& [node, p] : flow_.products) {
    if (p.weights < 0) continue;
    for (const FlowSource source : input_of(p).sources) readers_[source].push_back(node);
  }
}

Blocks BlockRecovery::run() {
  blocks_.roles.assign(program_.nodes.size(), Role::other);
  find_attentions();
  find_feed_forwards();
  name_frames();
  find_head();
  group();

  std::vector<bool> inside(program_.nodes.size(), false);
  for (const TransformerBlock& block : blocks_.blocks) {
    for (const RoleNodes& products : block.products) {
      for (const NodeId node : products.nodes) inside[static_cast<std::size_t>(node)] = true;
    }
  }
  for (std::size_t i = 0; i < program_.nodes.size(); ++i) {
    const OpClass c = program_.nodes[i].traits.op_class;
    const Role r = blocks_.roles[i];
    if (inside[i] || (c != OpClass::product && c != OpClass::attention && r == Role::other)) continue;
    const auto same =
        std::find_if(blocks_.outside.begin(), blocks_.outside.end(), [&](const RoleNodes& n) { return n.role == r; });
    if (same != blocks_.outside.end()) {
      same->nodes.push_back(static_cast<NodeId>(i));
    } else {
      blocks_.outside.push_back({r, {static_cast<NodeId>(i)}});
    }
  }
  return std::move(blocks_);
}

Blocks recover_blocks(const Program& program) { return BlockRecovery(program).run(); }

}  // namespace llmperf::graph::hlo
