// A parsed document with positions. YAML and JSON both become this tree, so one strict reader serves model, device and
// scenario files and Hugging Face configs. Scalars keep their text: conversion is the reader's job, with its own rules
// (yaml-cpp 0.7 would read 010 as 8).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmperf::descriptor {

struct Node {
  enum class Kind { null, scalar, sequence, mapping };

  Kind kind = Kind::null;
  bool quoted = false;  // scalar written in quotes: always a string, never a number or a boolean
  std::string scalar;   // text of a scalar, unescaped
  int line = 0;         // 1-based start
  int column = 0;
  std::vector<Node> items;  // of a sequence
  struct Entry;
  std::vector<Entry> entries;                    // of a mapping, in file order; keys are unique
  const Node* find(std::string_view key) const;  // the key's value; null where there is no such key
};

struct Node::Entry {
  std::string key;
  int line = 0;  // of the key
  int column = 0;
  Node value;
};

inline const Node* Node::find(std::string_view key) const {
  const auto at = std::ranges::find(entries, key, &Entry::key);
  return at == entries.end() ? nullptr : &at->value;
}

struct Document {
  std::string file;  // as it appears in diagnostics
  Node root;
};

// Limits that every descriptor obeys, checked before memory is spent. (yaml-cpp takes up to 230 bytes per byte of
// hostile text: it queues an unclosed bracket to the end of the file.)
inline constexpr std::size_t kMaxDescriptorBytes = std::size_t{1} << 20;
inline constexpr int kMaxDescriptorDepth = 64;
// JSON as a kind of file has it.
struct JsonRules {
  std::size_t max_bytes = kMaxDescriptorBytes;
  bool python_numbers = false;  // NaN, Infinity and -Infinity, which Python's json writes and JSON does not have
};
// config.json of published models: lists of modules that are not quantised alone can take more than a megabyte.
inline constexpr JsonRules kConfigRules = {std::size_t{8} << 20, true};

// Both throw Error (bad_input, with positions) on syntax errors, duplicate keys, nesting beyond kMaxDescriptorDepth,
// text beyond kMaxDescriptorBytes (or JsonRules::max_bytes), invalid UTF-8, and (YAML) anchors, aliases, tags and more
// than one document.
Document parse_yaml(std::string_view text, std::string file);
Document parse_json(std::string_view text, std::string file, const JsonRules& rules = {});

// The node as JSON: numbers and truths that are not in quotes stand as they are, all else is a string.
std::string to_json(const Node& node);

// Reads a regular file of at most kMaxDescriptorBytes, or what `json` allows (else Error bad_input: missing, a
// directory, unreadable, too large) and parses it by its extension (.json: JSON; .yaml, .yml: YAML).
Document parse_file(const std::string& path, const JsonRules& json = {});
std::string read_text_file(const std::string& path, std::size_t max_bytes = kMaxDescriptorBytes);

}  // namespace llmperf::descriptor
