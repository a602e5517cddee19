// The command line as a whole: all subcommands, and how words become one that runs.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace llmperf::cli {

// The root with every subcommand.
Command all_commands();

// A subcommand adds itself to the root.
using AddCommand = void(Command& root);
AddCommand add_calibrate, add_capacity, add_compare, add_completion, add_estimate, add_explain, add_explore, add_graph,
    add_import, add_limits, add_list, add_man, add_map, add_map_collective, add_map_model, add_merge, add_parallel,
    add_replay, add_report, add_run, add_serve, add_show, add_sweep, add_validate;

// The words as a shell reads them, without what says where output goes.
std::string command_text(std::span<const std::string> words);

// Parses the command line, runs the subcommand and maps errors to messages and exit status.
int run(int argc, const char* const* argv);

}  // namespace llmperf::cli
