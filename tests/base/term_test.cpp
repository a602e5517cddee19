#include "base/term.h"

#include <stdexcept>

#include "base/expression.h"
#include "catch.h"

namespace llmperf::term_test {

using llmperf::Explanation;
using llmperf::largest_of;
using llmperf::Let;
using llmperf::Term;
using llmperf::test::evaluate;

namespace {

const Term a("a", 3, "three");
const Term b("b", 0.5, "a half");
const Term minus("minus", -4, "below zero");

// The rows that fit, of a formula over either number type.
template <class N>
N area(double width, double height) {
  const Let<N> let;
  return 2 * let("width", width, "of the {}", [] { return "page"; }) * (let("height", height, "of {} pages", 2) + 1);
}

}  // namespace

TEST_CASE("a formula over doubles and over terms gives the same number, and terms say how") {
  const Term x = area<Term>(3, 4);
  CHECK(area<double>(3, 4) == 30);
  CHECK(x.value() == 30);
  const Explanation e = x.explained("area", "m2");
  CHECK(e.formula == "2 * width * (height + 1)");
  CHECK(e.substituted == "2 * 3 * (4 + 1)");
  REQUIRE(e.variables.size() == 2);
  CHECK(e.variables[0].meaning == "of the page");
  CHECK(e.variables[1].meaning == "of 2 pages");
}

TEST_CASE("parentheses stand where a reader needs them and nowhere else") {
  CHECK(((a + b) * a).text() == "(a + b) * a");
  CHECK((a + b * a).text() == "a + b * a");
  CHECK((a - (b - a)).text() == "a - (b - a)");
  CHECK((a - b - a).text() == "a - b - a");
  CHECK((a / (b * a)).text() == "a / (b * a)");
  CHECK((a * (b / a)).text() == "a * b / a");
  CHECK((max(a, b + a) / 2).text() == "max(a, b + a) / 2");
  CHECK((a + b).in_parentheses().text() == "(a + b)");
}

TEST_CASE("what is printed evaluates to the value") {
  for (const Term& x :
       {(a + b) * a / (b - minus), a - (b - a) - minus, a / (b / a), a * (b / a) * minus,
        ceil(a / 2) - floor(a / 2) * sqrt(max(b, 16)), min(a, min(b, minus)) / 3, 1.008e20 * a / (a + 1e-7)}) {
    const Explanation e = x.explained("", "");
    INFO(e.formula << " = " << e.substituted);
    CHECK(evaluate(e.substituted) == Approx(x.value()).epsilon(1e-14));
  }
  CHECK((a - minus).explained("", "").substituted == "3 - (-4)");
}

TEST_CASE("factors of 1 and summands of 0 leave no trace") {
  CHECK((1 * a / 1 + 0 - 0).text() == "a");
  CHECK((0 * a).text() == "0");
  CHECK((0 * a).variables().empty());
  CHECK(Let<Term>().factor("ranks", 1, "devices").text() == "1");
  CHECK(Let<Term>().factor("ranks", 2, "devices").text() == "ranks");
  CHECK(largest_of({Term(0), a}).text() == "max(a)");
  CHECK(largest_of({Term(0), Term(0)}).text() == "0");
  CHECK(largest_of({a, b + a}).value() == 3.5);
}

TEST_CASE("a name means one number in a formula") {
  CHECK((a * a).variables().size() == 1);
  CHECK_THROWS_AS(a + Term("a", 4, "four"), std::logic_error);
}

TEST_CASE("notes and parts come along once") {
  const Let<Term> let;
  const Term pairs = let.part("pairs", let.noted(a * a, "of a square"), "what is inside");
  const Explanation e = (pairs.noted("seen") + pairs.noted("seen") * b).explained("x", "");
  CHECK(e.formula == "pairs + pairs * b");
  CHECK(e.notes == std::vector<std::string>{"seen"});
  REQUIRE(e.parts.size() == 1);
  CHECK(e.parts[0].path == "pairs");
  CHECK(e.parts[0].formula == "a * a");
  CHECK(e.parts[0].notes == std::vector<std::string>{"of a square"});
}

TEST_CASE("the reader of printed formulas refuses what is none") {
  CHECK(evaluate("2 + 3 * 4 - 24 / 3 / 2") == 10);
  CHECK(evaluate("-2 * (-3) + 1.008e+12") == 1.008e12 + 6);
  for (const char* text : {"", " ", "1 +", "* 2", "(1", "1)", "1 2", "a", "max()", "max(1,)", "ceil(1, 2)", "1..2",
                           "1 $ 2", "nobody(1)", "1e", "()"}) {
    INFO(text);
    CHECK_THROWS_AS(evaluate(text), std::invalid_argument);
  }
}

}  // namespace llmperf::term_test
