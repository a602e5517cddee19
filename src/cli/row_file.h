// A file of rows that grows while a sweep runs. It has its name only when it is complete; until then the rows are in
// NAME.partial, where an interrupted sweep leaves them and --resume finds them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "report/row_lines.h"

namespace llmperf::cli {

class RowFile {
 public:
  // What a former run left: the finished file, or the rows of an unfinished one.
  struct Left {
    bool complete = false;
    std::string last_line;   // the last whole one, with its end; empty: none
    std::int64_t bytes = 0;  // up to its end
    std::int64_t rows = 0;
    std::int64_t failed = 0;  // of these, with a reason in their last column, `error`
  };
  // Throws Error(failed) where it cannot be read; Error(bad_input) for a header that is not `header`.
  static Left left(const std::string& path, const std::string& header);

  // Starts anew, or behind what was left. Throws Error(failed) for what cannot be written, Error(bad_input) when
  // there are rows of an interrupted sweep that would be lost.
  RowFile(std::string path, const std::string& header, const std::optional<Left>& left);
  ~RowFile();  // removes what was not committed, unless it is kept or was there before
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;

  // Throw Error(failed).
  void write(const std::string& lines);
  void flush();
  void commit();
  void keep() { keep_ = true; }

  const std::string& path() const { return path_; }
  const std::string& partial() const { return partial_; }

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  std::string target_;  // what path_ is a link to, mostly itself
  std::string partial_;
  std::FILE* stream_ = nullptr;
  bool keep_ = false;
};

}  // namespace llmperf::cli
