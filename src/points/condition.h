// Conditions on the columns of a row, as --where takes them:
//
//   ttft_s < 0.5 and fits
//   model == "qwen-7b" and (weights == 'w4a16' or tokens_per_second > 2 * batch * 100)
//   total_bytes <= 0.9 * capacity_bytes and not tpot_s > 50ms
//
// or, and, not (also ||, &&, !) over comparisons (== != < <= > >=) of numbers, texts in quotes, columns, true and
// false;
// + - * / and parentheses. Numbers take units: ns us ms s, KB MB GB TB, KiB MiB GiB TiB, k M G T. A comparison with an
// empty cell, or of a number with a text, is false. What can never hold is refused: a time compared with bytes, a text
// with a number, sums of texts or truths, a division by 0.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "points/row.h"

namespace llmperf::points {

class Condition {
 public:
  // `columns`: that it may name. Throws Error(bad_input) with the position in the text.
  Condition(std::string_view text, std::span<const std::string> columns);
  bool operator()(const Row& row) const;

  enum class Op : std::uint8_t {
    number,
    text,
    truth,
    column,
    negate,
    invert,
    add,
    subtract,
    multiply,
    divide,
    equal,
    unequal,
    less,
    less_equal,
    greater,
    greater_equal,
    both,
    either,
  };
  // In postfix order.
  struct Node {
    Op op = Op::number;
    double number = 0;
    std::size_t column = 0;
    std::string text = {};
  };

 private:
  std::vector<Node> nodes_;
};

}  // namespace llmperf::points
