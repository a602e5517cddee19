// Where the rows of a sweep or a merge go: as lines while they come (CSV, JSON lines), or all at once at the end
// (table, Markdown, JSON, HTML).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/row_file.h"
#include "report/format/row_lines.h"
#include "report/reports.h"
#include "result/study.h"

namespace llmperf::cli {

// After add_output_flags: JSON lines are a format too, and stdout is for a table where nothing is exported.
void describe_row_outputs(Command& command, OutputFlags& flags);

class RowOutput {
 public:
  // Opens everything before the work starts. A flags.format that is empty means a table where there is no export, else
  // nothing on stdout. `shown`: indices of the columns to write; empty: all. Throws Error.
  RowOutput(const OutputFlags& flags, const Context& context, const std::vector<std::string>& columns,
            std::vector<std::size_t> shown, Resume resume);
  ~RowOutput();
  RowOutput(const RowOutput&) = delete;
  RowOutput& operator=(const RowOutput&) = delete;

  bool streams(report::LineFormat format) const;
  // Whether some output needs all rows at once.
  bool gathers() const { return gathered_.has_value(); }
  const report::RowLines& lines(report::LineFormat format) const {
    return format == report::LineFormat::csv ? csv_ : jsonl_;
  }

  // Lines of rows in order; each stream takes what is in its format. Where nobody reads stdout any more, files that
  // are not finished do not stay: nobody is told of them.
  void write(const std::string& csv, const std::string& jsonl);
  void flush();
  // Whether files that are not finished stay, for --resume or as far as they came.
  void keep_unfinished(bool kept);
  // Completes the files, and writes the report of what was gathered.
  void finish(const report::SweepResult& result);

  // What was gathered before an interruption, to stdout where that is where it goes; files stay unwritten.
  void interrupted(const report::SweepResult& result);

  // Whether --resume could go on where a run with these outputs stopped: the rows go to one file and are numbered.
  bool resumable() const { return resumable_; }
  // With Resume::yes, what a former run left of the one file of rows.
  const RowFile::Left& left() const { return left_; }
  report::LineFormat left_format() const { return streams_.front().format; }
  // The unfinished files of an interrupted run.
  std::vector<std::string> partial_files() const;

 private:
  struct Stream {
    report::LineFormat format = report::LineFormat::csv;
    std::unique_ptr<RowFile> file;  // null: stdout
  };

  report::RowLines csv_;
  report::RowLines jsonl_;
  std::vector<Stream> streams_;
  RowFile::Left left_;
  std::optional<Output> gathered_;
  bool gathered_to_stdout_ = false;
  bool resumable_ = false;
};

}  // namespace llmperf::cli
