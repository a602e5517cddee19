#include "bindings/c/columns.h"

#include <limits>

#include "result/row.h"

namespace llmperf::c {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

int kind_of(result::Kind kind) {
  switch (kind) {
    case result::Kind::truth: return LLMPERF_TRUTHS;
    case result::Kind::integer:
    case result::Kind::number: return LLMPERF_NUMBERS;
    default: return LLMPERF_TEXTS;
  }
}

}  // namespace

Columns::Columns(const std::vector<std::string>& names, const std::vector<result::Kind>& kinds,
                 const std::vector<std::size_t>& shown)
    : shown_(shown) {
  for (const std::size_t column : shown) columns_.push_back({.name = names[column], .kind = kind_of(kinds[column])});
}

void Columns::add(const points::Row& row) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    ColumnOfCells& column = columns_[i];
    const points::Cell& cell = row[shown_[i]];
    if (column.kind == LLMPERF_TEXTS) {
      column.text += result::cell_text(cell);
      column.offsets.push_back(static_cast<std::int64_t>(column.text.size()));
    } else {
      const bool none = cell.kind == points::Cell::Kind::none || cell.kind == points::Cell::Kind::text;
      column.numbers.push_back(none ? kNone : cell.number);
    }
  }
  ++rows_;
}

void Columns::add(const Columns& other) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    ColumnOfCells& to = columns_[i];
    const ColumnOfCells& from = other.columns_[i];
    to.numbers.insert(to.numbers.end(), from.numbers.begin(), from.numbers.end());
    const auto behind = static_cast<std::int64_t>(to.text.size());
    for (std::size_t r = 1; r < from.offsets.size(); ++r) to.offsets.push_back(behind + from.offsets[r]);
    to.text += from.text;
  }
  rows_ += other.rows_;
}

void Columns::cell(std::size_t column, std::size_t row, points::Cell& cell) const {
  using Kind = points::Cell::Kind;
  const ColumnOfCells& from = columns_[column];
  if (from.kind == LLMPERF_TEXTS) {
    const auto begin = static_cast<std::size_t>(from.offsets[row]);
    cell.text.assign(from.text, begin, static_cast<std::size_t>(from.offsets[row + 1]) - begin);
    cell.kind = cell.text.empty() ? Kind::none : Kind::text;
  } else {
    cell.number = from.numbers[row];
    cell.kind = cell.number != cell.number ? Kind::none : from.kind == LLMPERF_TRUTHS ? Kind::truth : Kind::number;
  }
}

void Columns::finish() {
  for (const ColumnOfCells& column : columns_) {
    if (rows_ > 0) first_.push_back(column.kind == LLMPERF_TEXTS ? kNone : column.numbers.front());
  }
}

}  // namespace llmperf::c
