// The words of a command line before CLI11 has read them.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace llmperf::cli {

// "-m", "--batch=4"; "-1" and "-" are values.
bool is_flag(const std::string& word);
// "--batch" of "--batch=4", "-m" of "-mqwen-7b".
std::string flag_of(const std::string& word);
// Null when there is none of that name.
const CLI::App* find_subcommand(const CLI::App& command, const std::string& name);

}  // namespace llmperf::cli
