// Which rows of a sweep are kept, and which of their columns are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sweep/condition.h"
#include "sweep/selection.h"

namespace llmperf::sweep {

// As it is asked for: --where, --top with --by, --pareto, --columns.
struct RowQuery {
  std::string where;
  std::optional<std::int64_t> top;
  std::string by;
  std::string pareto;
  std::string columns;
};

struct RowChoice {
  std::optional<Condition> where;
  Selection selection = Selection::all();  // an empty one, to copy
  std::vector<std::size_t> shown;          // indices of the columns to write; empty: all
  std::string text;                        // of the selection, for people; empty: all rows
};
// Throws Error(bad_input).
RowChoice row_choice(const RowQuery& query, const std::vector<std::string>& columns);

}  // namespace llmperf::sweep
