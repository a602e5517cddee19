// Internal to src/model: patterns that a checkpoint names its modules by, matched in time that a hostile pattern cannot
// make exponential.
#pragma once

#include <bitset>
#include <optional>
#include <string_view>
#include <vector>

namespace llmperf::model {

class NamePattern {
 public:
  static constexpr std::size_t kLongest = 255;  // characters of a pattern or a name; a longer name matches nothing

  // fnmatch's *, ? and [...]; matches a module and everything inside it ("layers.0*" and "*.mlp").
  static std::optional<NamePattern> glob(std::string_view text);
  // Python's re.match, which need not reach the end of the name: literals, classes, groups, |, ?, *, +, ^ and $.
  // Nothing where the pattern has more than that.
  static std::optional<NamePattern> regex(std::string_view text);

  bool matches(std::string_view name) const;

 private:
  friend class PatternParser;
  using Characters = std::bitset<128>;
  using Positions = std::bitset<kLongest + 1>;  // in the name, between characters

  struct Node {
    enum class Kind : unsigned char { characters, end, sequence, choice, repeat };
    Kind kind = Kind::sequence;
    Characters characters = {};
    bool optional = false;  // of repeat: none at all will do
    bool many = false;      // … more than one will
    std::vector<Node> parts = {};
  };
  static Positions run(const Node& node, Positions from, std::string_view name);

  Node root_;
  bool whole_ = false;  // the match ends with the name or one of the modules it lies in
};

}  // namespace llmperf::model
