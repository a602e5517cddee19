// Typed, strict access to a Document. A Reader stands on one mapping; it collects every problem of the whole file in a
// shared Problems list instead of stopping at the first one, and remembers which keys were asked for, so that finish()
// reports the unknown ones with the nearest known names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "descriptor/node.h"

namespace llmperf::descriptor {

class Problems {
 public:
  // More than anybody reads; keeps a hostile file from turning into gigabytes of report. Further ones are dropped, and
  // that is said.
  static constexpr std::size_t kMaxProblems = 100;

  explicit Problems(std::string file) : file_(std::move(file)) {}
  void add(const Node& where, std::string message, std::string hint = {});
  void add(int line, int column, std::string message, std::string hint = {});
  bool empty() const { return diagnostics_.empty(); }
  bool full() const { return diagnostics_.size() > kMaxProblems; }
  const std::string& file() const { return file_; }
  // Throws Error(bad_input) with all problems in file order, if there are any.
  void throw_if_any();
  // All of them as they were added, and then none.
  std::vector<Diagnostic> take() { return std::exchange(diagnostics_, {}); }

 private:
  std::string file_;
  std::vector<Diagnostic> diagnostics_;
};

// Inclusive range a number must lie in. Every count is bounded, so that products cannot overflow.
struct IntRange {
  std::int64_t min = 1;
  std::int64_t max = 1'000'000'000;
};

class Reader {
 public:
  // `node` must outlive the reader. A node that is not a mapping is reported and read as empty.
  Reader(const Node& node, Problems& problems, std::string what);

  bool has(std::string_view key) const;    // present and not null; does not count as asking
  const Node* find(std::string_view key);  // marks the key as known; null when absent or null-valued

  // Missing required keys and wrong types are reported and a harmless value is returned: read on, call
  // Problems::throw_if_any() before the values are used.
  std::int64_t require_int(std::string_view key, IntRange range = {});
  std::optional<std::int64_t> optional_int(std::string_view key, IntRange range = {});
  std::int64_t int_or(std::string_view key, std::int64_t fallback, IntRange range = {});
  double require_double(std::string_view key, double min, double max);
  std::optional<double> optional_double(std::string_view key, double min, double max);
  std::optional<bool> optional_bool(std::string_view key);
  bool bool_or(std::string_view key, bool fallback);
  std::string require_string(std::string_view key);
  std::optional<std::string> optional_string(std::string_view key);
  std::string string_or(std::string_view key, std::string fallback);
  // One of `names`; returns its index. Reported with the nearest names otherwise; absent: `fallback` (required if
  // nullopt).
  std::size_t choice(std::string_view key, std::span<const std::string_view> names,
                     std::optional<std::size_t> fallback = std::nullopt);
  // Values with units, all strictly positive (parse_bytes and friends).
  std::optional<Bytes> optional_bytes(std::string_view key);
  std::optional<BytesPerSecond> optional_bandwidth(std::string_view key);
  std::optional<FlopsPerSecond> optional_flops_rate(std::string_view key);
  std::optional<Seconds> optional_seconds(std::string_view key);

  std::optional<Reader> optional_mapping(std::string_view key);
  std::vector<Reader> optional_mappings(std::string_view key);  // a sequence of mappings; empty when absent
  std::vector<std::string> optional_strings(std::string_view key);
  std::vector<std::int64_t> optional_ints(std::string_view key, IntRange range = {});

  // Whether the key is there with the value null, which for some keys is not the same as absent.
  bool is_null(std::string_view key) const;
  // Marks keys, with spaces between them, as known and deliberately unused.
  void ignore(std::string_view keys);
  // Keys that were never asked for, in file order.
  std::vector<std::string> unknown_keys() const;
  // Reports every key that was never asked for. `advice` is appended to the first one's hint.
  void finish(std::string_view advice = {});

  // Reports a problem at this key's value (or at the mapping when it is absent).
  void problem(std::string_view key, std::string message, std::string hint = {});
  const Node& node() const { return *node_; }
  Problems& problems() { return *problems_; }
  const std::string& what() const { return what_; }

 private:
  const Node* value_of(std::string_view key) const;  // null where there is none, or null
  const Node* require(std::string_view key);
  std::int64_t read_int(std::string_view key, const Node& node, IntRange range);
  double read_double(std::string_view key, const Node& node, double min, double max);
  std::string read_string(std::string_view key, const Node& node);
  template <class Value, class Parse>
  std::optional<Value> read_quantity(std::string_view key, Parse parse, std::string_view example);
  std::span<const Node> read_items(std::string_view key, std::string_view of);

  const Node* node_;
  Problems* problems_;
  std::string what_;                // "model", "device", … for messages
  std::vector<std::string> asked_;  // with repetitions
};

}  // namespace llmperf::descriptor
