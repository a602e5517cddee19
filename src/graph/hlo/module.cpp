#include "graph/hlo/module.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "graph/hlo/lexer.h"
#include "graph/hlo/parser.h"

namespace llmperf::graph::hlo {
namespace {

Module parse(std::unique_ptr<Source> source) {
  Module module;
  module.source = std::move(source);
  Lexer lexer(*module.source);
  Parser(module, lexer).parse();
  return module;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '$';
}

// Behind the mark that closes the string at `at`; marks that a backslash precedes are in it.
std::size_t behind_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.size();
}

// Behind the bracket that closes the one at `at`; the end when nothing does.
std::size_t behind_bracket(std::string_view text, std::size_t at) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = behind_string(text, at);
      continue;
    }
    if (c == '-' && at + 1 < text.size() && text[at + 1] == '>') {
      ++at;
    } else if (c == '(' || c == '[' || c == '{' || c == '<') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}' || c == '>') {
      if (--depth == 0) return at + 1;
    }
    ++at;
  }
  return text.size();
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

constexpr int kMaxAliases = 20;  // that lead from one to the next

void append_scope(const Module& module, std::string_view location, int depth, std::string& scope) {
  location = trimmed(location);
  if (depth > kMaxAliases || location.empty() || !scope.empty()) return;
  if (location.starts_with("loc(") && location.ends_with(')')) location = location.substr(4, location.size() - 5);
  if (location.starts_with('#')) {
    std::size_t end = 1;
    while (end < location.size() && is_name(location[end])) ++end;
    const auto alias = module.aliases.find(location.substr(0, end));
    if (alias != module.aliases.end()) append_scope(module, alias->second, depth + 1, scope);
    return;
  }
  if (depth > 0 && location.starts_with("callsite(")) return;  // frames of the program that made it
  if (location.starts_with("callsite(") || location.starts_with("fused")) {
    const std::size_t begin = location.find_first_of("([", 5);
    const std::size_t list = location.starts_with("fused") ? location.find('[') : begin;
    if (list != std::string_view::npos) append_scope(module, location.substr(list + 1), depth + 1, scope);
    return;
  }
  if (!location.starts_with('"')) return;
  const std::size_t end = location.find('"', 1);
  if (end == std::string_view::npos) return;
  const std::string_view name = location.substr(1, end - 1);
  // "file.py":12:3 is a place, "name"(…) a name of what is at the place in brackets.
  const std::string_view rest = location.substr(end + 1);
  if (rest.starts_with(':')) {
    std::size_t last = 1;
    while (last < rest.size() && (is_digit(rest[last]) || rest[last] == ':')) ++last;
    const std::string_view numbers = rest.substr(0, last);
    scope = std::string(name) + std::string(numbers.substr(0, numbers.find(':', 1)));
    return;
  }
  scope = name;
  // A name in a name: the inner one is the scope around it, when it looks like one (a function of Python does not).
  if (!rest.starts_with('(') || !rest.ends_with(')')) return;
  std::string outer;
  append_scope(module, rest.substr(1, rest.size() - 2), depth + 1, outer);
  const bool place = outer.rfind(':') != std::string::npos && is_digit(outer.back());
  if (!place && outer.find_first_of("/(") != std::string::npos) scope = outer + "/" + scope;
}

}  // namespace

std::optional<std::string_view> Instruction::find(std::string_view key) const {
  for (const Attribute& attribute : attributes) {
    if (attribute.key == key) return attribute.text;
  }
  return std::nullopt;
}

std::optional<std::string_view> Instruction::unnamed(std::size_t n) const {
  for (const Attribute& attribute : attributes) {
    if (attribute.key.empty() && n-- == 0) return attribute.text;
  }
  return std::nullopt;
}

void Module::fail(const Instruction& i, std::string message, std::string hint) const {
  throw Error(ErrorKind::bad_input, {{position(i), std::move(message), std::move(hint)}});
}

Module parse_file(const std::string& path) { return parse(std::make_unique<Source>(path)); }
Module parse_text(std::string name, std::string text) {
  return parse(std::make_unique<Source>(std::move(name), std::move(text)));
}

std::vector<std::int64_t> integers(std::string_view text) {
  std::vector<std::int64_t> values;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = std::min(text.find('"', at + 1), text.size() - 1) + 1;
    } else if (c == ':') {
      // A type, as in `0 : i64`; a range 0:4 goes on with a number.
      const std::size_t next = text.find_first_not_of(' ', at + 1);
      if (next == std::string_view::npos) break;
      at = next;
      if (!is_digit(text[at]) && text[at] != '-' && text[at] != '[') {
        while (at < text.size() && is_name(text[at])) ++at;
        const std::size_t bracket = std::min(text.find_first_not_of(' ', at), text.size());
        if (bracket < text.size() && text[bracket] == '<') at = behind_bracket(text, bracket);
      }
    } else if (is_digit(c) || (c == '-' && at + 1 < text.size() && is_digit(text[at + 1]))) {
      std::int64_t value = 0;
      const auto read = std::from_chars(text.data() + at, text.data() + text.size(), value);
      at = std::max(static_cast<std::size_t>(read.ptr - text.data()), at + 1);
      if (read.ec == std::errc{}) values.push_back(value);
      // 1.5e3 is one number.
      while (at < text.size() && is_name(text[at])) ++at;
    } else if (is_name(c)) {
      while (at < text.size() && is_name(text[at])) ++at;
      if (text.substr(0, at).ends_with("array") && at < text.size() && text[at] == '<') {
        const std::size_t type = text.find_first_of(":>", at);  // array<i64: 0, 1>
        if (type == std::string_view::npos) break;
        at = type + 1;
      }
    } else {
      ++at;
    }
  }
  return values;
}

std::vector<std::int64_t> integer_list(std::string_view text, std::size_t n) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '[') continue;
    const std::size_t end = behind_bracket(text, at);
    if (n-- == 0) return integers(text.substr(at, end - at));
    at = end - 1;
  }
  return {};
}

std::vector<std::vector<std::int64_t>> integer_rows(std::string_view text) {
  std::vector<std::vector<std::int64_t>> rows;
  const std::size_t outer = text.find('[');
  if (outer == std::string_view::npos) {
    // dense<0> : tensor<1x1xi64>, a splat, or dense<> of no elements.
    const std::size_t begin = text.find('<');
    if (begin == std::string_view::npos) return rows;
    const std::vector<std::int64_t> value = integers(text.substr(begin, behind_bracket(text, begin) - begin));
    if (value.empty()) return rows;
    const std::size_t word = text.find("tensor");
    const std::size_t type = word == std::string_view::npos ? word : text.find('<', word);
    std::int64_t extents[2] = {1, 1};
    if (type != std::string_view::npos) {
      std::size_t at = type + 1;
      for (std::int64_t& extent : extents) {
        const auto read = std::from_chars(text.data() + at, text.data() + text.size(), extent);
        if (read.ec != std::errc{}) return rows;
        at = static_cast<std::size_t>(read.ptr - text.data()) + 1;
      }
    }
    constexpr std::int64_t kMost = 1 << 20;
    if (extents[0] < 0 || extents[1] < 0 || extents[0] > kMost ||
        extents[1] > kMost / std::max<std::int64_t>(1, extents[0]))
      return rows;
    rows.assign(static_cast<std::size_t>(extents[0]), std::vector(static_cast<std::size_t>(extents[1]), value[0]));
    return rows;
  }
  const std::size_t end = behind_bracket(text, outer);
  for (std::size_t at = outer + 1; at < end; ++at) {
    if (text[at] != '[') continue;
    const std::size_t row_end = behind_bracket(text, at);
    rows.push_back(integers(text.substr(at, row_end - at)));
    at = row_end - 1;
  }
  if (rows.empty()) rows.push_back(integers(text.substr(outer, end - outer)));
  return rows;
}

// Of several keys of that name the outermost one.
std::optional<std::string_view> field(std::string_view text, std::string_view key) {
  std::optional<std::string_view> found;
  int found_depth = 0;
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '-' && at + 1 < text.size() && text[at + 1] == '>') {
      ++at;
      continue;
    }
    if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
    if (c == ')' || c == ']' || c == '}' || c == '>') --depth;
    if (!is_name(c)) continue;
    const std::size_t begin = at;
    while (at < text.size() && is_name(text[at])) ++at;
    const std::string_view word = text.substr(begin, at - begin);
    --at;
    if (word != key || (found && found_depth <= depth)) continue;
    std::size_t value = text.find_first_not_of(' ', at + 1);
    if (value == std::string_view::npos || text[value] != '=') continue;
    value = std::min(text.find_first_not_of(' ', value + 1), text.size());
    std::size_t end = value;
    while (end < text.size() && text[end] != ',' && text[end] != '>' && text[end] != '}' && text[end] != ')') {
      const char v = text[end];
      end = v == '"'                                       ? behind_string(text, end)
            : v == '[' || v == '{' || v == '<' || v == '(' ? behind_bracket(text, end)
                                                           : end + 1;
    }
    found = trimmed(text.substr(value, end - value));
    found_depth = depth;
  }
  return found;
}

std::vector<std::int64_t> integers(const Instruction& i, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const auto text = i.find(key)) return integers(*text);
  }
  return {};
}

std::vector<std::int64_t> field_integers(std::string_view text, std::string_view key) {
  const auto value = field(text, key);
  return value ? integers(*value) : std::vector<std::int64_t>{};
}

std::vector<std::int64_t> window_integers(const Instruction& i, std::string_view key, std::string_view generic) {
  const auto window = i.find("window");
  return window ? field_integers(*window, key) : integers(i, {generic});
}

std::string_view unquoted(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('@')) text.remove_prefix(1);
  if (text.size() < 2 || !text.starts_with('"')) return text;
  const std::size_t end = behind_string(text, 0);
  return text.substr(1, end - (text[end - 1] == '"' && end > 1 ? 2 : 1));
}

std::string scope_of(const Module& module, const Instruction& i) {
  std::string scope;
  append_scope(module, i.location, 0, scope);
  return scope;
}

}  // namespace llmperf::graph::hlo
