#include "report/rows.h"

#include <stdexcept>

namespace llmperf::report {

RowTable::RowTable(const Type& type, std::initializer_list<std::string_view> keys) : type_(type) {
  fill_row(row_, type_, nullptr);
  const auto column = [&](std::string_view key) {
    for (std::size_t i = 0; i < row_.size(); ++i) {
      if (row_.name(i) == key) return i;
    }
    throw std::logic_error("no such column: " + std::string(key));
  };
  for (const std::string_view key : keys) shown_.push_back(column(key));
  if (keys.size() == 0) {
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
