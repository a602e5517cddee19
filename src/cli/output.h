// Where results go: --format, --json, --export and --lang, the same on every command that prints some.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "report/document.h"

namespace llmperf::cli {

enum class Traced : bool { no, yes };  // whether a result has steps to trace
struct OutputFlags {
  std::string format = "table";
  bool json = false;
  std::vector<std::string> exports;
  std::string language = "en";
  Traced traced = Traced::no;
};
void add_output_flags(Command& command, OutputFlags& flags, Traced traced = Traced::no);

// Opens everything before the work starts, so that an unwritable path costs no work. A file appears under its name only
// when it is complete; one that was not committed is removed. Where reports are caught (context.caught) nothing is
// printed, and exports are written as ever.
class Output {
 public:
  // `companion`: of a file for what goes with the report, a drawing or a model; may be empty. Throws Error: bad_input
  // for a format, failed for a path that cannot be written.
  Output(const OutputFlags& flags, const Context& context, const std::string& companion = {});
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
  std::vector<report::Report>* caught_ = nullptr;
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

}  // namespace llmperf::cli
