// The outputs of `llmperf sweep` and `llmperf merge` that need all rows at once: table, Markdown, JSON, HTML.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/document.h"
#include "sweep/row.h"

namespace llmperf::report {

// A flag that changes, the column it is in and its values.
struct SweptFlag {
  std::string flag;
  std::string column;
  std::vector<std::string> values;
};
struct SweepResult {
  std::vector<SweptFlag> axes;
  std::vector<std::string> columns;
  std::vector<std::size_t> shown;  // columns to write; all when empty, of a table then the most telling
  std::string selection;           // "the 20 best by tokens_per_second"; empty: all rows
  std::int64_t points = 0;
  std::int64_t failed = 0;
  std::string first_error;
  std::vector<sweep::Row> rows;
};
Report sweep_report(const SweepResult& result);

}  // namespace llmperf::report
