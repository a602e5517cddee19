#include "descriptor/tree_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "base/utf8.h"

namespace llmperf::descriptor {

std::string_view check_source_text(std::string_view text, const std::string& file, std::size_t max_bytes) {
  const auto fail = [&](std::size_t offset, std::string message) {
    throw Error(ErrorKind::bad_input, {{position_of(text, offset, file), std::move(message), {}}});
  };
  if (text.size() > max_bytes) {
    const std::string limit = format_bytes_binary(Bytes{static_cast<double>(max_bytes)});
    throw Error(ErrorKind::bad_input, {{{file, 0, 0}, fmt::format("too large: more than {}", limit), {}}});
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    const std::optional<char32_t> character = decode_utf8(text, offset);
    const auto byte = static_cast<unsigned char>(text[start]);
    if (!character) fail(start, fmt::format("not UTF-8 text: byte 0x{:02x}", byte));
    const bool space = *character == '\t' || *character == '\n' || *character == '\r';
    if ((*character < 0x20 && !space) || *character == 0x7F) {
      fail(start, fmt::format("control character 0x{:02x} in the text", byte));
    }
  }
  return text;
}

SourcePosition position_of(std::string_view text, std::size_t offset, const std::string& file) {
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t line_break = before.rfind('\n');
  const std::size_t line_start = line_break == std::string_view::npos ? 0 : line_break + 1;
  return {file, static_cast<int>(line), static_cast<int>(before.size() - line_start) + 1};
}

namespace {

Node node_at(Node::Kind kind, int line, int column) {
  Node node;
  node.kind = kind;
  node.line = line;
  node.column = column;
  return node;
}

}  // namespace

void TreeBuilder::open(Node::Kind kind, int line, int column) {
  if (open_.size() >= static_cast<std::size_t>(kMaxDescriptorDepth)) {
    fail(line, column, fmt::format("nested deeper than {} levels", kMaxDescriptorDepth));
  }
  open_.push_back({&place(node_at(kind, line, column)), false, {}});
}

void TreeBuilder::close() { open_.pop_back(); }

void TreeBuilder::scalar(int line, int column, std::string text, bool quoted) {
  Node node = node_at(Node::Kind::scalar, line, column);
  node.quoted = quoted;
  node.scalar = std::move(text);
  place(std::move(node));
}

void TreeBuilder::null(int line, int column) { place(node_at(Node::Kind::null, line, column)); }

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
