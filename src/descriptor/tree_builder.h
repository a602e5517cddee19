// What holds for YAML and JSON alike: what a text must be before a parser sees it, and the tree of Nodes that is built
// from the parser's events, with unique keys and of bounded depth.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "descriptor/node.h"

namespace llmperf::descriptor {

// `text` without its byte order mark. Throws Error(bad_input) when it is larger than `max_bytes`, not UTF-8, or
// holds a control character (yaml-cpp takes 0x04 for the end of the file and leading zeros for UTF-16).
std::string_view check_source_text(std::string_view text, const std::string& file,
                                   std::size_t max_bytes = kMaxDescriptorBytes);

// 1-based line and column (in bytes) of an offset into `text`.
SourcePosition position_of(std::string_view text, std::size_t offset, const std::string& file);

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
