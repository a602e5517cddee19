// Which rows of a sweep or a merge are kept, and which columns are written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "sweep/condition.h"
#include "sweep/selection.h"

namespace llmperf::cli {

struct SelectionFlags {
  std::string where;
  std::string top;
  std::string by;
  std::string pareto;
  std::string columns;
};
void add_selection_flags(Command& command, SelectionFlags& flags);

struct RowChoice {
  std::optional<sweep::Condition> where;
  sweep::Selection selection = sweep::Selection::all();  // an empty one, to copy
  std::vector<std::size_t> shown;                        // indices of the columns to write; empty: all
  std::string text;                                      // of the selection, for people; empty: all rows
};
// Throws Error(bad_input).
RowChoice row_choice(const SelectionFlags& flags, const std::vector<std::string>& columns);

}  // namespace llmperf::cli
