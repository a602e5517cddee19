#include "program/module.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace llmperf::program {

Source::Source(const std::string& path) : name_(path) {
  const RegularFile file(path, kMaxProgramBytes);
  const auto size = static_cast<std::size_t>(file.size());
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (address == MAP_FAILED) file.fail("cannot be mapped into memory");
  ::madvise(address, size, MADV_SEQUENTIAL);
  text_ = {static_cast<const char*>(address), size};
  mapped_ = true;
}

Source::Source(std::string name, std::string text) : name_(std::move(name)), owned_(std::move(text)), text_(owned_) {}

Source::~Source() {
  if (mapped_) ::munmap(const_cast<char*>(text_.data()), text_.size());
}

SourcePosition Source::position(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  if (offset < counted_) {
    counted_ = line_start_ = 0;
    line_ = 1;
  }
  while (counted_ < offset) {
    const void* found = std::memchr(text_.data() + counted_, '\n', offset - counted_);
    if (found == nullptr) break;
    counted_ = line_start_ = static_cast<std::size_t>(static_cast<const char*>(found) - text_.data()) + 1;
    ++line_;
  }
  counted_ = offset;
  return {name_, line_, static_cast<int>(offset - line_start_) + 1};
}

void Source::release_before(std::size_t offset) {
  constexpr std::size_t kLeast = std::size_t{8} << 20;
  if (!mapped_ || offset < released_ + kLeast) return;
  position(offset);  // lines are counted while the pages are at hand
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t end = offset / page * page;
  ::madvise(const_cast<char*>(text_.data()) + released_, end - released_, MADV_DONTNEED);
  released_ = end;
}

namespace {

using enum ElementClass;
struct KnownElement {
  std::string_view name;
  double bits;
  Dtype compute;
  ElementClass kind;
};
// Floating-point types of six bits are stored densely and multiplied at the rate of four (OCP microscaling formats).
constexpr KnownElement kElements[] = {
    {"f64", 64, Dtype::fp64, floating},         {"f32", 32, Dtype::fp32, floating},
    {"tf32", 32, Dtype::tf32, floating},        {"f16", 16, Dtype::fp16, floating},
    {"bf16", 16, Dtype::bf16, floating},        {"f8E4M3FN", 8, Dtype::fp8, floating},
    {"f8E5M2", 8, Dtype::fp8, floating},        {"f8E4M3", 8, Dtype::fp8, floating},
    {"f8E4M3FNUZ", 8, Dtype::fp8, floating},    {"f8E5M2FNUZ", 8, Dtype::fp8, floating},
    {"f8E4M3B11FNUZ", 8, Dtype::fp8, floating}, {"f8E3M4", 8, Dtype::fp8, floating},
    {"f8E8M0FNU", 8, Dtype::fp8, floating},     {"f6E2M3FN", 6, Dtype::fp4, floating},
    {"f6E3M2FN", 6, Dtype::fp4, floating},      {"f4E2M1FN", 4, Dtype::fp4, floating},
    {"f80", 128, Dtype::fp64, floating},        {"f128", 128, Dtype::fp64, floating},
    {"i1", 8, Dtype::boolean, boolean},         {"index", 64, Dtype::int32, integer},
    {"none", 0, Dtype::boolean, integer},
};

Dtype integer_dtype(int bits) { return bits <= 4 ? Dtype::int4 : bits <= 8 ? Dtype::int8 : Dtype::int32; }

}  // namespace

bool parse_element(std::string_view name, Element& element) {
  for (const KnownElement& known : kElements) {
    if (known.name != name) continue;
    element = {name, known.bits, known.compute, known.kind};
    return true;
  }
  // i8, si8, ui8 of any width up to 128.
  const std::size_t prefix = name.starts_with("si") || name.starts_with("ui") ? 2
                             : name.starts_with('i') || name.starts_with('u') ? 1
                                                                              : 0;
  constexpr std::size_t kMostDigits = 3;
  int bits = 0;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + prefix, end, bits);
  if (prefix == 0 || name.size() > prefix + kMostDigits || read.ptr != end || bits < 1 || bits > 128) return false;
  if (bits == 1) {
    element = {name, 8, Dtype::boolean, boolean};
    return true;
  }
  // Below a byte elements are packed; others take the next power of two.
  int stored = 2;
  while (stored < bits) stored *= 2;
  element = {name, static_cast<double>(stored), integer_dtype(bits), integer};
  return true;
}

model::ElementFormat element_format(const Element& element) {
  return {.name = name(element.compute), .bits = element.bits, .block = 1};
}

bool Type::dynamic() const {
  return unranked || contains(dims, kDynamic) ||
         std::ranges::any_of(members, [](const Type& t) { return t.dynamic(); });
}

double Type::elements() const {
  if (!tensor()) return 0;
  double product = 1;
  for (const std::int64_t extent : dims) product *= static_cast<double>(extent);
  return product;
}

double Type::extent(const Integers& axes) const {
  double product = 1;
  for (const std::int64_t axis : axes) product *= static_cast<double>(dims[axis]);
  return product;
}

Bytes Type::bytes() const {
  Bytes sum{elements() * element.bits / 8};
  for (const Type& member : members) sum += member.bytes();
  return sum;
}

std::string text_of(const Type& type) {
  std::string text;
  switch (type.form) {
    case Type::Form::opaque: return "token";
    case Type::Form::tuple:
      for (const Type& member : type.members) text += (text.empty() ? "" : ", ") + text_of(member);
      return "(" + text + ")";
    case Type::Form::tensor: break;
  }
  if (type.unranked) return fmt::format("{}[*]", type.element.name);
  for (const std::int64_t extent : type.dims) {
    if (!text.empty()) text += ',';
    text += extent == kDynamic ? "?" : fmt::to_string(extent);
  }
  return fmt::format("{}[{}]", type.element.name, text);
}

namespace {

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

constexpr int kMaxAliases = 20;  // that lead from one to the next

void append_scope(const Module& module, std::string_view location, int depth, std::string& scope) {
  location = trim(location);
  if (depth > kMaxAliases || location.empty() || !scope.empty()) return;
  if (location.starts_with("loc(") && location.ends_with(')')) location = location.substr(4, location.size() - 5);
  if (location.starts_with('#')) {
    std::size_t end = 1;
    while (end < location.size() && is_word(location[end])) ++end;
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

std::optional<std::string_view> Instruction::find(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) {
    if (const auto text = find(key)) return text;
  }
  return std::nullopt;
}

std::optional<std::string_view> Instruction::unnamed(std::size_t n) const {
  for (const Attribute& attribute : attributes) {
    if (attribute.key.empty() && n-- == 0) return attribute.text;
  }
  return std::nullopt;
}

void Module::fail(SourcePosition where, std::string message, std::string hint) const {
  throw Error(ErrorKind::bad_input, {{std::move(where), std::move(message), std::move(hint)}});
}

void Module::fail(const Instruction& i, std::string message, std::string hint) const {
  fail(position(i), std::move(message), std::move(hint));
}

void Module::fail(std::string_view at, std::string message, std::string hint) const {
  const std::string_view all = source->text();
  const std::less_equal<const char*> before;
  SourcePosition where{source->name(), 0, 0};
  if (at.data() != nullptr && before(all.data(), at.data()) && before(at.data(), all.data() + all.size())) {
    where = source->position(static_cast<std::size_t>(at.data() - all.data()));
  }
  fail(std::move(where), std::move(message), std::move(hint));
}

Integers integers(std::string_view text) {
  Integers values;
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
        while (at < text.size() && is_word(text[at])) ++at;
        const std::size_t bracket = std::min(text.find_first_not_of(' ', at), text.size());
        if (bracket < text.size() && text[bracket] == '<') at = behind_bracket(text, bracket);
      }
    } else if (is_digit(c) || (c == '-' && at + 1 < text.size() && is_digit(text[at + 1]))) {
      std::int64_t value = 0;
      const auto read = std::from_chars(text.data() + at, text.data() + text.size(), value);
      at = std::max(static_cast<std::size_t>(read.ptr - text.data()), at + 1);
      if (read.ec == std::errc{}) values.push_back(value);
      // 1.5e3 is one number.
      while (at < text.size() && is_word(text[at])) ++at;
    } else if (is_word(c)) {
      while (at < text.size() && is_word(text[at])) ++at;
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

Integers integer_list(std::string_view text, std::size_t n) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '[') continue;
    const std::size_t end = behind_bracket(text, at);
    if (n-- == 0) return integers(text.substr(at, end - at));
    at = end - 1;
  }
  return {};
}

std::vector<Integers> integer_rows(std::string_view text) {
  std::vector<Integers> rows;
  const std::size_t outer = text.find('[');
  if (outer == std::string_view::npos) {
    // dense<0> : tensor<1x1xi64>, a splat, or dense<> of no elements.
    const std::size_t begin = text.find('<');
    if (begin == std::string_view::npos) return rows;
    const Integers value = integers(text.substr(begin, behind_bracket(text, begin) - begin));
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
    if (!is_word(c)) continue;
    const std::size_t begin = at;
    while (at < text.size() && is_word(text[at])) ++at;
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
    found = trim(text.substr(value, end - value));
    found_depth = depth;
  }
  return found;
}

Integers integers(const Instruction& i, std::initializer_list<std::string_view> keys) {
  return integers(i.find(keys).value_or(std::string_view{}));
}

Integers field_integers(std::string_view text, std::string_view key) {
  const auto value = field(text, key);
  return value ? integers(*value) : Integers{};
}

Integers window_integers(const Instruction& i, std::string_view key, std::string_view generic) {
  const auto window = i.find("window");
  return window ? field_integers(*window, key) : integers(i, {generic});
}

std::string_view unquoted(std::string_view text) {
  text = trim(text);
  if (text.starts_with('@')) text.remove_prefix(1);
  if (text.size() < 2 || !text.starts_with('"')) return text;
  const std::size_t end = behind_string(text, 0);
  return text.substr(1, end - (text[end - 1] == '"' && end > 1 ? 2 : 1));
}

std::optional<std::string_view> value_of(const Instruction& i) {
  const auto text = i.find("value");
  return text ? text : i.unnamed();
}

std::string_view callee_of(const Instruction& i) {
  if (const auto text = i.find({"callee", "decomposition", "called_computation"})) return unquoted(*text);
  if (const auto text = i.find("called_computations")) {
    const std::size_t at = text->find('@');
    if (at == std::string_view::npos) return {};
    return text->substr(at + 1, text->find_first_of(",] ", at) - at - 1);
  }
  return i.op() == "custom_call" ? std::string_view{} : i.symbol;
}

std::string scope_of(const Module& module, const Instruction& i) {
  std::string scope;
  append_scope(module, i.location, 0, scope);
  return scope;
}

}  // namespace llmperf::program
