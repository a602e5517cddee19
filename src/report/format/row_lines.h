// Rows as lines of CSV and of JSON (one object a line), appended to a buffer: what a sweep writes a million times.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "points/row.h"

namespace llmperf::report {

enum class LineFormat { csv, jsonl };

class RowLines {
 public:
  // `shown`: indices of the columns to write, in order.
  RowLines(LineFormat format, std::span<const std::string> columns, std::span<const std::size_t> shown);
  // The first line of CSV; nothing for JSON lines.
  const std::string& header() const { return header_; }
  void append(std::string& out, const points::Row& row) const;

 private:
  LineFormat format_;
  std::vector<std::size_t> shown_;
  std::vector<std::string> keys_;  // JSON: {"point": and ,"model":
  std::string header_;
};

// The cells of a line, by the names of `columns` (CSV) or of its keys. Throws Error(bad_input) for what is no row.
// `file` and `line` say where it stands.
void parse_line(LineFormat format, std::span<const std::string> columns, const std::string& text,
                const std::string& file, int line, points::Row& row);
// The names in a header of CSV, or the keys of a line of JSON.
std::vector<std::string> parse_header(LineFormat format, const std::string& text, const std::string& file,
                                      int line = 1);

// ---- Cells of comma-separated text.

// Quoted as RFC 4180 says where it must be; on one line; what a spreadsheet would take for a formula behind an
// apostrophe.
void append_csv_cell(std::string& out, std::string_view text);

}  // namespace llmperf::report
