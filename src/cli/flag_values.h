// Which values a flag or an argument takes, for shell completion. What a flag accepts is decided where it is read;
// tests hold the two against each other.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace llmperf::cli {

struct FlagValues {
  enum class Sort {
    free,   // a number, a formula: nothing to offer
    words,  // one of `names`
    paths,  // one of `names`, or a file
    items,  // a comma-separated list of them
    files,
    folders,
  };
  Sort sort = Sort::free;
  std::vector<std::string> names;
};

// `arguments`: those given before, without flags.
FlagValues flag_values(const CLI::App& command, const CLI::Option& option, std::span<const std::string> arguments);

}  // namespace llmperf::cli
