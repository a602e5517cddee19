// What a section of a study shows of its results: rows of their CSV, chosen, arranged and printed for people.
#pragma once

#include <string>
#include <vector>

#include "report/document.h"
#include "study/study.h"

namespace llmperf::report {

// The rows of all tables below each other, under the union of their columns; absent cells are empty.
Table joined(const std::vector<Table>& tables);

// The rows and columns that a view leaves of a joined CSV: what a section's own CSV is. Throws Error(bad_input) at the
// places in `file` of names that the table does not have.
Table chosen_rows(const study::View& view, const Table& rows, const std::string& file);

// The same for people: one table, or one for each cell of a pivot. `rows` is what chosen_rows() returned.
Document shown_rows(const study::View& view, const Table& rows, const std::string& file);

// The parts of a page whose titles start with one of `parts`, each with what follows it without a title; all of the
// page when there are none.
Document chosen_parts(const std::vector<study::Word>& parts, const Document& page, const std::string& file);

// A CSV value for people, by the unit in its column's name: "ttft_s" 0.0486 -> "48.6 ms".
std::string readable(const std::string& column, const std::string& value);
// "ttft_s" -> "TTFT".
std::string heading_of(const std::string& column);

}  // namespace llmperf::report
