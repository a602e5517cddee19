// Published tables under tests/cost/data: '#' lines name the source, then a header line, then one row per model.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "catch.h"

struct PublishedTable {
  std::vector<std::string> columns;  // without the first, "model"
  struct Row {
    std::string model;
    std::map<std::string, std::string> cells;  // by column
    const std::string& operator[](const std::string& column) const { return cells.at(column); }
  };
  std::vector<Row> rows;
};

inline PublishedTable read_published_table(const std::string& file) {
  const std::string path = std::string(LLMPERF_SOURCE_DIR) + "/tests/cost/data/" + file;
  std::ifstream in(path);
  INFO(path);
  REQUIRE(in);
  PublishedTable table;
  std::string line;
  while (std::getline(in, line)) {
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string_view> cells = llmperf::split(line, ',');
    if (table.columns.empty()) {
      table.columns.assign(cells.begin() + 1, cells.end());
      continue;
    }
    REQUIRE(cells.size() == table.columns.size() + 1);
    PublishedTable::Row row{std::string(cells.front()), {}};
    for (std::size_t i = 0; i < table.columns.size(); ++i) row.cells[table.columns[i]] = std::string(cells[i + 1]);
    table.rows.push_back(row);
  }
  REQUIRE(!table.rows.empty());
  return table;
}
