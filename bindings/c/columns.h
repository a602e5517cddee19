// Rows as columns: what numeric code wants of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/c/llmperf.h"
#include "points/row.h"
#include "result/field.h"

namespace llmperf::c {

struct ColumnOfCells {
  std::string name = {};
  int kind = 0;  // of llmperf.h
  std::vector<double> numbers = {};
  std::vector<std::int64_t> offsets = {0};
  std::string text = {};
};

class Columns {
 public:
  Columns() = default;
  // `shown`: the columns to keep, in order. What a column has is what is declared, whatever its cells are.
  Columns(const std::vector<std::string>& names, const std::vector<result::Kind>& kinds,
          const std::vector<std::size_t>& shown);
  void add(const points::Row& row);
  void add(const Columns& other);
  // Numbers of the first row. After this nothing is added.
  void finish();

  std::size_t rows() const { return rows_; }
  const std::vector<ColumnOfCells>& all() const { return columns_; }
  const std::vector<double>& first() const { return first_; }
  void cell(std::size_t column, std::size_t row, points::Cell& cell) const;

 private:
  std::vector<std::size_t> shown_;
  std::vector<ColumnOfCells> columns_;
  std::vector<double> first_;
  std::size_t rows_ = 0;
};

}  // namespace llmperf::c
