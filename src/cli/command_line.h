// The command line as a whole: all subcommands, and how words become one that runs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace llmperf::cli {

inline constexpr const char* kProgramDescription =
    "Performance model of language models on accelerators: how fast, what binds it, does it fit.";

// Names the root and adds every subcommand to it.
void add_commands(CLI::App& root, Action& action);

// Runs the words after the program's name and returns the exit status. Throws Error.
int execute(const std::vector<std::string>& words);

// Throws the Error that execute() would throw before any work: names that do not exist, flags that are missing or
// without a value.
void check_command(const std::vector<std::string>& words);

// The words as a shell reads them, without what says where output goes.
std::string command_text(const std::vector<std::string>& words);

// The command that execute() is running, as a shell reads it, without what says where its output goes; empty when there
// is none.
std::string running_command();

}  // namespace llmperf::cli
