#include "report/pages/study_view.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "report/quantity.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"
#include "result/study.h"

namespace llmperf::report {
namespace {

using points::ShownColumn;
using points::View;
using points::Word;

std::vector<std::string> headers(const Table& table) {
  std::vector<std::string> names;
  for (const Column& column : table.columns) names.push_back(column.header);
  return names;
}

// Where a column stands; throws for one that is not there, at the place of the name.
class Columns {
 public:
  Columns(const Table& table, const std::string& file) : names_(headers(table)), file_(file) {}
  std::size_t operator()(const Word& word) const {
    const auto found = std::find(names_.begin(), names_.end(), word.text);
    if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
    throw Error(ErrorKind::bad_input, {{.where = {file_, word.line, word.column},
                                        .message = "the result has no column " + quote(word.text),
                                        .hint = name_hint(word.text, names_)}});
  }

 private:
  std::vector<std::string> names_;
  const std::string& file_;
};

const std::string& cell(const std::vector<std::string>& row, std::size_t column) {
  static const std::string kNone;
  return column < row.size() ? row[column] : kNone;
}

// The columns that are kept, in the order of the view; all where it names none.
std::vector<Word> kept_columns(const View& view, const Table& rows) {
  std::vector<Word> words;
  for (const ShownColumn& column : view.columns) words.push_back(column.name);
  if (view.pivot) {
    words = view.pivot->rows;
    words.push_back(view.pivot->columns);
    for (const ShownColumn& column : view.pivot->cells) words.push_back(column.name);
  }
  if (!words.empty()) return words;
  for (const std::string& name : headers(rows)) words.push_back({name, 0, 0});
  return words;
}

// Text to the left, numbers to the right.
void align(Table& table) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    table.columns[i].left = std::any_of(table.rows.begin(), table.rows.end(), [i](const auto& row) {
      return !row[i].empty() && row[i] != "-" && row[i].find_first_of("0123456789") != 0 && !row[i].starts_with('-');
    });
  }
}

std::string shown_heading(const ShownColumn& column) {
  return column.heading.empty() ? label_of(column.name.text) : column.heading;
}

Table plain_table(const View& view, const Table& rows) {
  Table table;
  for (std::size_t i = 0; i < rows.columns.size(); ++i) {
    table.columns.push_back({view.columns.empty() ? label_of(rows.columns[i].header) : shown_heading(view.columns[i])});
  }
  for (const auto& row : rows.rows) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < rows.columns.size(); ++i)
      cells.push_back(readable(rows.columns[i].header, cell(row, i)));
    table.rows.push_back(std::move(cells));
  }
  align(table);
  return table;
}

// Values in order of appearance, and their numbers.
template <class Key>
struct Appearance {
  std::vector<Key> keys;
  std::map<Key, std::size_t> index;
  std::size_t operator()(const Key& key) {
    const auto [at, fresh] = index.emplace(key, keys.size());
    if (fresh) keys.push_back(key);
    return at->second;
  }
};

Table pivot_table(const points::Pivot& pivot, const ShownColumn& shown, const Table& rows, const std::string& file) {
  const Columns columns(rows, file);
  const std::size_t across = columns(pivot.columns);
  const std::size_t value = columns(shown.name);
  Appearance<std::vector<std::string>> down;
  Appearance<std::string> over;
  std::map<std::pair<std::size_t, std::size_t>, std::string> cells;
  for (const auto& row : rows.rows) {
    std::vector<std::string> key;
    for (const Word& word : pivot.rows) key.push_back(readable(word.text, cell(row, columns(word))));
    const std::string head = readable(pivot.columns.text, cell(row, across));
    if (cells.emplace(std::pair(down(key), over(head)), readable(shown.name.text, cell(row, value))).second) continue;
    throw Error(ErrorKind::bad_input, {{.where = {file, pivot.columns.line, pivot.columns.column},
                                        .message = fmt::format("'pivot' finds two values for {} and {} {}",
                                                               join(key, ", "), pivot.columns.text, head),
                                        .hint = "name what tells them apart in 'rows', or narrow them with 'only'"}});
  }
  Table table = titled(fmt::format("{} by {}", shown_heading(shown), label_of(pivot.columns.text)), "");
  for (const Word& word : pivot.rows) table.columns.push_back({label_of(word.text)});
  for (const std::string& head : over.keys) table.columns.push_back({head});
  for (std::size_t i = 0; i < down.keys.size(); ++i) {
    std::vector<std::string> line = down.keys[i];
    for (std::size_t j = 0; j < over.keys.size(); ++j) {
      const auto found = cells.find({i, j});
      line.push_back(found == cells.end() ? "" : found->second);
    }
    table.rows.push_back(std::move(line));
  }
  align(table);
  return table;
}

const std::string* title_of(const Block& block) {
  if (const auto* table = std::get_if<Table>(&block)) return &table->title;
  if (const auto* fields = std::get_if<Fields>(&block)) return &fields->title;
  if (const auto* heading = std::get_if<Heading>(&block)) return &heading->text;
  return nullptr;
}

}  // namespace

Table joined(const std::vector<Table>& tables) {
  Table all;
  Appearance<std::string> names;
  for (const Table& table : tables) {
    std::vector<std::size_t> places;
    for (const Column& column : table.columns) places.push_back(names(column.header));
    for (const auto& row : table.rows) {
      std::vector<std::string> cells(names.keys.size());
      for (std::size_t i = 0; i < std::min(row.size(), places.size()); ++i) cells[places[i]] = row[i];
      all.rows.push_back(std::move(cells));
    }
  }
  for (const std::string& name : names.keys) all.columns.push_back({name});
  for (auto& row : all.rows) row.resize(names.keys.size());
  return all;
}

Table chosen_rows(const View& view, const Table& rows, const std::string& file) {
  const Columns columns(rows, file);
  std::vector<std::size_t> places;
  Table chosen;
  for (const Word& word : kept_columns(view, rows)) {
    chosen.columns.push_back({word.text});
    places.push_back(columns(word));
  }
  for (const auto& row : rows.rows) {
    const bool wanted = std::all_of(view.only.begin(), view.only.end(), [&](const points::Only& only) {
      return std::find(only.values.begin(), only.values.end(), cell(row, columns(only.column))) != only.values.end();
    });
    if (!wanted) continue;
    std::vector<std::string> cells;
    for (const std::size_t place : places) cells.push_back(cell(row, place));
    chosen.rows.push_back(std::move(cells));
  }
  if (!chosen.rows.empty() || view.only.empty() || rows.rows.empty()) return chosen;
  const Word& first = view.only.front().column;
  throw Error(ErrorKind::bad_input,
              {{.where = {file, first.line, first.column}, .message = "no row is left by 'only'", .hint = {}}});
}

Document shown_rows(const View& view, const Table& rows, const std::string& file) {
  if (!view.pivot) return {plain_table(view, rows)};
  Document page;
  for (const ShownColumn& shown : view.pivot->cells) page.push_back(pivot_table(*view.pivot, shown, rows, file));
  return page;
}

Document chosen_parts(const std::vector<Word>& parts, const Document& page, const std::string& file) {
  if (parts.empty()) return page;
  Document chosen;
  std::vector<std::string> titles;
  for (const Block& block : page) {
    const std::string* title = title_of(block);
    if (title != nullptr && !title->empty()) titles.push_back(*title);
  }
  for (const Word& part : parts) {
    const std::size_t before = chosen.size();
    bool inside = false;
    for (const Block& block : page) {
      const std::string* title = title_of(block);
      if (title != nullptr && !title->empty()) inside = title->starts_with(part.text);
      if (inside) chosen.push_back(block);
    }
    if (chosen.size() > before) continue;
    throw Error(ErrorKind::bad_input, {{.where = {file, part.line, part.column},
                                        .message = "no part of the result starts with " + quote(part.text),
                                        .hint = name_hint(part.text, titles)}});
  }
  return chosen;
}

// ---- `llmperf run`, `list scenarios` and `show scenario`.

namespace {

constexpr std::size_t kCommandsShown = 3;  // of rows; the others differ in a flag

void append(Document& page, const std::vector<std::string>& paragraphs) {
  for (const std::string& text : paragraphs) page.push_back(Paragraph{text});
}

Commands shown_commands(const std::vector<std::string>& commands) {
  Commands shown{commands};
  if (shown.lines.size() <= kCommandsShown + 1) return shown;
  shown.lines.resize(kCommandsShown);
  shown.lines.push_back(fmt::format("# and {} more", commands.size() - kCommandsShown));
  return shown;
}

// What a CSV cell is.
result::Value value_of(const std::string& cell) {
  if (cell.empty()) return std::monostate();
  if (cell == "true" || cell == "false") return cell == "true";
  if (const auto number = parse_double(cell)) return *number;
  return cell;
}

}  // namespace

Document section_page(const SectionResult& result) {
  Document page{Heading{result.section->title, ""}};
  append(page, result.section->text);
  for (Block block : result.page) {
    if (auto* heading = std::get_if<Heading>(&block)) heading->level = 3;
    page.push_back(std::move(block));
  }
  append(page, result.notes);
  page.push_back(shown_commands(result.commands));
  return page;
}

Report study_report(const points::StudyFile& study, const std::vector<SectionResult>& results) {
  Report report;
  report.document.push_back(Heading{study.title, "", 1});
  append(report.document, study.description);
  StudyRun run{&study, {}};
  for (const SectionResult& result : results) {
    for (Block& block : section_page(result)) report.document.push_back(std::move(block));
    StudySection section{.name = result.section->name,
                         .title = result.section->title,
                         .text = result.section->text,
                         .commands = result.commands,
                         .status = result.status,
                         .notes = result.notes,
                         .columns = {},
                         .rows = {}};
    for (const Column& column : result.rows.columns) section.columns.push_back(column.header);
    for (const auto& row : result.rows.rows) {
      auto& cells = section.rows.emplace_back();
      for (const std::string& cell : row) cells.push_back(value_of(cell));
    }
    run.sections.push_back(std::move(section));
  }
  if (results.size() == 1) report.csv = results.front().rows;
  report.json = result::document("llmperf.study", run);
  return report;
}

Report study_list_report(const StudyList& list) {
  const Table csv = csv_of(list.studies);
  return {{Table{"", {{"scenario", true}, {"sections"}, {"title", true}}, csv.rows}},
          csv,
          result::document("llmperf.studies", list)};
}

Report study_summary_report(const StudySummary& summary) {
  Report report;
  report.document.push_back(Heading{summary.study.title, summary.name});
  append(report.document, summary.study.description);
  report.csv = csv_of(summary.study.sections);
  report.document.push_back(Table{"Sections", {{"name", true}, {"title", true}, {"command", true}}, report.csv.rows});
  report.document.push_back(Commands{{"llmperf run " + summary.name}});
  report.json = result::document("llmperf.study_summary", summary);
  return report;
}

}  // namespace llmperf::report
