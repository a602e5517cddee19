// One list of keys for both ways: a function `describe(visit, value)` names every key once, with its bounds and with
// what holds where nothing is said, and is visited by a Reading or by a Writing, which leaves out what is usual. What
// has no usual value is required.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor/reader.h"
#include "descriptor/writer.h"

namespace llmperf::descriptor {

// Names of an enumeration, in its order.
template <std::size_t N>
using Names = std::array<std::string_view, N>;

struct Reading {
  Reader& r;

  Reader* reader() { return &r; }
  void number(std::string_view key, std::int64_t& value, IntRange range) { value = r.require_int(key, range); }
  void number(std::string_view key, std::int64_t& value, IntRange range, std::int64_t usual) {
    value = r.int_or(key, usual, range);
  }
  void number(std::string_view key, std::optional<std::int64_t>& value, IntRange range) {
    value = r.optional_int(key, range);
  }
  void real(std::string_view key, double& value, double min, double max, double usual) {
    value = r.optional_double(key, min, max).value_or(usual);
  }
  void flag(std::string_view key, bool& value, bool usual = false) { value = r.bool_or(key, usual); }
  void numbers(std::string_view key, std::vector<std::int64_t>& values, IntRange range) {
    values = r.optional_ints(key, range);
  }
  void words(std::string_view key, std::string& text) { text = r.string_or(key, ""); }
  template <class Enum, std::size_t N>
  void choice(std::string_view key, Enum& value, const Names<N>& names) {
    value = static_cast<Enum>(r.choice(key, names));
  }
  template <class Enum, std::size_t N>
  void choice(std::string_view key, Enum& value, const Names<N>& names, Enum usual) {
    value = static_cast<Enum>(r.choice(key, names, static_cast<std::size_t>(usual)));
  }
  // What a reader does not take from here.
  template <class Value>
  void said(std::string_view, const Value&) {}
  // A mapping of its own; of a value that may be missing, only where it is there.
  template <class Describe>
  void part(std::string_view key, bool, Describe&& describe) {
    auto mapping = r.optional_mapping(key);
    if (!mapping) return;
    Reading inner{*mapping};
    describe(inner);
    mapping->finish();
  }
  template <class Value, class Describe>
  void part(std::string_view key, std::optional<Value>& value, Describe&& describe) {
    part(key, true, [&](Reading& inner) { describe(inner, value.emplace()); });
  }
  // A mapping, or `none`; where neither is said it stays as it is. Begun anew by `clear`.
  template <class Value, class Clear, class Describe>
  void whole(std::string_view key, Value& value, const Value&, bool (*)(const Value&), Clear&& clear,
             Describe&& describe) {
    const Node* node = r.find(key);
    if (node == nullptr) return;
    clear(value);
    if (node->kind == Node::Kind::scalar && node->scalar == "none") return;
    part(key, true, [&](Reading& inner) { describe(inner, value); });
  }
};

struct Writing {
  Writer w;

  Reader* reader() { return nullptr; }
  template <class Value>
  void said(std::string_view key, const Value& value) {
    w.put(key, value);
  }
  void number(std::string_view key, std::int64_t value, IntRange) { w.put(key, value); }
  void number(std::string_view key, std::int64_t value, IntRange, std::int64_t usual) { w.unless(usual, key, value); }
  void number(std::string_view key, std::optional<std::int64_t> value, IntRange) {
    if (value) w.put(key, *value);
  }
  void real(std::string_view key, double value, double, double, double usual) { w.unless(usual, key, value); }
  void flag(std::string_view key, bool value, bool usual = false) { w.unless(usual, key, value); }
  void numbers(std::string_view key, const std::vector<std::int64_t>& values, IntRange) {
    w.put(key, fmt::format("[{}]", fmt::join(values, ", ")));
  }
  template <class Enum, std::size_t N>
  void choice(std::string_view key, Enum value, const Names<N>& names) {
    w.put(key, names[static_cast<std::size_t>(value)]);
  }
  template <class Enum, std::size_t N>
  void choice(std::string_view key, Enum value, const Names<N>& names, Enum usual) {
    if (value != usual) choice(key, value, names);
  }
  void words(std::string_view key, const std::string& text) {
    if (!text.empty()) w.words(key, text);
  }
  template <class Describe>
  void part(std::string_view key, bool present, Describe&& describe) {
    if (!present) return;
    Writing inner;
    describe(inner);
    w.put(key, inner.w.in_braces());
  }
  template <class Value, class Describe>
  void part(std::string_view key, std::optional<Value>& value, Describe&& describe) {
    part(key, value.has_value(), [&](Writing& inner) { describe(inner, *value); });
  }
  // `none` where it is not there; nothing where it is what `usual` has.
  template <class Value, class Clear, class Describe>
  void whole(std::string_view key, Value& value, const Value& usual, bool (*present)(const Value&), Clear&&,
             Describe&& describe) {
    const auto text = [&](Value of) {
      Writing inner;
      if (present(of)) describe(inner, of);
      return present(of) ? inner.w.in_braces() : "none";
    };
    if (const std::string own = text(value); own != text(usual)) w.put(key, own);
  }
};

}  // namespace llmperf::descriptor
