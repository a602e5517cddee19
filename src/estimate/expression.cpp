#include "estimate/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/number.h"

namespace llmperf::estimate {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

std::size_t name_end(std::string_view text, std::size_t begin) {
  while (begin < text.size() && (starts_name(text[begin]) || is_digit(text[begin]))) ++begin;
  return begin;
}

// 12, 0.5, 1.008e+12; ends where the number does.
std::size_t number_end(std::string_view text, std::size_t begin) {
  std::size_t at = begin;
  while (at < text.size() && (is_digit(text[at]) || text[at] == '.')) ++at;
  if (at == text.size() || (text[at] != 'e' && text[at] != 'E')) return at;
  std::size_t exponent = at + 1;
  if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
  const std::size_t digits = exponent;
  while (exponent < text.size() && is_digit(text[exponent])) ++exponent;
  return exponent > digits ? exponent : at;
}

bool is_function(std::string_view name) {
  return name == "max" || name == "min" || name == "ceil" || name == "floor" || name == "sqrt";
}

class Parser {
 public:
  Parser(std::string_view text, std::span<const Variable> variables) : text_(text), variables_(variables) {}

  double whole() {
    const double value = sum();
    if (peek() != '\0') fail("unexpected text");
    return value;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw std::invalid_argument(fmt::format("{} at offset {} of formula '{}'", what, at_, text_));
  }
  char peek() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}' expected", c));
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
    if (starts_name(c)) return name();
    if (is_digit(c) || c == '.') return number();
    fail("a value expected");
  }
  double number() {
    const std::size_t end = number_end(text_, at_);
    const std::optional<double> value = parse_double(text_.substr(at_, end - at_));
    if (!value) fail("malformed number");
    at_ = end;
    return *value;
  }
  double name() {
    const std::size_t end = name_end(text_, at_);
    const std::string_view name = text_.substr(at_, end - at_);
    const auto variable =
        std::find_if(variables_.begin(), variables_.end(), [&](const Variable& v) { return v.name == name; });
    if (variable == variables_.end() && !is_function(name)) fail(fmt::format("unknown name '{}'", name));
    at_ = end;
    return variable != variables_.end() ? variable->value : call(name);
  }
  double call(std::string_view name) {
    expect('(');
    std::vector<double> arguments{sum()};
    while (take(',')) arguments.push_back(sum());
    expect(')');
    if (name == "max") return *std::max_element(arguments.begin(), arguments.end());
    if (name == "min") return *std::min_element(arguments.begin(), arguments.end());
    if (arguments.size() != 1) fail(fmt::format("'{}' takes one argument", name));
    if (name == "ceil") return std::ceil(arguments[0]);
    if (name == "floor") return std::floor(arguments[0]);
    return std::sqrt(arguments[0]);
  }

  std::string_view text_;
  std::span<const Variable> variables_;
  std::size_t at_ = 0;
};

}  // namespace

double evaluate(std::string_view formula, std::span<const Variable> variables) {
  return Parser(formula, variables).whole();
}

std::string substitute(std::string_view formula, std::span<const Variable> variables) {
  std::string result;
  for (std::size_t at = 0; at < formula.size();) {
    if (starts_name(formula[at])) {
      const std::size_t end = name_end(formula, at);
      const std::string_view name = formula.substr(at, end - at);
      const auto variable =
          std::find_if(variables.begin(), variables.end(), [&](const Variable& v) { return v.name == name; });
      if (variable != variables.end()) {
        result += variable->value < 0 ? fmt::format("({})", variable->value) : fmt::format("{}", variable->value);
      } else if (is_function(name)) {
        result += name;
      } else {
        throw std::invalid_argument(fmt::format("unknown name '{}' in formula '{}'", name, formula));
      }
      at = end;
    } else if (is_digit(formula[at]) || formula[at] == '.') {  // as a whole: the e of an exponent is no name
      const std::size_t end = number_end(formula, at);
      result += formula.substr(at, end - at);
      at = end;
    } else {
      result += formula[at++];
    }
  }
  return result;
}

std::vector<std::string_view> names_in(std::string_view formula) {
  std::vector<std::string_view> names;
  for (std::size_t at = 0; at < formula.size();) {
    if (starts_name(formula[at])) {
      const std::size_t end = name_end(formula, at);
      const std::string_view name = formula.substr(at, end - at);
      if (!is_function(name) && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      at = end;
    } else {
      at = is_digit(formula[at]) || formula[at] == '.' ? number_end(formula, at) : at + 1;
    }
  }
  return names;
}

}  // namespace llmperf::estimate
