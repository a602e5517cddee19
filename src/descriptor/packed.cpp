#include "descriptor/packed.h"

namespace llmperf::descriptor {
namespace {

void append_text(std::string& out, std::string_view text) {
  out.append(std::to_string(text.size())).append(":").append(text);
}

void append_whole(std::string& out, char what, std::size_t count, std::string_view parts) {
  const std::string body = std::to_string(count).append(":").append(parts);
  out += what;
  append_text(out, body);
}

void append(std::string& out, const Node& node) {
  std::string parts;
  switch (node.kind) {
    case Node::Kind::null: out += 'n'; break;
    case Node::Kind::scalar:
      out += node.quoted ? 'q' : 's';
      append_text(out, node.scalar);
      break;
    case Node::Kind::sequence:
      for (const Node& item : node.items) append(parts, item);
      append_whole(out, 'l', node.items.size(), parts);
      break;
    case Node::Kind::mapping:
      for (const Node::Entry& entry : node.entries) {
        append_text(parts, entry.key);
        append(parts, entry.value);
      }
      append_whole(out, 'm', node.entries.size(), parts);
      break;
  }
}

class Unpacking {
 public:
  explicit Unpacking(std::string_view packed) : at_(packed.data()) {}

  char kind() { return *at_++; }
  std::size_t number() {
    std::size_t value = 0;
    for (; *at_ != ':'; ++at_) value = 10 * value + static_cast<std::size_t>(*at_ - '0');
    ++at_;
    return value;
  }
  std::string_view text() {
    const std::size_t size = number();
    const std::string_view found(at_, size);
    at_ += size;
    return found;
  }
  // Of a list or a mapping, whose size is not wanted.
  std::size_t count() {
    number();
    return number();
  }
  void node(Node& node) {
    const char what = kind();
    if (what == 's' || what == 'q') {
      node.kind = Node::Kind::scalar;
      node.quoted = what == 'q';
      node.scalar = text();
    } else if (what == 'l') {
      node.kind = Node::Kind::sequence;
      node.items.resize(count());
      for (Node& item : node.items) this->node(item);
    } else if (what == 'm') {
      node.kind = Node::Kind::mapping;
      node.entries.resize(count());
      for (Node::Entry& entry : node.entries) {
        entry.key = text();
        this->node(entry.value);
      }
    }
  }
  void skip() {
    if (kind() != 'n') text();
  }

 private:
  const char* at_;
};

}  // namespace

std::string pack(const Node& node) {
  std::string out;
  append(out, node);
  return out;
}

Node unpack(std::string_view packed) {
  Node root;
  Unpacking(packed).node(root);
  return root;
}

std::vector<std::string_view> packed_values(std::string_view packed, std::string_view key) {
  Unpacking at(packed);
  std::vector<std::string_view> found;
  if (at.kind() != 'm') return found;
  for (std::size_t left = at.count(); left > 0; --left) {
    if (at.text() != key) {
      at.skip();
      continue;
    }
    const char what = at.kind();
    if (what == 's' || what == 'q') found.push_back(at.text());
    for (std::size_t items = what == 'l' ? at.count() : 0; items > 0; --items) {
      const char item = at.kind();
      if (item != 's' && item != 'q') return found;
      found.push_back(at.text());
    }
    return found;
  }
  return found;
}

}  // namespace llmperf::descriptor
