// The outputs of `llmperf run`: the sections of a study one below the other, each with what it shows of its results:
// rows of their CSV, chosen, arranged and printed for people, or parts of their page.
#pragma once

#include <string>
#include <vector>

#include "points/study_file.h"
#include "report/document.h"

namespace llmperf::report {

// The rows of all tables below each other, under the union of their columns; absent cells are empty.
Table joined(const std::vector<Table>& tables);

// The rows and columns that a view leaves of a joined CSV: what a section's own CSV is. Throws Error(bad_input) at the
// places in `file` of names that the table does not have.
Table chosen_rows(const points::View& view, const Table& rows, const std::string& file);

// The same for people: one table, or one for each cell of a pivot. `rows` is what chosen_rows() returned.
Document shown_rows(const points::View& view, const Table& rows, const std::string& file);

// The parts of a page whose titles start with one of `parts`, each with what follows it without a title; all of the
// page when there are none.
Document chosen_parts(const std::vector<points::Word>& parts, const Document& page, const std::string& file);

struct SectionResult {
  const points::Section* section = nullptr;
  std::vector<std::string> commands;  // as a shell reads them
  Document page;                      // what is shown
  Table rows;                         // plain numbers; no column where the command has none
  std::vector<std::string> notes;     // what did not fit, what failed
  int status = 0;                     // as the program's exit status
};
// The page of one section, with its title and text.
Document section_page(const SectionResult& result);
// CSV is that of the section where there is one only, else empty.
Report study_report(const points::StudyFile& study, const std::vector<SectionResult>& results);

}  // namespace llmperf::report
