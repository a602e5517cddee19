// The rows of a sweep or a merge: which are kept, and where they go, as lines while they come (CSV, JSON lines) or all
// at once at the end (table, Markdown, JSON, HTML).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/files.h"
#include "cli/output.h"
#include "points/selection.h"
#include "report/format/row_lines.h"
#include "report/reports.h"
#include "result/study.h"

namespace llmperf::cli {

// ---- Which rows are kept, and which columns are written.

void add_selection_flags(Command& command, points::RowQuery& query);

// ---- A file of rows, which grows while a sweep runs.

enum class Resume : std::uint8_t { never, no, yes };  // never: the command cannot

// It has its name only when it is complete; until then the rows are in NAME.partial, where an interrupted sweep leaves
// them and --resume finds them. What can go on has a check behind each row there, of all rows up to it.
class RowFile {
 public:
  // What a former run left: the finished file, or the rows of an unfinished one.
  struct Left {
    bool complete = false;
    std::string file;          // that they are in
    std::string last_line;     // the last whole one, with its end; empty: none
    std::int64_t bytes = 0;    // up to its end
    std::int64_t damaged = 0;  // the line behind it, where that is not what was written; 0: none
    std::uint64_t check = 0;
    std::int64_t rows = 0;
    std::int64_t failed = 0;  // of these, with a reason in their last column, `error`
  };

  // Starts anew, or with Resume::yes behind what was left. Throws Error(failed) for what cannot be written or read,
  // Error(bad_input) where another process is writing it, for left rows that would be lost, and for a header of theirs
  // that is not `header`.
  RowFile(const std::string& path, const std::string& header, Resume resume);

  // With Resume::yes. Of a file that is complete nothing more can be written.
  const Left& left() const { return left_; }
  // Throw Error(failed).
  void write(const std::string& lines);
  void flush() { file_->flush(); }
  void commit();
  // Whether the rows stay when they are not committed. Those that were left do unless this says otherwise.
  void keep(bool kept) { file_->keep(kept); }

  const std::string& partial() const { return file_->partial(); }

 private:
  std::string header_;
  bool checked_ = false;
  Left left_;
  std::optional<PartialFile> file_;  // nothing: it is complete
};

// ---- All outputs.

// After those of output: JSON lines are a format too, and stdout is for a table where nothing is exported.
void add_row_outputs(Command& command, OutputFlags& flags);

// Rows on their way: those that are streamed as lines, those that are kept or gathered as rows.
struct RowBatch {
  explicit RowBatch(points::Selection empty) : kept(std::move(empty)) {}
  std::string csv;
  std::string jsonl;
  points::Selection kept;
};

class RowOutput {
 public:
  // Opens everything before the work starts. A flags.format that is empty means a table where there is no export, else
  // nothing on stdout. The choice must outlive it. Throws Error.
  RowOutput(const OutputFlags& flags, const Context& context, const std::vector<std::string>& columns,
            const points::RowChoice& choice, Resume resume);
  ~RowOutput();
  RowOutput(const RowOutput&) = delete;
  RowOutput& operator=(const RowOutput&) = delete;

  // Whether some output needs all rows at once.
  bool gathers() const { return gathered_.has_value(); }
  const report::RowLines& lines(report::LineFormat format) const {
    return format == report::LineFormat::csv ? csv_ : jsonl_;
  }
  // Rows have a last cell more: their line in that format, which goes on as it came where nothing about it changes.
  void rows_have_lines(report::LineFormat format) { line_format_ = format; }

  // Adds the row to the batch if it is chosen. Callable from several threads, each with a batch of its own.
  void add(const points::Row& row, RowBatch& batch) const;
  // Writes what the batch streams, and empties that. Where nobody reads stdout any more, files that are not finished do
  // not stay: nobody is told of them.
  void write(RowBatch& batch);
  void flush();
  // Whether files that are not finished stay, for --resume or as far as they came.
  void keep_unfinished(bool kept);
  // Completes the files, and writes the report of what was gathered: the batch's rows become the result's.
  void finish(report::SweepResult& result, RowBatch& batch);

  // What was gathered before an interruption, to stdout where that is where it goes; files stay unwritten.
  void interrupted(report::SweepResult& result, RowBatch& batch);

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
  void append(const points::Row& row, RowBatch& batch) const;

  const points::RowChoice& choice_;
  report::RowLines csv_;
  report::RowLines jsonl_;
  std::optional<report::LineFormat> line_format_;
  std::vector<Stream> streams_;
  RowFile::Left left_;
  std::optional<Output> gathered_;
  bool gathered_to_stdout_ = false;
  bool resumable_ = false;
};

}  // namespace llmperf::cli
