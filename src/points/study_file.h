// A study as data: the content of a scenario file (scenarios/*.yaml). Its sections are command lines written as keys
// and values, with the words around them and what of their results is shown. Nothing here knows which commands there
// are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "descriptor/node.h"

namespace llmperf::points {

// A word of the file and where it stands, for messages about it that only running can tell.
struct Word {
  std::string text;
  int line = 0;
  int column = 0;
};

// `batch: 8`, `model: [a, b]` (joined by commas), `symbolic: true` (a switch), `symbolic: false` (left out).
struct Flag {
  enum class Kind { value, on, off };
  Word name;  // "batch": the long name, without dashes
  Kind kind = Kind::value;
  std::string value;
};

struct ShownColumn {
  Word name;            // as in the command's CSV
  std::string heading;  // empty: made from the name
};

// Rows that share all of `rows` become one, with a column for each value of `columns`; one table for each of `cells`.
struct Pivot {
  std::vector<Word> rows;
  Word columns;
  std::vector<ShownColumn> cells;
};

// Keeps the rows whose cell is one of the values.
struct Only {
  Word column;
  std::vector<std::string> values;
};

// What of a result is shown. Nothing chosen: the command's own page.
struct View {
  std::vector<Only> only;
  std::vector<ShownColumn> columns;
  std::optional<Pivot> pivot;
  std::vector<Word> parts;  // beginnings of the titles of what is kept of the command's own page
  bool of_rows() const { return !only.empty() || !columns.empty() || pivot.has_value(); }
};

struct Section {
  std::string title;
  std::vector<std::string> text;  // paragraphs
  std::string name;               // of its files
  Word command;
  std::vector<std::string> arguments;
  std::vector<Flag> flags;
  std::vector<std::vector<Flag>> rows;  // the command runs once for each, with these flags over the section's
  bool may_not_fit = false;             // then "does not fit" is an answer; of rows it always is
  View view;
  std::vector<std::string> write;  // extensions
};

struct StudyFile {
  std::string file;
  std::string title;
  std::vector<std::string> description;  // paragraphs
  std::vector<Flag> flags;               // of all sections whose command has them
  std::vector<Section> sections;
};

// Throws Error(bad_input) with every problem of the file and its position.
StudyFile parse_study(const descriptor::Document& document);
// A built-in name or a path.
StudyFile load_study(const std::string& name_or_path);

// The flags of a command line: those of `over` in place of those of `under` with the same name.
std::vector<Flag> merged(const std::vector<Flag>& under, const std::vector<Flag>& over);
// The words that a list of flags is on the command line.
std::vector<std::string> words_of(const std::vector<Flag>& flags);
// Blank lines part paragraphs; the lines of one are joined.
std::vector<std::string> paragraphs(const std::string& text);

}  // namespace llmperf::points
