// What manual pages say beyond --help.
#pragma once

#include <span>
#include <string_view>

namespace llmperf::cli {

// Commands that work as they stand where the files exist that they name; a test runs them.
struct ManExample {
  std::string_view command;  // the subcommand's name
  std::string_view about;
  std::string_view words;  // what to type
};
std::span<const ManExample> man_examples();

struct ManEntry {
  std::string_view term;
  std::string_view text;
};
std::span<const ManEntry> man_exit_statuses();
std::span<const ManEntry> man_environment();
std::span<const ManEntry> man_files();

// Of llmperf(1).
inline constexpr std::string_view kManDescription =
    "llmperf says how fast a language model, or a diffusion transformer for video, runs on a piece of hardware, what "
    "limits it and whether it fits. It turns a model and a request into a list of operations, counts the work of each, "
    "and times it with the figures of the hardware and the profile of a software stack. It works offline; models, "
    "hardware and profiles are part of the program.";

}  // namespace llmperf::cli
