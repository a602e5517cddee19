#include "estimate/expression.h"

#include <stdexcept>

#include "catch.h"

using llmperf::estimate::evaluate;
using llmperf::estimate::substitute;
using llmperf::estimate::Variable;

namespace {

const std::vector<Variable> kVariables = {
    {"a", 3, ""}, {"b_2", 0.5, ""}, {"minus", -4, ""}, {"e12", 7, ""}, {"max_rate", 1.008e20, ""}};

double value(std::string_view formula) { return evaluate(formula, kVariables); }

}  // namespace

TEST_CASE("products bind closer than sums, and both go from left to right") {
  CHECK(value("2 + 3 * 4") == 14);
  CHECK(value("(2 + 3) * 4") == 20);
  CHECK(value("2 - 3 - 4") == -5);
  CHECK(value("24 / 3 / 2") == 4);
  CHECK(value("24 / (3 / 2)") == 16);
  CHECK(value("-2 * -3") == 6);
  CHECK(value("1 - -1") == 2);
}

TEST_CASE("numbers are decimals with an optional exponent") {
  CHECK(value("1.008e+12") == 1.008e12);
  CHECK(value("5e-1+1") == 1.5);
  CHECK(value("0.125") == 0.125);
}

TEST_CASE("names stand for their values, also when they look like part of something else") {
  CHECK(value("a * b_2") == 1.5);
  CHECK(value("e12 + 1e2") == 107);
  CHECK(value("max_rate / 1e20") == Approx(1.008));
}

TEST_CASE("functions: max and min of several, ceil, floor and sqrt of one") {
  CHECK(value("max(1, a, 2)") == 3);
  CHECK(value("min(a, minus, 2)") == -4);
  CHECK(value("max(a)") == 3);
  CHECK(value("ceil(7 / 2) + floor(7 / 2)") == 7);
  CHECK(value("sqrt(max(16, 9)) * a") == 12);
}

TEST_CASE("malformed formulas and unknown names are refused") {
  for (const char* formula :
       {"",           " ",    "1 +",  "* 2",   "(1",      "1)",         "1 2",  "a b_2", "max()", "max(1,)", "max 1",
        "ceil(1, 2)", "sqrt", "1..2", "1 $ 2", "unknown", "unknown(1)", "a(1)", "2a",    "1e",    ",",       "()"}) {
    INFO(formula);
    CHECK_THROWS_AS(value(formula), std::invalid_argument);
  }
}

TEST_CASE("substitution puts the shortest decimal that reads back in place of every name") {
  CHECK(substitute("2 * a + b_2 / max_rate", kVariables) == "2 * 3 + 0.5 / 1.008e+20");
  CHECK(substitute("max(a, ceil(b_2))", kVariables) == "max(3, ceil(0.5))");
  CHECK(substitute("a - minus", kVariables) == "3 - (-4)");
  CHECK(substitute("1e3 * e12", kVariables) == "1e3 * 7");
  CHECK_THROWS_AS(substitute("2 * nobody", kVariables), std::invalid_argument);
}

TEST_CASE("a substituted formula evaluates to the same number without any variables") {
  const std::vector<Variable> odd = {{"x", 1.0 / 3, ""}, {"y", -2.0 / 7, ""}, {"z", 6.02e23, ""}};
  for (const char* formula : {"x + y * z", "x - y", "max(x, y) / sqrt(z)", "x * x / y"}) {
    CHECK(evaluate(substitute(formula, odd), {}) == evaluate(formula, odd));
  }
}

TEST_CASE("the names of a formula come in the order of their first use, functions and exponents left out") {
  using llmperf::estimate::names_in;
  CHECK(names_in("max(b, a) * 1e3 / (b + c_2)") == std::vector<std::string_view>{"b", "a", "c_2"});
  CHECK(names_in("2 * 3").empty());
}
