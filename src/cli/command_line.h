// The command line as a whole: all subcommands, and how words become one that runs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace llmperf::cli {

// The root with every subcommand.
Command all_commands();

// A subcommand adds itself to the root.
void add_calibrate(Command& root);
void add_compare(Command& root);
void add_completion(Command& root);
void add_estimate(Command& root);
void add_explain(Command& root);
void add_graph(Command& root);
void add_help(Command& root);
void add_import(Command& root);
void add_limits(Command& root);
void add_list(Command& root);
void add_map(Command& root);
void add_map_collective(Command& root);
void add_man(Command& root);
void add_merge(Command& root);
void add_parallel(Command& root);
void add_replay(Command& root);
void add_run(Command& root);
void add_report(Command& root);
void add_show(Command& root);
void add_sweep(Command& root);
void add_validate(Command& root);

// The words as a shell reads them, without what says where output goes.
std::string command_text(std::span<const std::string> words);

// Parses the command line, runs the subcommand and maps errors to messages and exit status.
int run(int argc, const char* const* argv);

}  // namespace llmperf::cli
