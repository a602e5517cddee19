#include "descriptor/tree_builder.h"

#include <fmt/format.h>

#include "base/text.h"

namespace llmperf::descriptor {

void TreeBuilder::open(Node::Kind kind, int line, int column) {
  if (open_.size() >= static_cast<std::size_t>(kMaxDescriptorDepth)) {
    fail(line, column, fmt::format("nested deeper than {} levels", kMaxDescriptorDepth));
  }
  Node node;
  node.kind = kind;
  node.line = line;
  node.column = column;
  open_.push_back({&place(std::move(node)), false, {}});
}

void TreeBuilder::close() { open_.pop_back(); }

void TreeBuilder::scalar(int line, int column, std::string text, bool quoted) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.quoted = quoted;
  node.scalar = std::move(text);
  node.line = line;
  node.column = column;
  place(std::move(node));
}

void TreeBuilder::null(int line, int column) {
  Node node;
  node.line = line;
  node.column = column;
  place(std::move(node));
}

void TreeBuilder::key(int line, int column, std::string text) {
  Frame& frame = open_.back();
  std::vector<Node::Entry>& entries = frame.node->entries;
  const auto [found, added] = frame.keys.emplace(text, entries.size());
  if (!added) {
    const Node::Entry& first = entries[found->second];
    fail(line, column, fmt::format("duplicate key {}", quote(text)),
         fmt::format("first given at line {}, column {}", first.line, first.column));
  }
  entries.push_back({std::move(text), line, column, {}});
  frame.key_open = true;
}

bool TreeBuilder::expects_key() const {
  return !open_.empty() && open_.back().node->kind == Node::Kind::mapping && !open_.back().key_open;
}

void TreeBuilder::fail(int line, int column, std::string message, std::string hint) const {
  throw Error(ErrorKind::bad_input, {{{file_, line, column}, std::move(message), std::move(hint)}});
}

Node& TreeBuilder::place(Node node) {
  if (open_.empty()) {
    root_ = std::move(node);
    return root_;
  }
  Frame& parent = open_.back();
  if (parent.node->kind == Node::Kind::sequence) return parent.node->items.emplace_back(std::move(node));
  parent.key_open = false;
  Node& value = parent.node->entries.back().value;
  value = std::move(node);
  return value;
}

}  // namespace llmperf::descriptor
