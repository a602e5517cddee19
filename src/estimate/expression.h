// Formulas as text: what `explain` prints is also what it evaluates, so that a printed formula cannot be wrong.
//
//   sum     = product { ("+" | "-") product }
//   product = factor { ("*" | "/") factor }
//   factor  = number | name | function "(" sum { "," sum } ")" | "(" sum ")" | "-" factor
//
// Functions: max, min (one argument or more), ceil, floor, sqrt (one). Names: [A-Za-z_][A-Za-z0-9_]*.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmperf::estimate {

struct Variable {
  std::string name;
  double value = 0;
  std::string meaning;  // with its unit where it has one
};

// Throws std::invalid_argument on malformed text and on a name that is neither a variable nor a function.
double evaluate(std::string_view formula, std::span<const Variable> variables);

// The formula with every variable replaced by its value in the shortest decimal that reads back as the same number
// (negative ones in parentheses). Throws like evaluate on unknown names.
std::string substitute(std::string_view formula, std::span<const Variable> variables);

// The names a formula uses, functions left out, in the order of their first use. They point into `formula`.
std::vector<std::string_view> names_in(std::string_view formula);

}  // namespace llmperf::estimate
