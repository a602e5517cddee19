// Used by the readers of sharding annotations only: a cursor over a text, and what the two HLO forms have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/hlo/sharding.h"

namespace llmperf::graph::hlo {

// Throws Error(bad_input) at the place of `at`, when it is a part of the module's text.
[[noreturn]] void fail_at(const Module& module, std::string_view at, std::string message, std::string hint = {});

class ShardingText {
 public:
  ShardingText(const Module& module, std::string_view text) : module_(module), text_(text) {}

  const Module& module() const { return module_; }
  std::string_view rest() const { return text_.substr(at_); }
  bool done();
  // Whether `token` comes next, after spaces.
  bool sees(std::string_view token);
  bool take(std::string_view token);
  void expect(std::string_view token);
  // A number up to kMaxDevices.
  std::int64_t number();
  // Letters and underscores; may be empty.
  std::string_view word();
  // In double or single quotes, as they are or escaped (\22, \").
  std::string_view quoted();
  // "[1,2,3]" with the brackets given.
  std::vector<std::int64_t> numbers(std::string_view open, std::string_view close);
  // Passes over all up to and with the bracket that closes the one that comes next.
  void skip_brackets();
  [[noreturn]] void fail(std::string message, std::string hint = {}) const;
  [[noreturn]] void fail_expected(std::string_view what);

 private:
  void space();
  const Module& module_;
  std::string_view text_;
  std::size_t at_ = 0;
};

// "devices=[2,1,4]<=[8]": an array of devices, the tensor's dimensions first.
struct TileAssignment {
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> devices;  // in order; empty: counted up in `reshape`, then transposed
  std::vector<std::int64_t> reshape;
  std::vector<std::int64_t> transpose;
  enum class Last : unsigned char { replicated, manual, unreduced };
  std::vector<Last> last;  // what the last dimensions are, which are none of the tensor
};
// Empty when the numbers contradict each other; `problem` says how.
Sharding sharding_of(const TileAssignment& tiles, std::string& problem);

std::vector<Sharding> parse_shardy(ShardingText& text);
// The binary OpSharding with its bytes escaped as in a string of MLIR.
std::vector<Sharding> parse_serialized(const Module& module, std::string_view text);

}  // namespace llmperf::graph::hlo
