// Formulas that are written once and evaluated twice. Their text is a template over a number type N:
//
//   double  computes: names and meanings vanish when it is compiled
//   Term    computes the same and remembers how: the formula in names, the same in numbers, what the names mean
//
//   template <class N>
//   N flops(const Gemm& g) {
//     const Let<N> let;
//     return 2 * let("m", g.m, "rows of the input") * let("n", g.n, "columns of the result");
//   }
//
// Factors of a literal 1 and summands of a literal 0 leave no trace in a Term, so that a formula says only what the
// thing at hand has.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/dtype.h"

namespace llmperf {

struct Variable {
  std::string name;
  double value = 0;
  std::string meaning;  // with its unit where it has one
};

// A number and the formula that gives it: sums, products, quotients, max, min, ceil, floor and sqrt of names and
// numbers.
struct Explanation {
  std::string path{};  // of the number; in `parts` also the name of a variable that is no number of the estimate
  std::string unit{};  // "B", "FLOP", "s", "token/s", …; empty: a plain number
  double value = 0;
  std::string formula{};
  std::string substituted{};          // the formula with every name replaced by its value, in the shortest decimal
  std::vector<Variable> variables{};  // in the order in which the formula uses them
  std::vector<std::string> notes{};
  std::vector<Explanation> parts{};  // of the variables worth a formula of their own
};

class Term {
 public:
  Term(double literal = 0);  // a number of a formula is a term, without a word
  Term(std::string_view name, double value, std::string meaning);

  double value() const { return known_.value; }
  const std::string& text() const { return known_.formula; }
  const std::vector<Variable>& variables() const { return known_.variables; }

  Term noted(std::string note) const;
  Term noted_first(std::string note) const;
  Term with_part(Explanation part) const;  // listed below the formula
  Term in_parentheses() const;
  // Says more about a variable than what gave it its meaning knew.
  void extend_meaning(std::string_view variable, std::string_view more);
  Explanation explained(std::string path, std::string_view unit) const;

  friend Term operator+(const Term& a, const Term& b);
  friend Term operator-(const Term& a, const Term& b);
  friend Term operator*(const Term& a, const Term& b);
  friend Term operator/(const Term& a, const Term& b);
  friend Term call(std::string_view function, const std::vector<Term>& arguments, double value);
  bool is(double literal) const { return form_ == Form::literal && known_.value == literal; }

 private:
  enum class Form : unsigned char { literal, atom, product, sum };
  Term(const Term& a, const Term& b, char sign, double value);
  // The text in a place where no operation looser than `loosest` may stand without parentheses.
  std::pair<std::string, std::string> within(Form loosest) const;
  void adopt(const Term& other);

  Explanation known_;
  Form form_ = Form::literal;
};

Term call(std::string_view function, const std::vector<Term>& arguments, double value);
Term max(const Term& a, const Term& b);
Term min(const Term& a, const Term& b);
Term ceil(const Term& x);
Term floor(const Term& x);
Term sqrt(const Term& x);

// Keeps the parentheses of a formula where they are not needed, so that it reads in groups.
constexpr double grouped(double x) { return x; }
inline Term grouped(const Term& x) { return x.in_parentheses(); }

constexpr double value_of(double x) { return x; }
inline double value_of(const Term& x) { return x.value(); }

// The largest of several numbers that are not negative. A literal 0 is no candidate.
inline double largest_of(const std::initializer_list<double>& xs) { return std::max(xs); }
Term largest_of(const std::initializer_list<Term>& xs);

// Gives values their names. Each {} of a meaning takes the next argument: a word, a number, a type or a function that
// gives a word, so that what a meaning costs is spent on Terms only.
template <class N>
struct Let;

template <>
struct Let<double> {
  constexpr Let() = default;
  explicit constexpr Let(std::string_view) {}
  template <class Value, class... Args>
  constexpr double operator()(std::string_view, Value value, std::string_view, const Args&...) const {
    return static_cast<double>(value);
  }
  template <class Value, class... Args>
  constexpr double factor(std::string_view, Value value, std::string_view, const Args&...) const {
    return static_cast<double>(value);
  }
  constexpr double part(std::string_view, double value, std::string_view) const { return value; }
  template <class... Args>
  constexpr double noted(double value, std::string_view, const Args&...) const {
    return value;
  }
};

template <>
struct Let<Term> {
  std::string suffix;  // of every name
  Let() = default;
  explicit Let(std::string_view s) : suffix(s) {}

  template <class Value, class... Args>
  Term operator()(std::string_view name, Value value, std::string_view meaning, const Args&... args) const {
    return Term(std::string(name) + suffix, static_cast<double>(value), words(meaning, args...));
  }
  // Left out where it is 1.
  template <class Value, class... Args>
  Term factor(std::string_view name, Value value, std::string_view meaning, const Args&... args) const {
    return value == Value{1} ? Term(1) : (*this)(name, value, meaning, args...);
  }
  // A variable that has a formula of its own.
  Term part(std::string_view name, const Term& value, std::string_view meaning) const;
  template <class... Args>
  Term noted(const Term& value, std::string_view note, const Args&... args) const {
    return value.noted(words(note, args...));
  }

 private:
  template <class T>
  static std::string word(const T& x) {
    if constexpr (std::invocable<T>) {
      return std::string(x());
    } else if constexpr (std::is_arithmetic_v<T>) {
      return spelled(static_cast<double>(x));
    } else if constexpr (std::is_same_v<T, Dtype>) {
      return std::string(name(x));
    } else {
      return std::string(x);
    }
  }
  template <class... Args>
  static std::string words(std::string_view pattern, const Args&... args) {
    return filled(pattern, {word(args)...});
  }
  static std::string spelled(double value);
  static std::string filled(std::string_view pattern, std::initializer_list<std::string> words);
};

}  // namespace llmperf
