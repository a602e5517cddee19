// What a command prints, before a format is chosen: a document for people, a table for spreadsheets, JSON for scripts.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace llmperf::report {

enum class Format { table, csv, json, md };

struct Column {
  std::string header;
  bool left = false;  // numbers are aligned right
};

struct Table {
  std::string title;  // may be empty
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

// Label and value pairs, aligned below each other.
struct Fields {
  std::string title;  // may be empty
  std::vector<std::pair<std::string, std::string>> rows;
};

struct Heading {
  std::string text;
  std::string aside;  // set against the right margin: "upper bound, uncalibrated"
};

struct Paragraph {
  std::string text;  // wrapped to the page width
};

using Block = std::variant<Heading, Paragraph, Fields, Table>;
using Document = std::vector<Block>;

struct Report {
  Document document;  // --format table and md
  Table csv;          // plain numbers in SI units, the unit in the column name
  std::string json;   // one value, ends in a newline
};

inline constexpr int kPageWidth = 100;

// `colour`: headings bold, as on a terminal.
std::string render_text(const Document& document, bool colour = false);
std::string render_markdown(const Document& document);
// RFC 4180; text that a spreadsheet would take for a formula is defused with an apostrophe.
std::string render_csv(const Table& table);
std::string render(const Report& report, Format format, bool colour = false);

}  // namespace llmperf::report
