// What a command prints, before a format is chosen: a document for people, a table for spreadsheets, JSON for scripts.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace llmperf::result {}

namespace llmperf::report {

using namespace result;  // what is printed

enum class Format { table, csv, json, md, html, trace };

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
  void add(std::string label, std::string value) { rows.emplace_back(std::move(label), std::move(value)); }
  template <class... T>
  requires(sizeof...(T) > 0) void add(std::string label, fmt::format_string<const T&...> text, const T&... values) {
    add(std::move(label), fmt::format(text, values...));
  }
};

struct Heading {
  std::string text;
  std::string aside;  // set against the right margin: "upper bound, uncalibrated"
  int level = 2;      // in Markdown; 1 is a page's title
};

struct Paragraph {
  std::string text;  // wrapped to the page width
};

// Commands, one a line, to be run as they stand.
struct Commands {
  std::vector<std::string> lines;
};

using Block = std::variant<Heading, Paragraph, Fields, Table, Commands>;
using Document = std::vector<Block>;

// Chrome/Perfetto trace events of the steps (trace.h), given the command that made them. Outlives what it was made
// from.
using Trace = std::function<std::string(const std::string& command)>;

struct Report {
  Document document;  // --format table and md
  Table csv;          // plain numbers in SI units, the unit in the column name
  std::string json;   // one object, ends in a newline
  Trace trace = {};   // empty where a report has no step
};

enum class Language { english, chinese };
struct Rendering {
  bool colour = false;  // headings bold, as on a terminal
  Language language = Language::english;
  std::string command = {};  // that made the report, as a shell reads it; may be empty
};

inline constexpr int kPageWidth = 100;

// Text of unknown origin (a name from a file, a flag) made safe for a terminal: line breaks and tabs become spaces,
// other control characters '?', invalid UTF-8 U+FFFD.
std::string single_line(std::string_view text);

std::string render_text(const Document& document, bool colour = false);
std::string render_markdown(const Document& document);
// RFC 4180; text that a spreadsheet would take for a formula is defused with an apostrophe.
std::string render_csv(const Table& table);
// The JSON with the command that made it as the last key, `command`; unchanged when that is empty.
std::string with_command(std::string json, const std::string& command);
// Throws std::logic_error for the trace of a report without one.
std::string render(const Report& report, Format format, const Rendering& rendering = {});

}  // namespace llmperf::report
