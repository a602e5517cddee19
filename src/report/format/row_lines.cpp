#include "report/format/row_lines.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/csv.h"
#include "result/json.h"

namespace llmperf::report {
namespace {

using points::Cell;
using result::Json, result::quoted;

}  // namespace

RowLines::RowLines(LineFormat format, std::span<const std::string> columns, std::span<const std::size_t> shown)
    : format_(format), shown_(shown.begin(), shown.end()) {
  for (const std::size_t column : shown_) {
    const bool first = keys_.empty();
    keys_.push_back(fmt::format("{}{}:", first ? '{' : ',', quoted(columns[column])));
    if (format_ == LineFormat::csv) {
      if (!first) header_ += ',';
      append_csv_cell(header_, columns[column]);
    }
  }
  if (format_ == LineFormat::csv) header_ += '\n';
}

void RowLines::append(std::string& out, const points::Row& row) const {
  const bool json = format_ == LineFormat::jsonl;
  for (std::size_t i = 0; i < shown_.size(); ++i) {
    const Cell& cell = row[shown_[i]];
    if (json) {
      out += keys_[i];
    } else if (i > 0) {
      out += ',';
    }
    switch (cell.kind) {
      case Cell::Kind::none: out += json ? "null" : ""; break;
      case Cell::Kind::truth: out += cell.number != 0 ? "true" : "false"; break;
      case Cell::Kind::number:
        if (std::isfinite(cell.number)) {
          append_shortest(out, cell.number);
        } else if (json) {
          out += "null";
        }
        break;
      case Cell::Kind::text:
        if (json) {
          out += quoted(cell.text);
        } else {
          append_csv_cell(out, cell.text);
        }
    }
  }
  out += json ? "}\n" : "\n";
}

namespace {

Json parse_object(const std::string& text, const std::string& file, int line) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_object()) return json;
  throw Error(ErrorKind::bad_input, {{.where = {file, line, 0}, .message = "no JSON object", .hint = ""}});
}

std::vector<std::string> csv_cells(const std::string& text, const std::string& file, int line) {
  descriptor::Problems problems(file);
  descriptor::CsvReader reader(text, problems, line);
  std::vector<std::string> cells;
  if (reader.next()) {
    for (const descriptor::CsvCell& cell : reader.cells()) cells.push_back(cell.text);
  }
  problems.throw_if_any();
  return cells;
}

// Without the apostrophe that keeps spreadsheets from taking the text for a formula.
std::string_view unguarded(std::string_view text) {
  const std::string_view rest = text.substr(text.starts_with('\'') ? 1 : 0);
  std::string again, as_it_is;  // both in quotes where a comma wants them
  append_csv_cell(again, rest);
  append_csv_cell(as_it_is, text);
  return again == as_it_is ? rest : text;
}

void add_text(points::Row& row, std::string_view name, const std::string& text) {
  if (text.empty()) {
    row.add_none(name);
  } else if (text == "true" || text == "false") {
    row.add(name, text == "true");
  } else if (const auto number = parse_double(text)) {
    row.add(name, *number);
  } else {
    row.add(name, unguarded(text));
  }
}

}  // namespace

std::vector<std::string> parse_header(LineFormat format, const std::string& text, const std::string& file, int line) {
  if (format == LineFormat::csv) return csv_cells(text, file, line);
  std::vector<std::string> names;
  const Json object = parse_object(text, file, line);
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

void parse_line(LineFormat format, std::span<const std::string> columns, const std::string& text,
                const std::string& file, int line, points::Row& row) {
  row.clear();
  const auto wrong = [&](std::size_t cells) {
    return Error(ErrorKind::bad_input,
                 {{.where = {file, line, 0},
                   .message = fmt::format("{} cells, and the first line has {}", cells, columns.size()),
                   .hint = ""}});
  };
  if (format == LineFormat::csv) {
    const std::vector<std::string> cells = csv_cells(text, file, line);
    if (cells.size() != columns.size()) throw wrong(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) add_text(row, columns[i], cells[i]);
    return;
  }
  const Json object = parse_object(text, file, line);
  if (object.size() != columns.size()) throw wrong(object.size());
  std::size_t i = 0;
  for (const auto& [key, value] : object.items()) {
    if (key != columns[i]) throw wrong(i);
    const std::string& name = columns[i++];
    if (value.is_number()) {
      row.add(name, value.get<double>());
    } else if (value.is_boolean()) {
      row.add(name, value.get<bool>());
    } else if (value.is_string()) {
      row.add(name, value.get<std::string>());
    } else {
      row.add_none(name);
    }
  }
}

}  // namespace llmperf::report
