#include "report/html_study.h"

#include <algorithm>

#include "report/html_generic.h"

namespace llmperf::report {
namespace {

constexpr std::size_t kMostRows = 10'000;  // of a table, as in html_generic.cpp
constexpr std::size_t kMostCommands = 4;   // the others differ in a flag

bool all_texts(const Json* list) {
  return list != nullptr && list->is_array() &&
         std::all_of(list->begin(), list->end(), [](const Json& item) { return item.is_string(); });
}

// The member's texts as paragraphs, and the member as done.
void write_paragraphs(HtmlWriter& page, const Json& object, const char* key, std::set<std::string>& done) {
  const Json* texts = find(object, key);
  if (!all_texts(texts)) return;
  done.insert(key);
  for (const Json& text : *texts) page.paragraph(text.get<std::string>());
}

void write_commands(HtmlWriter& page, const Json& section, const Labels& labels, std::set<std::string>& done) {
  const Json* commands = find(section, "commands");
  if (!all_texts(commands)) return;
  done.insert("commands");
  const std::size_t shown = std::min(commands->size(), kMostCommands);
  for (std::size_t i = 0; i < shown; ++i) page.command((*commands)[i].get<std::string>());
  if (shown < commands->size()) {
    const std::string count = labels.text("first_rows", {std::to_string(shown), std::to_string(commands->size())});
    page.paragraph(labels.text("one_phase", {labels.title("commands"), count}));
  }
}

bool is_row(const Json& row) { return row.is_array() && std::all_of(row.begin(), row.end(), is_scalar); }

// `columns` name the cells of each of `rows`. Columns that no row fills are left out.
void write_rows(HtmlWriter& page, const Json& section, const std::string& title, const Labels& labels,
                std::set<std::string>& done) {
  const Json* columns = find(section, "columns");
  const Json* rows = find(section, "rows");
  if (!all_texts(columns) || rows == nullptr || !rows->is_array()) return;
  if (!std::all_of(rows->begin(), rows->end(), is_row)) return;
  done.insert({"columns", "rows"});
  HtmlTable table{find_text(section, "name"), title, {}, {}};
  table.rows.resize(std::min(rows->size(), kMostRows));
  for (std::size_t column = 0; column < columns->size(); ++column) {
    const std::string key = (*columns)[column].get<std::string>();
    const Json* first = nullptr;
    for (const Json& row : *rows) {
      if (column < row.size() && !row[column].is_null()) first = first == nullptr ? &row[column] : first;
    }
    if (first == nullptr) continue;
    table.columns.push_back({key, labels.key(key), first->is_number()});
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      const Json& row = (*rows)[i];
      const bool filled = column < row.size() && !row[column].is_null();
      // What a row of results counts in bytes lies in memory.
      table.rows[i].push_back(filled ? shown(row[column], key, "memory", labels) : HtmlCell{"-", {}});
    }
  }
  if (rows->size() > kMostRows) {
    table.caption += ": " + labels.text("first_rows", {std::to_string(kMostRows), std::to_string(rows->size())});
  }
  page.table(table);
}

void write_section(HtmlWriter& page, const Json& section, std::size_t index, const Labels& labels) {
  std::string title = find_text(section, "title");
  if (title.empty()) title = labels.title("sections") + " " + std::to_string(index + 1);
  std::set<std::string> done = {"name", "title"};
  page.open_section("section-" + std::to_string(index + 1), title, 2);
  write_paragraphs(page, section, "text", done);
  write_commands(page, section, labels, done);
  if (find_number(section, "status") == 0.0) done.insert("status");  // any other is among the fields
  write_rows(page, section, title, labels, done);
  write_paragraphs(page, section, "notes", done);
  write_object(page, section, "sections", 3, labels, done);
  page.close_section();
}

}  // namespace

std::set<std::string> write_study_sections(HtmlWriter& page, const Json& document, const Labels& labels) {
  std::set<std::string> done = {"title"};
  write_paragraphs(page, document, "description", done);
  const Json* sections = find(document, "sections");
  if (sections == nullptr || !is_list_of_objects(*sections)) return done;
  done.insert("sections");
  for (std::size_t i = 0; i < sections->size(); ++i) write_section(page, (*sections)[i], i, labels);
  return done;
}

}  // namespace llmperf::report
