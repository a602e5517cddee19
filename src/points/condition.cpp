// A parser by recursive descent, one function for each level of precedence, that emits postfix; a stack evaluates it.
#include "points/condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

namespace llmperf::points {
namespace {

using Op = Condition::Op;

constexpr std::size_t kDeepest = 64;  // values on the stack, and parentheses in one another

constexpr std::pair<std::string_view, double> kUnits[] = {
    {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},    {"s", 1},        {"KB", 1e3},     {"MB", 1e6},
    {"GB", 1e9},  {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
    {"k", 1e3},   {"M", 1e6},   {"G", 1e9},      {"T", 1e12},
};

// What a value is, as far as its unit or its column's name says it: comparisons that can never hold are refused.
enum class Sort : std::uint8_t { any, number, time, bytes, truth, text };

std::string name_of(Sort sort) {
  constexpr const char* kNames[] = {"value", "number", "time", "number of bytes", "truth", "text"};
  return kNames[static_cast<std::size_t>(sort)];
}

bool is_number(Sort sort) { return sort == Sort::number || sort == Sort::time || sort == Sort::bytes; }

Sort sort_of_column(std::string_view name) {
  constexpr std::string_view kTexts[] = {"model", "hardware", "weights", "kv",        "activations",  "options",
                                         "plan",  "label",    "runtime", "recompute", "extrapolated", "error"};
  if (std::find(std::begin(kTexts), std::end(kTexts), name) != std::end(kTexts)) return Sort::text;
  if (name == "fits" || name == "guidance") return Sort::truth;
  if (name.ends_with("_bytes")) return Sort::bytes;
  return name.ends_with("_s") ? Sort::time : Sort::any;
}

Sort sort_of_unit(std::string_view unit) {
  if (unit.ends_with('s')) return Sort::time;
  return unit.ends_with('B') ? Sort::bytes : Sort::number;
}

class Parser {
 public:
  Parser(std::string_view text, std::span<const std::string> columns) : text_(text), columns_(columns) {}

  std::vector<Condition::Node> parse() {
    const Sort sort = either(0);
    skip_blanks();
    if (at_ < text_.size()) fail("unexpected text");
    if (sort == Sort::time || sort == Sort::bytes)
      fail("a condition is missing: a " + name_of(sort) + " alone says nothing");
    return std::move(nodes_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()));
    throw Error::bad_input(fmt::format("`where`: character {}: {}{}", at_ + 1, what,
                                       rest.empty() ? " at the end" : " at " + quote(rest.substr(0, 20))),
                           hint.empty() ? "such as: ttft_s < 0.5 and fits" : hint);
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  static bool word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  // A sign, or a word that no letter follows.
  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    const std::size_t end = at_ + token.size();
    if (word_character(token.back()) && end < text_.size() && word_character(text_[end])) return false;
    at_ = end;
    return true;
  }

  void emit(Op op) { nodes_.push_back({.op = op}); }

  Sort either(std::size_t depth) {
    Sort sort = both(depth);
    while (take("or") || take("||")) {
      both(depth);
      emit(Op::either);
      sort = Sort::truth;
    }
    return sort;
  }
  Sort both(std::size_t depth) {
    Sort sort = inverted(depth);
    while (take("and") || take("&&")) {
      inverted(depth);
      emit(Op::both);
      sort = Sort::truth;
    }
    return sort;
  }
  Sort inverted(std::size_t depth) {
    bool inverts = false;
    bool any = false;
    while (take("not") || (!text_.substr(at_).starts_with("!=") && take("!"))) {
      inverts = !inverts;
      any = true;
    }
    const Sort sort = comparison(depth);
    if (inverts) emit(Op::invert);
    return any ? Sort::truth : sort;
  }
  Sort comparison(std::size_t depth) {
    const Sort left = sum(depth);
    // Longer signs first.
    constexpr std::pair<std::string_view, Op> kSigns[] = {
        {"==", Op::equal}, {"!=", Op::unequal}, {"<=", Op::less_equal}, {">=", Op::greater_equal},
        {"<", Op::less},   {">", Op::greater},  {"=", Op::equal},
    };
    for (const auto& [sign, op] : kSigns) {
      if (!take(sign)) continue;
      const Sort right = sum(depth);
      check_alike(left, right, "compared with");
      emit(op);
      return Sort::truth;
    }
    return left;
  }
  Sort sum(std::size_t depth) {
    Sort left = product(depth);
    for (;;) {
      const Op op = take("+") ? Op::add : take("-") ? Op::subtract : Op::either;
      if (op == Op::either) return left;
      const Sort right = product(depth);
      check_numbers(left, right);
      check_alike(left, right, op == Op::add ? "added to" : "subtracted from");
      emit(op);
      if (left == Sort::any || left == Sort::number) left = right;
    }
  }
  Sort product(std::size_t depth) {
    Sort left = factor(depth);
    for (;;) {
      const Op op = take("*") ? Op::multiply : take("/") ? Op::divide : Op::either;
      if (op == Op::either) return left;
      const Sort right = factor(depth);
      check_numbers(left, right);
      if (op == Op::divide && nodes_.back().op == Op::number && nodes_.back().number == 0) fail("a division by 0");
      emit(op);
      left = Sort::number;  // of any unit
    }
  }
  Sort factor(std::size_t depth) {
    if (depth > kDeepest) fail("too deep");
    if (take("-")) {
      const Sort sort = factor(depth + 1);
      check_numbers(sort, sort);
      emit(Op::negate);
      return sort;
    }
    if (!take("(")) return value();
    const Sort sort = either(depth + 1);
    if (!take(")")) fail("a ')' is missing");
    return sort;
  }

  // A number without a unit goes with every other.
  void check_alike(Sort a, Sort b, const std::string& how) const {
    const bool plain = is_number(a) && is_number(b) && (a == Sort::number || b == Sort::number);
    if (a == b || a == Sort::any || b == Sort::any || plain) return;
    fail(fmt::format("a {} is {} a {}", name_of(a), how, name_of(b)));
  }
  void check_numbers(Sort a, Sort b) const {
    for (const Sort sort : {a, b}) {
      if (sort == Sort::text || sort == Sort::truth) fail(fmt::format("a {} is no number", name_of(sort)));
    }
  }

  Sort value() {
    skip_blanks();
    if (at_ == text_.size()) fail("a value is missing");
    const char c = text_[at_];
    if (c == '"' || c == '\'') {
      const std::size_t end = text_.find(c, at_ + 1);
      if (end == std::string_view::npos) fail("a quote does not end");
      nodes_.push_back({.op = Op::text, .text = std::string(text_.substr(at_ + 1, end - at_ - 1))});
      at_ = end + 1;
      return Sort::text;
    }
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.') return number();
    if (word_character(c)) return name();
    fail("a value is missing");
  }

  Sort number() {
    const std::size_t begin = at_;
    const auto digits = [&] {
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    };
    digits();
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      digits();
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      digits();
    }
    std::string digits_text(text_.substr(begin, at_ - begin));
    if (digits_text.front() == '.') digits_text.insert(0, "0");
    const std::optional<double> value = parse_double(digits_text);
    if (!value) {
      at_ = begin;
      fail("cannot read a number");
    }
    const std::size_t unit_begin = at_;
    while (at_ < text_.size() && word_character(text_[at_])) ++at_;
    const std::string_view unit = text_.substr(unit_begin, at_ - unit_begin);
    double scale = 1;
    if (!unit.empty()) {
      const auto* found =
          std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& u) { return u.first == unit; });
      if (found == std::end(kUnits)) {
        at_ = unit_begin;
        fail("unknown unit", "ns us ms s, KB MB GB TB, KiB MiB GiB TiB, k M G T");
      }
      scale = found->second;
    }
    nodes_.push_back({.op = Op::number, .number = *value * scale});
    return sort_of_unit(unit);
  }

  Sort name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && word_character(text_[at_])) ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    if (word == "true" || word == "false") {
      nodes_.push_back({.op = Op::truth, .number = word == "true" ? 1.0 : 0.0});
      return Sort::truth;
    }
    const auto found = std::find(columns_.begin(), columns_.end(), word);
    if (found == columns_.end()) {
      at_ = begin;
      fail("unknown column", name_hint(word, columns_));
    }
    nodes_.push_back({.op = Op::column, .column = static_cast<std::size_t>(found - columns_.begin())});
    return sort_of_column(word);
  }

  std::string_view text_;
  std::span<const std::string> columns_;
  std::size_t at_ = 0;
  std::vector<Condition::Node> nodes_;
};

// A cell, or what became of cells.
struct Value {
  Cell::Kind kind = Cell::Kind::none;
  double number = 0;
  std::string_view text = {};

  // An empty cell, 0 and "" are no.
  bool holds() const { return kind == Cell::Kind::text ? !text.empty() : kind != Cell::Kind::none && number != 0; }
};

Value truth(bool value) { return {Cell::Kind::truth, value ? 1.0 : 0.0}; }

Value compared(Op op, const Value& a, const Value& b) {
  if (a.kind == Cell::Kind::none || a.kind != b.kind) return truth(false);
  int order = 0;
  if (a.kind == Cell::Kind::text) {
    order = a.text.compare(b.text);
  } else {
    order = a.number < b.number ? -1 : a.number > b.number ? 1 : 0;
  }
  switch (op) {
    case Op::equal: return truth(order == 0);
    case Op::unequal: return truth(order != 0);
    case Op::less: return truth(order < 0);
    case Op::less_equal: return truth(order <= 0);
    case Op::greater: return truth(order > 0);
    default: return truth(order >= 0);
  }
}

// Empty where a side is no number, and where the result is none (1 / 0).
Value computed(Op op, const Value& a, const Value& b) {
  if (a.kind != Cell::Kind::number || b.kind != Cell::Kind::number) return {};
  double result = 0;
  switch (op) {
    case Op::add: result = a.number + b.number; break;
    case Op::subtract: result = a.number - b.number; break;
    case Op::multiply: result = a.number * b.number; break;
    default: result = a.number / b.number; break;
  }
  return std::isfinite(result) ? Value{Cell::Kind::number, result} : Value{};
}

// How many values the postfix leaves on its stack at most.
std::size_t deepest(const std::vector<Condition::Node>& nodes) {
  std::size_t now = 0;
  std::size_t most = 0;
  for (const Condition::Node& n : nodes) {
    if (n.op <= Op::column) {
      most = std::max(most, ++now);
    } else if (n.op > Op::invert) {
      --now;
    }
  }
  return most;
}

}  // namespace

Condition::Condition(std::string_view text, std::span<const std::string> columns)
    : nodes_(Parser(text, columns).parse()) {
  if (deepest(nodes_) > kDeepest) throw Error::bad_input("`where`: too many values in one another");
}

bool Condition::operator()(const Row& row) const {
  std::array<Value, kDeepest> stack;
  std::size_t top = 0;  // values on it
  for (const Condition::Node& n : nodes_) {
    switch (n.op) {
      case Op::number: stack[top++] = {Cell::Kind::number, n.number}; break;
      case Op::truth: stack[top++] = truth(n.number != 0); break;
      case Op::text: stack[top++] = {Cell::Kind::text, 0, n.text}; break;
      case Op::column: {
        const Cell& cell = row[n.column];
        stack[top++] = {cell.kind, cell.number, cell.text};
        break;
      }
      case Op::negate: {
        Value& value = stack[top - 1];
        value = value.kind == Cell::Kind::number ? Value{Cell::Kind::number, -value.number} : Value{};
        break;
      }
      case Op::invert: stack[top - 1] = truth(!stack[top - 1].holds()); break;
      default: {
        const Value b = stack[--top];
        Value& a = stack[top - 1];
        if (n.op == Op::both) {
          a = truth(a.holds() && b.holds());
        } else if (n.op == Op::either) {
          a = truth(a.holds() || b.holds());
        } else {
          a = n.op >= Op::equal ? compared(n.op, a, b) : computed(n.op, a, b);
        }
      }
    }
  }
  return stack[0].holds();
}

}  // namespace llmperf::points
