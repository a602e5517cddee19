// Texts of a sweep: conditions, lists and ranges, lines of rows. Whatever they are, they are read or refused; a list
// that is read has no value twice, and a line that is read is written so that it reads back the same.
#include <cstdlib>
#include <set>
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "points/condition.h"
#include "points/values.h"
#include "report/format/row_lines.h"

using namespace llmperf;

namespace {

const std::vector<std::string> kColumns = {"model", "batch", "ttft_s", "fits"};

points::Row sample() {
  points::Row row;
  row.add("model", "qwen-7b");
  row.add("batch", 8.0);
  row.add_none("ttft_s");
  row.add("fits", true);
  return row;
}

void check_line(report::LineFormat format, const std::string& text) {
  const std::vector<std::string> columns = report::parse_header(format, text, "fuzz");
  if (std::set<std::string>(columns.begin(), columns.end()).size() != columns.size()) return;
  points::Row row;
  report::parse_line(format, columns, text, "fuzz", 1, row);
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < columns.size(); ++i) all.push_back(i);
  const report::RowLines lines(format, columns, all);
  std::string once;
  lines.append(once, row);
  points::Row again;
  report::parse_line(format, columns, once, "fuzz", 1, again);
  if (again.size() != row.size()) std::abort();
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i].kind == points::Cell::Kind::text) continue;  // blanks at its ends may go
    if (again[i].kind != row[i].kind || (row[i].is_number() && again[i].number != row[i].number)) std::abort();
  }
}

}  // namespace

void fuzz_sweep(std::string_view input) {
  if (input.empty()) return;
  const std::string text(input.substr(1));
  try {
    switch (byte(input) % 4) {
      case 0: {
        const points::Condition condition(text, kColumns);
        if (condition(sample()) != condition(sample())) std::abort();
        break;
      }
      case 1: {
        const std::vector<std::string> values = points::expand_values("--x", text);
        if (std::set<std::string>(values.begin(), values.end()).size() != values.size()) std::abort();
        break;
      }
      case 2: check_line(report::LineFormat::csv, text); break;
      default: check_line(report::LineFormat::jsonl, text);
    }
  } catch (const Error&) {
  }
}
