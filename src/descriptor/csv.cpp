#include "descriptor/csv.h"

#include <algorithm>

#include "base/text.h"

namespace llmperf::descriptor {

CsvReader::CsvReader(std::string_view text, Problems& problems, int first_line, char separator)
    : rest_(text), problems_(&problems), line_(first_line - 1), separator_(separator) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
}

bool CsvReader::next() {
  while (!rest_.empty()) {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view record = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    if (record.ends_with('\r')) record.remove_suffix(1);
    const std::string_view content = trim(record);
    if (content.empty()) continue;
    if (content.front() == '#') {
      comments_.emplace_back(trim(content.substr(1)));
      continue;
    }
    if (read_cells(record)) return true;
  }
  return false;
}

bool CsvReader::read_cells(std::string_view record) {
  cells_.clear();
  std::size_t at = 0;
  for (;;) {
    while (at < record.size() && record[at] != separator_ && (record[at] == ' ' || record[at] == '\t')) ++at;
    CsvCell cell{{}, static_cast<int>(at) + 1};
    if (at < record.size() && record[at] == '"') {
      bool closed = false;
      for (++at; at < record.size() && !closed; ++at) {
        if (record[at] != '"') {
          cell.text += record[at];
        } else if (at + 1 < record.size() && record[at + 1] == '"') {
          cell.text += record[at++];
        } else {
          closed = true;
        }
      }
      if (!closed) {
        problems_->add(line_, cell.column, "a quoted field does not end on its line");
        return false;
      }
      const std::size_t comma = std::min(record.find(separator_, at), record.size());
      if (!trim(record.substr(at, comma - at)).empty()) {
        problems_->add(line_, static_cast<int>(at) + 1, "text behind a quoted field", "a quote inside one is doubled");
        return false;
      }
      at = comma;
    } else {
      const std::size_t comma = std::min(record.find(separator_, at), record.size());
      cell.text = trim(record.substr(at, comma - at));
      at = comma;
    }
    cells_.push_back(std::move(cell));
    if (at >= record.size()) return true;
    ++at;  // the separator
  }
}

Node read_csv_file(const std::string& path, Problems& problems) {
  const std::string text = read_text_file(path, kConfigRules.max_bytes);
  CsvReader csv(text, problems);
  const auto node = [&](Node::Kind kind, int column) {
    Node made;
    made.kind = kind;
    made.line = std::max(csv.line(), 1);
    made.column = column;
    return made;
  };
  Node records = node(Node::Kind::sequence, 1);
  while (csv.next()) {
    Node& record = records.items.emplace_back(node(Node::Kind::sequence, 1));
    for (const CsvCell& cell : csv.cells()) {
      record.items.push_back(node(Node::Kind::scalar, cell.column));
      record.items.back().scalar = cell.text;
    }
  }
  return records;
}

}  // namespace llmperf::descriptor
