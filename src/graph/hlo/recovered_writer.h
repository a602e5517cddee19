// Internal to recovered_*.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/hlo/blocks.h"

namespace llmperf::graph::hlo {

// Lines of YAML.
class YamlLines {
 public:
  void put(std::string_view key, std::string_view value);  // as it stands
  void put(std::string_view key, std::int64_t value);
  void text(std::string_view key, std::string_view value);  // in quotes
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
};
std::string yaml_text(std::string_view value);  // "…"

// From the name of the file.
std::string model_name(const Program& program);
std::string model_source(const Program& program);
// "1 x block of self attention, feed-forward; outside of blocks 2 other", for errors.
std::string findings(const Blocks& blocks);
[[noreturn]] void reject(const Program& program, std::string message, const Blocks& blocks);

std::string recovered_decoder(const Program& program, const Blocks& blocks);
std::string recovered_video(const Program& program, const Blocks& blocks);

}  // namespace llmperf::graph::hlo
