// Internal to src/model: the tensors of a GGUF file by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "model/gguf_file.h"

namespace llmperf::model {

// Looks into `file`, which must outlive it.
class GgufIndex {
 public:
  explicit GgufIndex(const GgufFile& file) {
    by_name_.reserve(file.tensors.size());
    for (const GgufTensorInfo& tensor : file.tensors) by_name_.emplace(tensor.name, &tensor);
  }

  // Null when there is none.
  const GgufTensorInfo* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  const GgufTensorInfo* find(std::int64_t layer, std::string_view stem) const {
    return find("blk." + std::to_string(layer) + "." + std::string(stem));
  }

 private:
  std::unordered_map<std::string_view, const GgufTensorInfo*> by_name_;
};

}  // namespace llmperf::model
