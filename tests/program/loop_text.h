// The text of a function, and of a loop that counts.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace llmperf::program {

// A function of %x: tensor<4xf32> with `body`.
inline std::string function(const std::string& body, const std::string& head = "public @main") {
  return "func.func " + head + "(%x: tensor<4xf32>, %n: tensor<i32>, %p: tensor<i1>) -> tensor<4xf32> {\n" + body +
         "\nreturn %x : tensor<4xf32>\n}\n";
}

// What a loop carries beside its counter: "%a", `initial` at first and `next` after each pass.
struct Carried {
  std::string name;
  std::string initial;
  std::string type;
  std::string next;
};
// %l: a loop of so many passes, counted by %n, with a `body` that makes the next values.
inline std::string counted(int passes, const std::vector<Carried>& values, const std::string& body,
                           const std::string& attributes = "") {
  std::string initial;
  std::string types = "tensor<i32>";
  std::string next;
  for (const Carried& value : values) {
    initial += fmt::format(", {} = {}", value.name, value.initial);
    types += ", " + value.type;
    next += ", " + value.next;
  }
  return fmt::format(R"(
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %l:{} = stablehlo.while(%n = %zero{}) : {}{}
    cond {{
      %most = stablehlo.constant dense<{}> : tensor<i32>
      %goes = stablehlo.compare LT, %n, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %goes : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      %n1 = stablehlo.add %n, %one : tensor<i32>
      {}
      stablehlo.return %n1{} : {}
    }}
)",
                     values.size() + 1, initial, types, attributes.empty() ? "" : " attributes {" + attributes + "}",
                     passes, body, next, types);
}

struct Counting {
  int from = 0;
  std::string direction = "LT";
  int to = 10;
  std::string step = "stablehlo.add %i, %step : tensor<i32>";
  int by = 1;
  bool limit_first = false;  // compares limit with counter
  std::string compared = "%i";
};

// A loop %0 around one tanh.
inline std::string loop(const Counting& c) {
  const std::string operands = c.limit_first ? "%to, " + c.compared : c.compared + ", %to";
  return function(fmt::format(R"(
    %from = stablehlo.constant dense<{}> : tensor<i32>
    %to = stablehlo.constant dense<{}> : tensor<i32>
    %step = stablehlo.constant dense<{}> : tensor<i32>
    %0:2 = stablehlo.while(%i = %from, %y = %x) : tensor<i32>, tensor<4xf32>
    cond {{
      %next = stablehlo.add %i, %step : tensor<i32>
      %1 = stablehlo.compare {}, {}, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }} do {{
      %2 = {}
      %3 = stablehlo.tanh %y : tensor<4xf32>
      stablehlo.return %2, %3 : tensor<i32>, tensor<4xf32>
    }})",
                              c.from, c.to, c.by, c.direction, operands, c.step));
}

inline const std::string kSubtract = "stablehlo.subtract %i, %step : tensor<i32>";
inline const std::string kUnknownLoop = loop({.compared = "%n"});

}  // namespace llmperf::program
