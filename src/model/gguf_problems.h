// Internal to src/model: everything that is wrong with one GGUF file, each with its place.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "model/gguf_file.h"

namespace llmperf::model {

class GgufProblems {
 public:
  // A file of the wrong kind has thousands of wrong tensors; nobody reads more than these.
  static constexpr std::size_t kMaxProblems = 20;

  explicit GgufProblems(const GgufFile& file) : file_(&file) {}

  // Of what the file lacks.
  void add(std::string message, std::string hint = {}) { append({file_->path}, std::move(message), std::move(hint)); }
  void add(const GgufEntry& where, std::string message, std::string hint = {}) {
    append(position(where.shard, where.offset), std::move(message), std::move(hint));
  }
  void add(const GgufTensorInfo& where, std::string message, std::string hint = {}) {
    append(position(where.shard, where.offset), std::move(message), std::move(hint));
  }

  bool empty() const { return diagnostics_.empty(); }

  // Throws Error(bad_input) with all of them, if there are any.
  void throw_if_any() {
    if (diagnostics_.empty()) return;
    if (more_ > 0) diagnostics_.push_back({{file_->path}, fmt::format("… and {} more problems", more_), ""});
    throw Error(ErrorKind::bad_input, std::move(diagnostics_));
  }

 private:
  SourcePosition position(int shard, std::int64_t offset) const {
    const auto index = static_cast<std::size_t>(shard);
    return {index < file_->shards.size() ? file_->shards[index] : file_->path, 0, 0, offset};
  }

  void append(SourcePosition where, std::string message, std::string hint) {
    if (diagnostics_.size() == kMaxProblems) {
      ++more_;
    } else {
      diagnostics_.push_back({std::move(where), std::move(message), std::move(hint)});
    }
  }

  const GgufFile* file_;
  std::vector<Diagnostic> diagnostics_;
  std::size_t more_ = 0;
};

}  // namespace llmperf::model
