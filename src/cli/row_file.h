// A file of rows that grows while a sweep runs. It has its name only when it is complete; until then the rows are in
// NAME.partial, where an interrupted sweep leaves them and --resume finds them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/partial_file.h"

namespace llmperf::cli {

enum class Resume : bool { no, yes };

class RowFile {
 public:
  // What a former run left: the finished file, or the rows of an unfinished one.
  struct Left {
    bool complete = false;
    std::string file;        // that they are in
    std::string last_line;   // the last whole one, with its end; empty: none
    std::int64_t bytes = 0;  // up to its end
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
  void write(const std::string& lines) { file_->write(lines); }
  void flush() { file_->flush(); }
  void commit() { file_->commit(); }
  // Whether the rows stay when they are not committed. Those that were left do unless this says otherwise.
  void keep(bool kept) { file_->keep(kept); }

  const std::string& partial() const { return file_->partial(); }

 private:
  Left left_;
  std::optional<PartialFile> file_;  // nothing: it is complete
};

}  // namespace llmperf::cli
