// Internal to src/model: patterns that a checkpoint names its modules by, matched in time that a hostile pattern cannot
// make exponential (std::regex backtracks).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace llmperf::model {

class NamePattern {
 public:
  static constexpr std::size_t kLongest = 255;  // characters of a pattern or a name; a longer name matches nothing

  // fnmatch's *, ? and [...]; matches a module and everything inside it ("layers.0*" and "*.mlp").
  static std::optional<NamePattern> glob(std::string_view text) { return read(text, true); }
  // Python's re.match, which need not reach the end of the name: literals, classes, groups, |, ?, *, +, ^ and $.
  // Nothing where the pattern has more than that.
  static std::optional<NamePattern> regex(std::string_view text) { return read(text, false); }

  bool matches(std::string_view name) const;

 private:
  NamePattern(std::string_view text, bool is_glob) : text_(text), is_glob_(is_glob) {}
  static std::optional<NamePattern> read(std::string_view text, bool is_glob);

  std::string text_;
  bool is_glob_ = false;  // the match ends with the name or one of the modules it lies in
};

}  // namespace llmperf::model
