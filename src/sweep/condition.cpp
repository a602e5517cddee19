// A parser by recursive descent, one function for each level of precedence, that emits postfix; a stack evaluates it.
#include "sweep/condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

namespace llmperf::sweep {
namespace {

using Node = Condition::Node;
using Op = Condition::Op;

constexpr std::size_t kDeepest = 64;  // values on the stack, and parentheses in one another

constexpr std::pair<std::string_view, double> kUnits[] = {
    {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},    {"s", 1},        {"KB", 1e3},     {"MB", 1e6},
    {"GB", 1e9},  {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
    {"k", 1e3},   {"M", 1e6},   {"G", 1e9},      {"T", 1e12},
};

class Parser {
 public:
  Parser(std::string_view text, std::span<const std::string> columns) : text_(text), columns_(columns) {}

  std::vector<Node> parse() {
    either(0);
    skip_blanks();
    if (at_ < text_.size()) fail("unexpected text");
    return std::move(nodes_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()));
    throw Error::bad_input(fmt::format("--where: character {}: {}{}", at_ + 1, what,
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

  void either(std::size_t depth) {
    both(depth);
    while (take("or") || take("||")) {
      both(depth);
      emit(Op::either);
    }
  }
  void both(std::size_t depth) {
    inverted(depth);
    while (take("and") || take("&&")) {
      inverted(depth);
      emit(Op::both);
    }
  }
  void inverted(std::size_t depth) {
    bool inverts = false;
    while (take("not") || (!text_.substr(at_).starts_with("!=") && take("!"))) inverts = !inverts;
    comparison(depth);
    if (inverts) emit(Op::invert);
  }
  void comparison(std::size_t depth) {
    sum(depth);
    // Longer signs first.
    constexpr std::pair<std::string_view, Op> kSigns[] = {
        {"==", Op::equal}, {"!=", Op::unequal}, {"<=", Op::less_equal}, {">=", Op::greater_equal},
        {"<", Op::less},   {">", Op::greater},  {"=", Op::equal},
    };
    for (const auto& [sign, op] : kSigns) {
      if (!take(sign)) continue;
      sum(depth);
      emit(op);
      return;
    }
  }
  void sum(std::size_t depth) {
    product(depth);
    for (;;) {
      if (take("+")) {
        product(depth);
        emit(Op::add);
      } else if (take("-")) {
        product(depth);
        emit(Op::subtract);
      } else {
        return;
      }
    }
  }
  void product(std::size_t depth) {
    factor(depth);
    for (;;) {
      if (take("*")) {
        factor(depth);
        emit(Op::multiply);
      } else if (take("/")) {
        factor(depth);
        emit(Op::divide);
      } else {
        return;
      }
    }
  }
  void factor(std::size_t depth) {
    if (depth > kDeepest) fail("too deep");
    if (take("-")) {
      factor(depth + 1);
      emit(Op::negate);
    } else if (take("(")) {
      either(depth + 1);
      if (!take(")")) fail("a ')' is missing");
    } else {
      value();
    }
  }

  void value() {
    skip_blanks();
    if (at_ == text_.size()) fail("a value is missing");
    const char c = text_[at_];
    if (c == '"' || c == '\'') {
      const std::size_t end = text_.find(c, at_ + 1);
      if (end == std::string_view::npos) fail("a quote does not end");
      nodes_.push_back({.op = Op::text, .text = std::string(text_.substr(at_ + 1, end - at_ - 1))});
      at_ = end + 1;
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.') {
      number();
    } else if (word_character(c)) {
      name();
    } else {
      fail("a value is missing");
    }
  }

  void number() {
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
  }

  void name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && word_character(text_[at_])) ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    if (word == "true" || word == "false") {
      nodes_.push_back({.op = Op::truth, .number = word == "true" ? 1.0 : 0.0});
      return;
    }
    const auto found = std::find(columns_.begin(), columns_.end(), word);
    if (found == columns_.end()) {
      at_ = begin;
      fail("unknown column", name_hint(word, columns_));
    }
    nodes_.push_back({.op = Op::column, .column = static_cast<std::size_t>(found - columns_.begin())});
  }

  std::string_view text_;
  std::span<const std::string> columns_;
  std::size_t at_ = 0;
  std::vector<Node> nodes_;
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
std::size_t deepest(const std::vector<Node>& nodes) {
  std::size_t now = 0;
  std::size_t most = 0;
  for (const Node& n : nodes) {
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
  if (deepest(nodes_) > kDeepest) throw Error::bad_input("--where: too many values in one another");
}

bool Condition::operator()(const Row& row) const {
  std::array<Value, kDeepest> stack;
  std::size_t top = 0;  // values on it
  for (const Node& n : nodes_) {
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

}  // namespace llmperf::sweep
