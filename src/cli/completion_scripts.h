// Completion scripts of shells. They are thin: what may come next they ask the program.
#pragma once

#include <span>
#include <string_view>

namespace llmperf::cli {

struct CompletionScript {
  std::string_view shell;
  std::string_view about;
  std::string_view text;
};
std::span<const CompletionScript> completion_scripts();

}  // namespace llmperf::cli
