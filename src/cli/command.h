// What every subcommand shares: how it registers itself, and where its output goes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "report/document.h"

namespace CLI {
class App;
}

namespace llmperf::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInfeasible = 3;
inline constexpr int kExitThreshold = 4;
inline constexpr int kExitInterrupted = 130;  // of an action; the program's is 128 and the signal's number

// A subcommand adds itself to the root command and, when chosen, leaves its work in `action`, which returns the exit
// status.
using Action = std::function<int()>;
void add_calibrate(CLI::App& root, Action& action);
void add_compare(CLI::App& root, Action& action);
void add_completion(CLI::App& root, Action& action);
void add_estimate(CLI::App& root, Action& action);
void add_explain(CLI::App& root, Action& action);
void add_graph(CLI::App& root, Action& action);
void add_import(CLI::App& root, Action& action);
void add_limits(CLI::App& root, Action& action);
void add_list(CLI::App& root, Action& action);
void add_map(CLI::App& root, Action& action);
void add_map_collective(CLI::App& root, Action& action);
void add_man(CLI::App& root, Action& action);
void add_merge(CLI::App& root, Action& action);
void add_parallel(CLI::App& root, Action& action);
void add_replay(CLI::App& root, Action& action);
void add_run(CLI::App& root, Action& action);
void add_report(CLI::App& root, Action& action);
void add_show(CLI::App& root, Action& action);
void add_sweep(CLI::App& root, Action& action);
void add_validate(CLI::App& root, Action& action);

// --format, --json, --export and --lang, the same on every command that prints results.
enum class Traced : bool { no, yes };  // whether its result has steps to trace
struct OutputFlags {
  std::string format = "table";
  bool json = false;
  std::vector<std::string> exports;
  std::string language = "en";
  Traced traced = Traced::no;
};
void add_output_flags(CLI::App& command, OutputFlags& flags, Traced traced = Traced::no);

// While one lives, reports are kept in it instead of printed: those of a study's sections. Exports are written as ever.
class CapturedReports {
 public:
  CapturedReports();
  ~CapturedReports();
  CapturedReports(const CapturedReports&) = delete;
  CapturedReports& operator=(const CapturedReports&) = delete;
  std::vector<report::Report> reports;

 private:
  CapturedReports* outer_;
};

// Opens everything before the work starts, so that an unwritable path costs no work. A file appears under its name only
// when it is complete; one that was not committed is removed.
class Output {
 public:
  // `companion`: of a file for what goes with the report, a drawing or a model; may be empty. Throws Error: bad_input
  // for a format, failed for a path that cannot be written.
  explicit Output(const OutputFlags& flags, const std::string& companion = {});
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Whether the report is written in that format anywhere; HTML is made from the JSON.
  bool wants(report::Format format) const;
  // Writes the report to stdout in the format asked for and to every export, and the companion to its file. Throws
  // Error(failed) on a write error.
  void write(const report::Report& report, const std::string& companion = {});
  // … to the exports alone, to stdout alone.
  void write_files(const report::Report& report);
  void print(const report::Report& report);

 private:
  struct File;
  report::Format format_;
  report::Rendering rendering_;
  std::vector<std::unique_ptr<File>> files_;
  std::unique_ptr<File> companion_;
};

// Thrown where nobody reads the pipe any more that stdout is, which is no error: run() ends the program as SIGPIPE ends
// others, without a word.
struct ClosedPipe {};

// Throws where nothing can be written: ClosedPipe, or Error(failed) when stdout is closed.
void check_stdout();
// Throws ClosedPipe, or Error(failed) on a write error such as that of a full disk.
void write_stdout(const std::string& text);

// Parses the command line, runs the subcommand and maps errors to messages and exit status.
int run(int argc, const char* const* argv);

}  // namespace llmperf::cli
