#include "program/module.h"

#include "catch.h"

namespace llmperf::program::module_test {
namespace {

std::string scope(const std::string& location, const std::string& aliases = "") {
  const Module m =
      parse_text("t.mlir", "%0 = stablehlo.constant dense<1> : tensor<i32> loc(" + location + ")\n" + aliases);
  return scope_of(m, m.functions[0].body.body[0]);
}

}  // namespace

TEST_CASE("A location is the scope that the program's author gave") {
  CHECK(scope(R"("jit(f)/layer_0/dot_general")") == "jit(f)/layer_0/dot_general");
  CHECK(scope(R"("jit(f)/add"("f.py":12:3))") == "jit(f)/add");
  CHECK(scope(R"("add"("jit(f)/layer_0"("f.py":12:3)))") == "jit(f)/layer_0/add");
  CHECK(scope(R"("f.py":12:3)") == "f.py:12");
  CHECK(scope(R"("f.py":12:3 to :14)") == "f.py:12");
  CHECK(scope("#loc2", "#loc = loc(unknown)\n#loc1 = loc(\"f.py\":1:2)\n#loc2 = loc(\"jit(f)/mul\"(#loc1))\n") ==
        "jit(f)/mul");
  CHECK(scope(R"(fused["jit(f)/mul", "jit(f)/add"])") == "jit(f)/mul");
  CHECK(scope(R"(fused<"why">["jit(f)/mul", "jit(f)/add"])") == "jit(f)/mul");
  CHECK(scope(R"(callsite("jit(f)/mul" at "g.py":1:1))") == "jit(f)/mul");
  CHECK(scope("unknown").empty());
  CHECK(scope("#a", "#a = loc(#b)\n#b = loc(#a)\n").empty());
}

TEST_CASE("Integers of an attribute, without words, strings and types") {
  CHECK(integers("dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>") == Integers{0, 1, 2, 3});
  CHECK(integers("array<i64: 1, -2>") == Integers{1, -2});
  CHECK(integers("1 : i64") == Integers{1});
  CHECK(integers("[0:4:2, 1:3]") == Integers{0, 4, 2, 1, 3});
  CHECK(integers("\"12\" e5m10 bb3 7") == Integers{7});
  CHECK(integers("99999999999999999999").empty());
  CHECK(integers("").empty());
  CHECK(integer_list("[1, 2] x [0]", 0) == Integers{1, 2});
  CHECK(integer_list("[1, 2] x [0]", 1) == Integers{0});
  CHECK(integer_list("[1, 2] x [0]", 2).empty());
  CHECK(integer_list("[[1], [2]]", 0) == Integers{1, 2});
  using Rows = std::vector<Integers>;
  CHECK(integer_rows("dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>") == Rows{{0, 1}, {2, 3}});
  CHECK(integer_rows("[[0, 1], [2]]") == Rows{{0, 1}, {2}});
  CHECK(integer_rows("dense<0> : tensor<1x1xi64>") == Rows{{0}});
  CHECK(integer_rows("dense<7> : tensor<2x3xi64>") == Rows{{7, 7, 7}, {7, 7, 7}});
  CHECK(integer_rows("dense<> : tensor<0x0xi64>").empty());
  CHECK(integer_rows("[0, 1]") == Rows{{0, 1}});
}

TEST_CASE("Fields and quotes of an attribute") {
  CHECK(field("#mhlo.dot<lhs_a = [1, 2], rhs_a = [0]>", "lhs_a") == "[1, 2]");
  CHECK(field("#mhlo.dot<lhs_a = [1, 2], rhs_a = [0]>", "rhs_a") == "[0]");
  CHECK(field("{a = {b = 1}, b = 2}", "b") == "2");
  CHECK(field("<handle = 3, type = 1>", "type") == "1");
  CHECK_FALSE(field("<handle = 3, type = 1>", "typ"));
  CHECK_FALSE(field("", "a"));
  CHECK(field("a =", "a") == "");
  CHECK(unquoted("\"a b\"") == "a b");
  CHECK(unquoted(" @\"f\" ") == "f");
  CHECK(unquoted("@f") == "f");
  CHECK(unquoted(R"("a \"b\" c" d)") == R"(a \"b\" c)");
  CHECK(field(R"({a = "x, {\"}", b = 2})", "a") == R"("x, {\"}")");
  CHECK(field(R"({a = "x, {\"}", b = 2})", "b") == "2");
  CHECK(unquoted("f") == "f");
}

}  // namespace llmperf::program::module_test
