// Where the fixtures of tests/model are, and how their tables are read.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace llmperf::model {

inline std::string fixture(const std::string& path) { return std::string(LLMPERF_SOURCE_DIR) + "/tests/model/" + path; }

// Rows of a CSV file without quotes; comment lines and the heading left out.
inline std::vector<std::vector<std::string>> read_rows(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  bool heading = true;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    if (heading) {
      heading = false;
      continue;
    }
    std::vector<std::string> fields;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) fields.push_back(cell);
    rows.push_back(fields);
  }
  return rows;
}

}  // namespace llmperf::model
