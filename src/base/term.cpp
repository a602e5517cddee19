#include "base/term.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace llmperf {
namespace {

std::string number(double value) { return value < 0 ? fmt::format("({})", value) : fmt::format("{}", value); }

}  // namespace

Term::Term(double literal) {
  known_.value = literal;
  known_.formula = known_.substituted = number(literal);
}

Term::Term(std::string_view name, double value, std::string meaning) : form_(Form::atom) {
  known_.value = value;
  known_.formula = name;
  known_.substituted = number(value);
  known_.variables.push_back({std::string(name), value, std::move(meaning)});
}

Term::Term(const Term& a, const Term& b, char sign, double value) {
  if (a.form_ == Form::literal && b.form_ == Form::literal) {
    *this = Term(value);
    return;
  }
  form_ = sign == '+' || sign == '-' ? Form::sum : Form::product;
  const auto [left, left_numbers] = a.within(form_);
  // What is subtracted, and what is divided by, binds tighter than its own kind of operation.
  const auto [right, right_numbers] = b.within(sign == '-' ? Form::product : sign == '/' ? Form::atom : form_);
  known_.value = value;
  known_.formula = fmt::format("{} {} {}", left, sign, right);
  known_.substituted = fmt::format("{} {} {}", left_numbers, sign, right_numbers);
  adopt(a);
  adopt(b);
}

std::pair<std::string, std::string> Term::within(Form loosest) const {
  if (form_ <= loosest) return {known_.formula, known_.substituted};
  return {"(" + known_.formula + ")", "(" + known_.substituted + ")"};
}

void Term::adopt(const Term& other) {
  for (const Variable& v : other.known_.variables) {
    const auto same = [&](const Variable& w) { return w.name == v.name; };
    const auto found = std::find_if(known_.variables.begin(), known_.variables.end(), same);
    if (found == known_.variables.end()) {
      known_.variables.push_back(v);
    } else if (found->value != v.value) {
      throw std::logic_error(
          fmt::format("internal error: {} is {} and {} in one formula", v.name, v.value, found->value));
    }
  }
  for (const std::string& note : other.known_.notes) {
    if (std::find(known_.notes.begin(), known_.notes.end(), note) == known_.notes.end()) known_.notes.push_back(note);
  }
  for (const Explanation& part : other.known_.parts) {
    const auto same = [&](const Explanation& p) { return p.path == part.path; };
    if (std::none_of(known_.parts.begin(), known_.parts.end(), same)) known_.parts.push_back(part);
  }
}

Term Term::noted(std::string note) const {
  Term x = *this;
  x.known_.notes.push_back(std::move(note));
  return x;
}

Term Term::noted_first(std::string note) const {
  Term x = *this;
  x.known_.notes.insert(x.known_.notes.begin(), std::move(note));
  return x;
}

Term Term::with_part(Explanation part) const {
  Term x = *this;
  x.known_.parts.push_back(std::move(part));
  return x;
}

Term Term::in_parentheses() const {
  Term x = *this;
  x.known_.formula = "(" + known_.formula + ")";
  x.known_.substituted = "(" + known_.substituted + ")";
  x.form_ = Form::atom;
  return x;
}

void Term::extend_meaning(std::string_view variable, std::string_view more) {
  for (Variable& v : known_.variables) {
    if (v.name == variable) v.meaning += more;
  }
}

Explanation Term::explained(std::string path, std::string_view unit) const {
  Explanation x = known_;
  x.path = std::move(path);
  x.unit = unit;
  return x;
}

Term operator+(const Term& a, const Term& b) {
  return a.is(0) ? b : b.is(0) ? a : Term(a, b, '+', a.value() + b.value());
}
Term operator-(const Term& a, const Term& b) { return b.is(0) ? a : Term(a, b, '-', a.value() - b.value()); }
Term operator*(const Term& a, const Term& b) {
  if (a.is(0) || b.is(1)) return a;
  return a.is(1) || b.is(0) ? b : Term(a, b, '*', a.value() * b.value());
}
Term operator/(const Term& a, const Term& b) { return a.is(0) || b.is(1) ? a : Term(a, b, '/', a.value() / b.value()); }

Term call(std::string_view function, const std::vector<Term>& arguments, double value) {
  Term x(value);
  const auto literal = [](const Term& a) { return a.form_ == Term::Form::literal; };
  if (std::all_of(arguments.begin(), arguments.end(), literal)) return x;
  x.form_ = Term::Form::atom;
  x.known_.formula = x.known_.substituted = std::string(function) + "(";
  for (const Term& a : arguments) {
    if (&a != &arguments.front()) x.known_.formula += ", ", x.known_.substituted += ", ";
    x.known_.formula += a.known_.formula;
    x.known_.substituted += a.known_.substituted;
    x.adopt(a);
  }
  x.known_.formula += ")", x.known_.substituted += ")";
  return x;
}

Term max(const Term& a, const Term& b) { return call("max", {a, b}, std::max(a.value(), b.value())); }
Term min(const Term& a, const Term& b) { return call("min", {a, b}, std::min(a.value(), b.value())); }
Term ceil(const Term& x) { return call("ceil", {x}, std::ceil(x.value())); }
Term floor(const Term& x) { return call("floor", {x}, std::floor(x.value())); }
Term sqrt(const Term& x) { return call("sqrt", {x}, std::sqrt(x.value())); }

Term largest_of(const std::initializer_list<Term>& xs) {
  std::vector<Term> candidates;
  double value = 0;
  for (const Term& x : xs) {
    if (x.is(0)) continue;
    candidates.push_back(x);
    value = std::max(value, x.value());
  }
  return call("max", candidates, value);
}

std::string Let<Term>::spelled(double value) { return fmt::format("{}", value); }

std::string Let<Term>::filled(std::string_view pattern, std::initializer_list<std::string> words) {
  std::string text;
  for (const std::string& word : words) {
    const std::size_t at = pattern.find("{}");
    text.append(pattern.substr(0, at)).append(word);
    pattern.remove_prefix(at + 2);
  }
  return text.append(pattern);
}

Term Let<Term>::part(std::string_view name, const Term& value, std::string_view meaning) const {
  const std::string full = std::string(name) + suffix;
  return Term(full, value.value(), std::string(meaning)).with_part(value.explained(full, ""));
}

}  // namespace llmperf
