// One point's results as named cells. Numbers are in SI units, the unit in the column's name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmperf::points {

struct Cell {
  enum class Kind : std::uint8_t { none, number, truth, text };
  Kind kind = Kind::none;
  double number = 0;  // 0 or 1 for a truth
  std::string text;   // keeps its memory from point to point

  bool is_number() const { return kind == Kind::number; }
};

class Row {
 public:
  // Cells are refilled in order; a row that is cleared and filled again allocates nothing.
  void clear() { size_ = 0; }
  void add(std::string_view name, double value) { next(name, Cell::Kind::number).number = value; }
  void add(std::string_view name, bool value) { next(name, Cell::Kind::truth).number = value ? 1 : 0; }
  // No text is an empty cell.
  void add(std::string_view name, std::string_view value) {
    next(name, value.empty() ? Cell::Kind::none : Cell::Kind::text).text.assign(value);
  }
  void add(std::string_view name, const char* value) { add(name, std::string_view(value)); }
  void add(std::string_view name, const std::string& value) { add(name, std::string_view(value)); }
  void add_none(std::string_view name) { next(name, Cell::Kind::none); }

  void truncate(std::size_t size) { size_ = size; }

  std::size_t size() const { return size_; }
  std::string_view name(std::size_t i) const { return names_[i]; }
  const Cell& operator[](std::size_t i) const { return cells_[i]; }
  Cell& operator[](std::size_t i) { return cells_[i]; }

 private:
  Cell& next(std::string_view name, Cell::Kind kind) {
    if (size_ == cells_.size()) {
      cells_.emplace_back();
      names_.emplace_back();
    }
    names_[size_] = name;  // a literal, or one that outlives the row
    Cell& cell = cells_[size_++];
    cell.kind = kind;
    return cell;
  }

  std::vector<Cell> cells_;
  std::vector<std::string_view> names_;
  std::size_t size_ = 0;
};

}  // namespace llmperf::points
