// Results as tables of plain cells: CSV.
#pragma once

#include <ranges>
#include <string_view>

#include "report/document.h"
#include "result/row.h"

namespace llmperf::report {

// Below what is listed the file that stands in place of a built-in one, if one does.
inline void add_file(Document& page, const std::string& name, std::string_view file) {
  if (!file.empty()) page.push_back(Paragraph{name + ": " + std::string(file) + ", in place of the built-in file"});
}

// What stands between commas.
std::vector<std::string_view> listed(std::string_view text);

// Rows of results of one type, filled one after the other: of all columns, or of those of `keys` in their order, "name,
// time_s".
class RowTable {
 public:
  explicit RowTable(const Type& type, std::string_view keys = {});
  void add(const void* object);
  Table done() { return std::move(table_); }

 private:
  const Type& type_;
  points::Row row_;
  std::vector<std::size_t> shown_;
  Table table_;
};

template <std::ranges::range Results>
Table csv_of(const Results& results, std::string_view keys = {}) {
  RowTable table(type_of<std::ranges::range_value_t<Results>>(), keys);
  for (const auto& result : results) table.add(&result);
  return table.done();
}
// A single row.
template <class Result>
requires(!std::ranges::range<Result>) Table csv_of(const Result& result) {
  RowTable table(type_of<Result>());
  table.add(&result);
  return table.done();
}

}  // namespace llmperf::report
