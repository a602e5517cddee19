#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>

#include "base/number.h"
#include "report/document.h"
#include "report/format/row_lines.h"
#include "report/rows.h"

namespace llmperf::report {
namespace {

// Whether the text can stand as it is: a letter or digit first, nothing that needs a look.
bool is_plain(std::string_view text) {
  constexpr auto kPlain = [] {
    std::array<bool, 256> plain = {};
    for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. :/")) {
      plain[static_cast<unsigned char>(c)] = true;
    }
    return plain;
  }();
  const auto plain = [&](char c) { return kPlain[static_cast<unsigned char>(c)]; };
  return text.empty() || (text.front() != '-' && text.front() != ' ' && std::all_of(text.begin(), text.end(), plain));
}

// Whether a spreadsheet may take it for a formula: blanks in front may be dropped, and where one writes in full-width
// characters those of the signs count as well.
bool like_a_formula(std::string_view text) {
  constexpr std::string_view kSigns[] = {"=", "+", "-", "@", "＝", "＋", "－", "＠"};
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return false;
  const auto begins_with = [&](std::string_view sign) { return text.substr(first).starts_with(sign); };
  return std::any_of(std::begin(kSigns), std::end(kSigns), begins_with) && !parse_double(text);
}

}  // namespace

void append_csv_cell(std::string& out, std::string_view text) {
  if (is_plain(text)) {
    out += text;
    return;
  }
  std::string value = single_line(text);  // CSV is printed to terminals too
  if (like_a_formula(value)) value.insert(value.begin(), '\'');
  if (value.find_first_of(",\"") == std::string::npos) {
    out += value;
    return;
  }
  out += '"';
  for (const char c : value) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

std::string render_csv(const Table& table) {
  std::string out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (i > 0) out += ',';
    append_csv_cell(out, table.columns[i].header);
  }
  out += "\n";
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) out += ',';
      append_csv_cell(out, row[i]);
    }
    out += "\n";
  }
  return out;
}

RowTable::RowTable(const Type& type, std::string_view keys) : type_(type) {
  fill_row(row_, type_, nullptr);
  const auto column = [&](std::string_view key) {
    for (std::size_t i = 0; i < row_.size(); ++i) {
      if (row_.name(i) == key) return i;
    }
    throw std::logic_error("no such column: " + std::string(key));
  };
  for (const std::string_view key : listed(keys)) shown_.push_back(column(key));
  if (keys.empty()) {
    for (std::size_t i = 0; i < row_.size(); ++i) shown_.push_back(i);
  }
  for (const std::size_t i : shown_) table_.columns.push_back({std::string(row_.name(i))});
}

void RowTable::add(const void* object) {
  row_.clear();
  fill_row(row_, type_, object);
  std::vector<std::string>& cells = table_.rows.emplace_back();
  for (const std::size_t i : shown_) cells.push_back(cell_text(row_[i]));
}

}  // namespace llmperf::report
