// Entries of a mapping in YAML, as a person would write a descriptor: one to a line, or all in braces.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace llmperf::descriptor {

class Writer {
 public:
  template <typename Value>  // as it stands
  void put(std::string_view key, const Value& value) {
    entries_.push_back(fmt::format("{}: {}", key, value));
  }
  void text(std::string_view key, std::string_view value) {
    std::string quoted;
    for (const char c : value) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
    put(key, '"' + quoted + '"');
  }
  // Without quotation marks where YAML needs none.
  void words(std::string_view key, std::string_view value) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ._/-+(),;";
    const bool letter = !value.empty() && kPlain.find(value.front()) < 52;
    const bool word = value != "true" && value != "false" && value != "null" && value != "yes" && value != "no";
    if (letter && word && value.find_first_not_of(kPlain) == std::string_view::npos && value.back() != ' ') {
      put(key, value);
    } else {
      text(key, value);
    }
  }
  // A mapping of its own, a line an entry.
  void block(std::string_view key, const Writer& inner) {
    entries_.push_back(fmt::format("{}:", key));
    for (const std::string& entry : inner.entries_) entries_.push_back("  " + entry);
  }
  void flag(std::string_view key, bool value) { unless(false, key, value); }
  // Only what is not `usual`, which is what a reader takes where nothing is said.
  template <typename Usual, typename Value>
  void unless(const Usual& usual, std::string_view key, const Value& value) {
    if (value != static_cast<Value>(usual)) put(key, value);
  }

  bool empty() const { return entries_.empty(); }
  std::string lines() const { return join(entries_, "\n") + "\n"; }
  std::string in_braces() const { return "{" + join(entries_, ", ") + "}"; }

 private:
  std::vector<std::string> entries_;
};

}  // namespace llmperf::descriptor
