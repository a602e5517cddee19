#include <algorithm>

#include "graph/hlo/blocks_pass.h"

namespace llmperf::graph::hlo {
namespace {

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

}  // namespace

void BlockRecovery::find_feed_forwards() {
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

void BlockRecovery::add_feed_forward(NodeId down, const ProductFlow& d) {
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
void BlockRecovery::find_head() {
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
    blocks_.roles[static_cast<std::size_t>(words->node)] = Role::embedding;
    for (const auto& [table, rows] : flow_.added_tables) positions = std::max(positions, rows);
    blocks_.position_embeddings = positions;
  }
  if (head == kNone) return;
  const ProductFlow& p = flow_.products.at(head);
  blocks_.roles[static_cast<std::size_t>(head)] = Role::lm_head;
  blocks_.lm_head = OutputHead{head, static_cast<std::int64_t>(p.features),
                               words != nullptr && p.operands[p.weights].root == words->table, p.bias};
}

}  // namespace llmperf::graph::hlo
