// Reads a formula with numbers in it as a reader would, apart from what printed it.
//
//   sum     = product { ("+" | "-") product }
//   product = factor { ("*" | "/") factor }
//   factor  = number | function "(" sum { "," sum } ")" | "(" sum ")" | "-" factor
//
// Functions: max, min (one argument or more), ceil, floor, sqrt (one).
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/number.h"

namespace llmperf::test {

class Expression {
 public:
  explicit Expression(std::string_view text) : text_(text) {}

  double whole() {
    const double value = sum();
    if (peek() != '\0') fail("unexpected text");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument(what + " at offset " + std::to_string(at_) + " of formula " + std::string(text_));
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string(1, c) + " expected");
  }

  double sum() {
    double value = product();
    while (true) {
      if (take('+')) {
        value += product();
      } else if (take('-')) {
        value -= product();
      } else {
        return value;
      }
    }
  }
  double product() {
    double value = factor();
    while (true) {
      if (take('*')) {
        value *= factor();
      } else if (take('/')) {
        value /= factor();
      } else {
        return value;
      }
    }
  }
  double factor() {
    const char c = peek();
    if (take('-')) return -factor();
    if (take('(')) {
      const double value = sum();
      expect(')');
      return value;
    }
    if (is_letter(c)) return name();
    if (is_digit(c) || c == '.') return number();
    fail("a value expected");
  }
  // 12, 0.5, 1.008e+12; ends where the number does.
  double number() {
    std::size_t end = at_;
    const auto digits = [&] {
      while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '.')) ++end;
    };
    digits();
    if (end < text_.size() && text_[end] == 'e') {
      ++end;
      if (end < text_.size() && (text_[end] == '+' || text_[end] == '-')) ++end;
      digits();
    }
    const std::optional<double> value = parse_double(text_.substr(at_, end - at_));
    if (!value) fail("malformed number");
    at_ = end;
    return *value;
  }
  double name() {
    std::string name;
    while (at_ < text_.size() && is_letter(text_[at_])) name += text_[at_++];
    expect('(');
    std::vector<double> arguments{sum()};
    while (take(',')) arguments.push_back(sum());
    expect(')');
    if (name == "max") return *std::max_element(arguments.begin(), arguments.end());
    if (name == "min") return *std::min_element(arguments.begin(), arguments.end());
    if (arguments.size() != 1) fail(name + " takes one argument");
    if (name == "ceil") return std::ceil(arguments[0]);
    if (name == "floor") return std::floor(arguments[0]);
    if (name == "sqrt") return std::sqrt(arguments[0]);
    fail("no number and no function: " + name);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// Throws std::invalid_argument on malformed text.
inline double evaluate(std::string_view formula) { return Expression(formula).whole(); }

}  // namespace llmperf::test
