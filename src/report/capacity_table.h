// What takes the memory of a device, and what share of it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/number.h"
#include "base/units.h"
#include "report/document.h"

namespace llmperf::report {

// The capacity itself becomes the last row.
inline Table capacity_table(std::string title, Bytes capacity, std::vector<std::pair<std::string, Bytes>> rows) {
  Table t{std::move(title), {{"what", true}, {"size"}, {"of capacity"}}, {}};
  rows.emplace_back("capacity", capacity);
  for (const auto& [what, bytes] : rows) {
    t.rows.push_back({what, format_bytes_binary(bytes), format_share(bytes / capacity)});
  }
  return t;
}

}  // namespace llmperf::report
