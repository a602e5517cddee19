#include "bindings/c/columns.h"

#include <limits>

#include "result/row.h"

namespace llmperf::c {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr int kUnknown = -1;

int kind_of(const sweep::Cell& cell) {
  switch (cell.kind) {
    case sweep::Cell::Kind::none: return kUnknown;
    case sweep::Cell::Kind::number: return LLMPERF_NUMBERS;
    case sweep::Cell::Kind::truth: return LLMPERF_TRUTHS;
    case sweep::Cell::Kind::text: return LLMPERF_TEXTS;
  }
  return kUnknown;
}

// The column's cells so far as texts.
void turn_to_texts(ColumnOfCells& column) {
  for (const double number : column.numbers) {
    if (number == number) column.text += result::plain(number);
    column.offsets.push_back(static_cast<std::int64_t>(column.text.size()));
  }
  column.numbers.clear();
  column.kind = LLMPERF_TEXTS;
}

}  // namespace

Columns::Columns(const std::vector<std::string>& names, const std::vector<std::size_t>& shown) : shown_(shown) {
  for (const std::size_t column : shown) columns_.push_back({.name = names[column]});
}

void Columns::add(const sweep::Row& row) {
  for (std::size_t i = 0; i < columns_.size(); ++i) put(columns_[i], row[shown_[i]]);
  ++rows_;
}

void Columns::put(ColumnOfCells& column, const sweep::Cell& cell) {
  const int kind = kind_of(cell);
  if (column.kind == kUnknown) column.kind = kind;
  if (kind != kUnknown && kind != column.kind && column.kind != LLMPERF_TEXTS) turn_to_texts(column);
  // A column without a text so far keeps its empty cells as numbers.
  if (column.kind == LLMPERF_TEXTS && column.offsets.size() == 1 && !column.numbers.empty()) turn_to_texts(column);
  if (column.kind == LLMPERF_TEXTS) {
    column.text += result::cell_text(cell);
    column.offsets.push_back(static_cast<std::int64_t>(column.text.size()));
  } else {
    column.numbers.push_back(kind == kUnknown ? kNone : cell.number);
  }
}

void Columns::add(const Columns& other) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    ColumnOfCells& to = columns_[i];
    const ColumnOfCells& from = other.columns_[i];
    const bool numbers = from.kind != LLMPERF_TEXTS && to.kind != LLMPERF_TEXTS;
    if (numbers && (to.kind == from.kind || to.kind == kUnknown || from.kind == kUnknown)) {
      if (to.kind == kUnknown) to.kind = from.kind;
      to.numbers.insert(to.numbers.end(), from.numbers.begin(), from.numbers.end());
      continue;
    }
    sweep::Cell cell;
    for (std::size_t r = 0; r < other.rows_; ++r) {
      other.cell(i, r, cell);
      put(to, cell);
    }
  }
  rows_ += other.rows_;
}

void Columns::cell(std::size_t column, std::size_t row, sweep::Cell& cell) const {
  using Kind = sweep::Cell::Kind;
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
  for (ColumnOfCells& column : columns_) {
    if (column.kind == kUnknown) column.kind = LLMPERF_NUMBERS;
    if (rows_ > 0) first_.push_back(column.kind == LLMPERF_TEXTS ? kNone : column.numbers.front());
  }
}

}  // namespace llmperf::c
