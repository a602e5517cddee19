// A result of `llmperf estimate` as it was saved: the JSON document read back by what its declaration says.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "descriptor/node.h"
#include "result/field.h"

namespace llmperf::result {

// A time that a slowdown is judged by, and the error band that it has, if any.
struct JudgedTime {
  std::string_view key;
  std::string_view title;
  std::string_view band = {};
};
// What a command of one kind answers, as far as two of its results are compared.
struct SavedKind {
  std::string_view schema;
  std::string_view name;     // in messages
  std::string_view mark;     // a key that tells it from others of its schema; empty: the one without
  std::string_view figures;  // the numbers of a headline by their paths, separated by blanks
  std::string_view whole;    // the key of the time that everything takes
  std::span<const JudgedTime> judged;
  const Type& (*type)();
};

struct SavedResult {
  std::string source;  // the file, or what stands for it in messages
  const SavedKind* kind = nullptr;
  std::string version;  // of the llmperf that made it
  std::string label;
  bool fits = false;
  descriptor::Document document;

  // By its path, "memory.total_bytes"; nothing where it is null or absent.
  std::optional<double> figure(std::string_view path) const;
};

// What stands at a path of keys; null where there is nothing or null.
const descriptor::Node* find(const descriptor::Node& object, std::string_view path);

inline constexpr std::size_t kMaxResultBytes = std::size_t{16} << 20;

// Throws Error(bad_input), with the position of what is wrong, for text that is no JSON, no result of `llmperf
// estimate`, one of another schema version, or one with a value of another kind than its key is declared as. Keys it
// does not know are left alone, as docs/json.md allows new ones; so are those that are absent.
SavedResult read_result(std::string_view text, const std::string& source);

}  // namespace llmperf::result
