// Builds a Node tree from the events of a YAML or JSON parser and enforces what holds for both: unique keys and bounded
// depth.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "descriptor/node.h"

namespace llmperf::descriptor {

class TreeBuilder {
 public:
  explicit TreeBuilder(std::string file) : file_(std::move(file)) {}

  void open(Node::Kind kind, int line, int column);  // sequence or mapping
  void close();
  void scalar(int line, int column, std::string text, bool quoted);
  void null(int line, int column);
  void key(int line, int column, std::string text);

  // The next event must be a key (the innermost open node is a mapping whose last value is complete).
  bool expects_key() const;
  Document finish() { return {file_, std::move(root_)}; }
  [[noreturn]] void fail(int line, int column, std::string message, std::string hint = {}) const;

 private:
  struct Frame {
    Node* node;
    bool key_open = false;
    // Keys seen so far, by their index in entries: a lookup that stays fast for any number of keys.
    std::unordered_map<std::string, std::size_t> keys;
  };
  Node& place(Node node);

  std::string file_;
  Node root_;
  std::vector<Frame> open_;  // a parent does not grow while its last child is open, so the pointers stay valid
};

}  // namespace llmperf::descriptor
