#include "catch.h"
#include "program/flat.h"
#include "program/loop_text.h"

namespace llmperf::program::loops_test {

TEST_CASE("A loop is counted by its trip count") {
  struct Case {
    Counting counting;
    std::int64_t trips;
  };
  const Case cases[] = {
      {{.from = 0, .direction = "LT", .to = 10, .by = 1}, 10},
      {{.from = 3, .direction = "LT", .to = 10, .by = 1}, 7},
      {{.from = 0, .direction = "LT", .to = 10, .by = 3}, 4},
      {{.from = 0, .direction = "LE", .to = 10, .by = 1}, 11},
      {{.from = -2, .direction = "LE", .to = 2, .by = 2}, 3},
      {{.from = 0, .direction = "NE", .to = 12, .by = 4}, 3},
      {{.from = 10, .direction = "GT", .to = 0, .step = kSubtract, .by = 1}, 10},
      {{.from = 10, .direction = "GE", .to = 0, .step = kSubtract, .by = 5}, 3},
      {{.from = 10, .direction = "GT", .to = 0, .by = -2}, 5},
      {{.from = 10, .direction = "NE", .to = 4, .step = kSubtract, .by = 2}, 3},
      {{.from = 0, .direction = "GT", .to = 10, .by = 1, .limit_first = true}, 10},
      {{.from = 0, .direction = "GE", .to = 10, .by = 1, .limit_first = true}, 11},
      {{.from = 0, .direction = "LT", .to = 10, .by = 1, .compared = "%next"}, 9},
      {{.from = 0, .direction = "LT", .to = 10, .by = 2, .compared = "%next"}, 4},
      {{.from = 0, .direction = "LT", .to = 1000000000, .by = 1}, 1000000000},
  };
  for (const Case& c : cases) {
    const Flat f(loop(c.counting));
    INFO(c.counting.from << " " << c.counting.direction << " " << c.counting.to << " by " << c.counting.by);
    REQUIRE(f.program.loops.size() == 1);
    CHECK(f.program.loops[0].known);
    CHECK(f.program.loops[0].trips == c.trips);
    CHECK(f.count("tanh") == c.trips);
    CHECK(f.count("compare") == c.trips + 1);
    CHECK(f.program.notes.empty());
  }
}

TEST_CASE("A loop that never begins asks its condition once and leaves the values as they were") {
  for (const Counting& c : {Counting{.from = 10, .to = 10}, Counting{.from = 0, .direction = "GT", .to = 10},
                            Counting{.from = 4, .direction = "NE", .to = 4}}) {
    const Flat f(loop(c));
    CHECK(f.program.loops[0].known);
    CHECK(f.program.loops[0].trips == 0);
    CHECK(f.count("tanh") == 0);
    CHECK(f.count("compare") == 1);
  }
}

TEST_CASE("A counter that moves away from its limit is no known number of passes") {
  for (const Counting& c :
       {Counting{.by = 0}, Counting{.step = kSubtract}, Counting{.direction = "EQ"},
        Counting{.direction = "NE", .to = 10, .by = 3}, Counting{.step = "stablehlo.multiply %i, %i : tensor<i32>"}}) {
    const Flat f(loop(c));
    INFO(c.direction << " " << c.step << " " << c.by);
    CHECK_FALSE(f.program.loops[0].known);
    CHECK(f.count("tanh") == 1);
  }
}

TEST_CASE("A limit that the loop carries along unchanged is known") {
  const Flat f(function(R"(
    %c0 = stablehlo.constant dense<0> : tensor<i64>
    %c6 = stablehlo.constant dense<6> : tensor<i64>
    %c1 = stablehlo.constant dense<1> : tensor<i64>
    %0:3 = stablehlo.while(%i = %c0, %limit = %c6, %y = %x) : tensor<i64>, tensor<i64>, tensor<4xf32>
    cond {
      %1 = stablehlo.compare LT, %i, %limit : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %2 = stablehlo.add %c1, %i : tensor<i64>
      %3 = stablehlo.tanh %y : tensor<4xf32>
      stablehlo.return %2, %limit, %3 : tensor<i64>, tensor<i64>, tensor<4xf32>
    })"));
  CHECK(f.count("tanh") == 6);
}

TEST_CASE("A loop in a loop multiplies, in a function too, and knows its parent") {
  const std::string inner =
      "func.func private @inner(%a: tensor<4xf32>) -> tensor<4xf32> {" +
      counted(5, {{"%y", "%a", "tensor<4xf32>", "%z"}}, "%z = stablehlo.sine %y : tensor<4xf32>") +
      "return %l#1 : tensor<4xf32>\n}";
  std::string outer = loop({.to = 3});
  outer.replace(outer.find("stablehlo.tanh %y : tensor<4xf32>"), 33,
                "call @inner(%y) : (tensor<4xf32>) -> tensor<4xf32>");
  const Flat f(outer + inner);
  CHECK(f.count("sine") == 15);
  REQUIRE(f.program.loops.size() == 2);
  CHECK(f.program.loops[1].parent == 0);
  CHECK(f.program.loops[0].parent == -1);
  CHECK(f.node("sine").loop == 1);
}

TEST_CASE("A loop of unknown length is counted once and said, unless `trip-count` gives it") {
  const Flat once(kUnknownLoop);
  CHECK(once.count("tanh") == 1);
  CHECK_FALSE(once.program.loops[0].known);
  CHECK(once.program.loops[0].name == "%0");
  CHECK(notes_contain(once.program, "`trip-count` %0=N"));
  const Flat given(kUnknownLoop, {.trips = {{"0", 7}}});
  CHECK(given.count("tanh") == 7);
  CHECK(given.program.notes.empty());
  CHECK(Flat(kUnknownLoop, {.trips = {{"0", 0}}}).count("tanh") == 0);
  CHECK(Flat(loop({.to = 3}), {.trips = {{"0", 7}}}).count("tanh") == 7);  // who says it knows better
  CHECK(refusal(kUnknownLoop, {.trips = {{"1", 7}}}) ==
        "0:0: `trip-count`: there is no loop '%1' (did you mean '%0'?)");
  CHECK(refusal(function(""), {.trips = {{"1", 7}}}) ==
        "0:0: `trip-count`: there is no loop '%1' (the program has no loops)");
  CHECK(refusal(loop({.to = 1000000000}), {.trips = {{"0", std::int64_t{1} << 60}}}).find("10^15") !=
        std::string::npos);
}

TEST_CASE("What a loop returns is what its body returned, what its body begins with is the initial value") {
  const Flat f(loop({.to = 3}) + "func.func private @unused() { return }\n");
  const Loop& l = f.program.loops[0];
  REQUIRE(l.arguments.size() == 2);
  CHECK(f.program.tensor(l.arguments[1]).same == f.program.arguments[0]);
  CHECK(l.yielded[1] == f.node("tanh").results[0]);
  CHECK(f.node("tanh").operands[0] == l.arguments[1]);
}

TEST_CASE(
    "Conditions that are joined: the first to fail ends the loop; one that is not known makes the other the most") {
  const auto joined = [](const std::string& condition) {
    return R"(func.func @main(%p: tensor<i1>) -> tensor<i32> {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %0 = stablehlo.while(%i = %c0) : tensor<i32>
      cond {
        %c6 = stablehlo.constant dense<6> : tensor<i32>
        %c9 = stablehlo.constant dense<9> : tensor<i32>
        %true = stablehlo.constant dense<true> : tensor<i1>
        %less = stablehlo.compare GT, %c6, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %far = stablehlo.compare GE, %i, %c9 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %at = stablehlo.compare EQ, %i, %c9 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        )" +
           condition +
           R"(
        stablehlo.return %go : tensor<i1>
      } do {
        %c1 = stablehlo.constant dense<1> : tensor<i32>
        %3 = stablehlo.add %i, %c1 : tensor<i32>
        stablehlo.return %3 : tensor<i32>
      }
      return %0 : tensor<i32>
    })";
  };
  struct Case {
    const char* condition;
    std::int64_t trips;
    bool exact;
  };
  const Case cases[] = {
      {"%go = stablehlo.and %less, %true : tensor<i1>", 6, true},
      {"%go = stablehlo.not %far : tensor<i1>", 9, true},
      {"%go = stablehlo.not %at : tensor<i1>", 9, true},
      {"%n = stablehlo.not %far : tensor<i1>\n%go = stablehlo.and %n, %less : tensor<i1>", 6, true},
      {"%n = stablehlo.not %p : tensor<i1>\n%go = stablehlo.and %less, %n : tensor<i1>", 6, false},
      {"%o = stablehlo.or %at, %p : tensor<i1>\n%go = stablehlo.not %o : tensor<i1>", 9, false},
  };
  for (const Case& c : cases) {
    INFO(c.condition);
    const Flat f(joined(c.condition));
    CHECK(f.program.loops[0].trips == c.trips);
    CHECK(f.program.loops[0].known == c.exact);
    CHECK(f.program.loops[0].most == !c.exact);
    CHECK(f.program.notes.size() == (c.exact ? 0 : 1));
  }
  const Flat open(joined("%go = stablehlo.or %less, %p : tensor<i1>"));
  CHECK_FALSE(open.program.loops[0].known);
  CHECK_FALSE(open.program.loops[0].most);
}

}  // namespace llmperf::program::loops_test
