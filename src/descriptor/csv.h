// Comma-separated text with positions (RFC 4180, one record per line): quoted fields, doubled quotes, blank lines and
// comment lines that start with '#'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "descriptor/reader.h"

namespace llmperf::descriptor {

struct CsvCell {
  std::string text;  // without quotes and the blanks around it
  int column = 0;    // 1-based byte at which it starts
};

class CsvReader {
 public:
  // `text`, which begins at line `first_line` of its file, must outlive the reader.
  CsvReader(std::string_view text, Problems& problems, int first_line = 1, char separator = ',');

  // Reads the next record; false at the end of the text. A record that is not CSV is reported and skipped.
  bool next();
  int line() const { return line_; }  // of the record, 1-based
  const std::vector<CsvCell>& cells() const { return cells_; }
  const std::vector<std::string>& comments() const { return comments_; }  // all read so far, without '#'

 private:
  bool read_cells(std::string_view record);

  std::string_view rest_;
  Problems* problems_;
  int line_;
  char separator_;
  std::vector<CsvCell> cells_;
  std::vector<std::string> comments_;
};

// All records of a file of at most kConfigRules.max_bytes: a sequence of sequences of scalars.
Node read_csv_file(const std::string& path, Problems& problems);

}  // namespace llmperf::descriptor
