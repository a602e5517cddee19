// Where results go: --format, --json, --export and --lang, the same on every command that prints some.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "report/document.h"

namespace llmperf::cli {

enum class Traced : bool { no, yes };  // whether a result has steps to trace
struct OutputFlags {
  std::string format = "table";
  bool json = false;
  std::vector<std::string> exports = {};
  report::Language language = report::Language::english;
  Traced traced = Traced::no;
};
void add_language(Command& command, report::Language& language, const char* about);
void add_output_flags(Command& command, OutputFlags& flags);

// The format that a flag names, and the one that an export's extension asks for: .json .csv .md .html .trace.json.
report::Format format_value(std::string_view flag, std::string_view text);
report::Format export_format(std::string_view path);

// Opens everything before the work starts, so that an unwritable path costs no work. A file appears under its name only
// when it is complete; one that was not committed is removed. Where reports are caught (context.caught) nothing is
// printed, and exports are written as ever.
class Output {
 public:
  // Throws Error: bad_input for a format, failed for a path that cannot be written.
  Output(const OutputFlags& flags, const Context& context);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Whether the report is written in that format anywhere; HTML is made from the JSON.
  bool wants(report::Format format) const;
  // Writes the report to every export, and to stdout in the format asked for. Throws Error(failed) on a write error.
  void write(const report::Report& report);
  // … to the exports alone, to stdout alone.
  void write_files(const report::Report& report);
  void print(const report::Report& report);

 private:
  struct File;
  report::Format format_;
  report::Rendering rendering_;
  std::vector<report::Report>* caught_ = nullptr;
  std::vector<std::unique_ptr<File>> files_;
};

// What a command answers.
struct Answer {
  std::optional<report::Report> report = {};  // none: something else was written
  std::optional<Error> error = {};            // told when the report is written: it does not fit
  std::vector<std::string> exceeded = {};     // what is beyond a stated threshold
  int status = kExitDone;
};
// Asks for the answer with the outputs open (context.output), and writes it.
int write_answer(const OutputFlags& flags, Context context, const std::function<Answer(const Context&)>& ask);
// Makes the command one that answers; what it asks is given the flags that are returned.
template <class Flags>
Flags& answers(Command& command, Answer (*ask)(const Flags&, const Context&), Traced traced = Traced::no) {
  auto flags = std::make_shared<Flags>();
  auto output = std::make_shared<OutputFlags>(OutputFlags{.traced = traced});
  command.output = output;
  command.action = [flags, output, ask](const Context& context) {
    return write_answer(*output, context, [&](const Context& within) { return ask(*flags, within); });
  };
  return *flags;
}

// Thrown where nobody reads the pipe any more that stdout is, which is no error: run() ends the program as SIGPIPE ends
// others, without a word.
struct ClosedPipe {};

// Throws where nothing can be written: ClosedPipe, or Error(failed) when stdout is closed.
void check_stdout();
// Throws ClosedPipe, or Error(failed) on a write error such as that of a full disk.
void write_stdout(const std::string& text);

}  // namespace llmperf::cli
