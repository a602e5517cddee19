// How many of the tokens that a draft proposes its target keeps (speculative decoding).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmperf::estimate {

// Chances that the target keeps the 1st, 2nd, … token of a draft given that it keeps those before; the last one also
// holds for tokens beyond the list.
struct Acceptance {
  std::vector<double> rates = {1};  // at least one, each in [0, 1]
  Acceptance() = default;
  Acceptance(double rate) : rates{rate} {}  // NOLINT(google-explicit-constructor)
  explicit Acceptance(std::vector<double> table) : rates(std::move(table)) {}
  double of(std::int64_t token) const;  // from 0
  std::string text() const;             // "0.8", "0.85, 0.7, 0.6"
  bool operator==(const Acceptance&) const = default;
};

// Tokens that a draft of `length` tokens is expected to yield, with the one that the target adds:
// 1 + p_1 + p_1 p_2 + …, with one rate p for all (1 - p^(length + 1)) / (1 - p).
double expected_tokens(const Acceptance& acceptance, std::int64_t length);

// "0.8", "0.85,0.7,0.6" (or with / in lists of values), or a file with a number on each line. Throws Error(bad_input);
// messages say `accept`.
Acceptance parse_acceptance(const std::string& text);

}  // namespace llmperf::estimate
