// Patterns of names that people write down: modules of a checkpoint, tensors of a GGUF file. Matched in time that grows
// with the lengths of name and pattern alone: what backtracks (std::regex) takes for ever or all of the stack.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace llmperf {

class NamePattern {
 public:
  // Both throw Error(bad_input) for what they do not know, with its place: "character 3: a look-ahead".
  // fnmatch's *, ? and [...]; matches a module and everything inside it ("layers.0*" and "*.mlp").
  static NamePattern glob(std::string_view text);
  // Literals, classes, groups, |, ?, *, +, {n,m}, ^ and $, as ECMAScript and Python have them.
  static NamePattern regex(std::string_view text);

  // From the beginning of the name; an expression need not reach its end (Python's re.match).
  bool matches(std::string_view name) const { return run(name, false); }
  // From anywhere in the name (std::regex_search).
  bool is_in(std::string_view name) const { return run(name, true); }

 private:
  friend class PatternReader;
  using Characters = std::bitset<128>;
  // One instruction. `to` counts from where it stands, so that a piece of a program can be moved and repeated.
  struct Step {
    enum class Kind : std::uint8_t { take, split, jump, begin, end };
    Kind kind = Kind::take;
    std::int32_t to = 0;         // split: here as well as behind it; jump: here alone
    Characters characters = {};  // take: one of them
  };

  bool run(std::string_view name, bool anywhere) const;

  std::vector<Step> steps_;
  bool is_glob_ = false;  // the match ends with the name or one of the modules it lies in
};

}  // namespace llmperf
