// Internal to src/model: typed access to the settings of an architecture in a GGUF file ("qwen2.block_count" is
// "block_count" here). What is missing, of another type or out of range is reported and a harmless value returned: read
// on, and call GgufProblems::throw_if_any() before the values are used. Keys nobody asks for are left alone: most are
// about numerics and the tokenizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor/reader.h"
#include "model/gguf_problems.h"

namespace llmperf::model {

class GgufKeys {
 public:
  GgufKeys(const GgufFile& file, GgufProblems& problems, std::string architecture)
      : file_(&file), problems_(&problems), architecture_(std::move(architecture)) {}

  std::string full(std::string_view key) const { return architecture_ + "." + std::string(key); }
  const GgufEntry* find(std::string_view key) const { return file_->find(full(key)); }
  bool has(std::string_view key) const { return find(key) != nullptr; }

  std::int64_t require_int(std::string_view key, descriptor::IntRange range);
  std::optional<std::int64_t> optional_int(std::string_view key, descriptor::IntRange range);
  std::int64_t int_or(std::string_view key, std::int64_t fallback, descriptor::IntRange range);
  // 0 stands for absent in files.
  std::optional<std::int64_t> optional_nonzero(std::string_view key, descriptor::IntRange range);
  // One value for all layers or an array with one for each; empty when absent.
  std::vector<std::int64_t> per_layer(std::string_view key, std::int64_t layers, descriptor::IntRange range);
  std::optional<double> optional_number(std::string_view key);
  std::optional<bool> optional_bool(std::string_view key);

  // Reports at the key if it is there.
  void problem(std::string_view key, std::string message, std::string hint = {});
  void missing(std::string_view key, std::string hint = {});
  // Reports values that do not go together; nothing if one was replaced by a harmless one, which says nothing.
  void contradiction(std::string_view key, std::string message, std::string hint = {});
  GgufProblems& problems() { return *problems_; }

 private:
  void refuse(const GgufEntry& entry, std::string message);
  std::int64_t read_int(const GgufEntry& entry, descriptor::IntRange range);

  const GgufFile* file_;
  GgufProblems* problems_;
  std::string architecture_;
  bool unsound_ = false;  // a value was missing or refused
};

}  // namespace llmperf::model
