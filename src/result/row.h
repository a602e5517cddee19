// Results as rows of named cells: CSV, and the points of a sweep.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "points/row.h"
#include "result/field.h"

namespace llmperf::result {

// Appends the cells of an object; empty ones, for their names, when it is null. Allocates nothing that the values
// themselves do not.
void fill_row(points::Row& row, const Type& type, const void* object);
template <class T>
void fill_row(points::Row& row, const T* object) {
  fill_row(row, type_of<T>(), object);
}

// What the rows of a result have, in order.
struct Column {
  std::string_view name;
  std::string_view doc;
  Kind kind = Kind::any;
};
std::vector<Column> columns(const Type& type);

// The text of a cell of CSV: the shortest that reads back the same, "true" or "false", nothing for an empty cell.
std::string plain(double value);
std::string cell_text(const points::Cell& cell);

}  // namespace llmperf::result
