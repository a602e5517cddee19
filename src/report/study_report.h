// The outputs of `llmperf run`: the sections of a study, one below the other.
#pragma once

#include <string>
#include <vector>

#include "report/document.h"
#include "study/study.h"

namespace llmperf::report {

struct SectionResult {
  const study::Section* section = nullptr;
  std::vector<std::string> commands;  // as a shell reads them
  Document page;                      // what is shown
  Table rows;                         // plain numbers; no column where the command has none
  std::vector<std::string> notes;     // what did not fit, what failed
  int status = 0;                     // as the program's exit status
};

// The page of one section, with its title and text.
Document section_page(const SectionResult& result);
// CSV is that of the section where there is one only, else empty.
Report study_report(const study::Study& study, const std::vector<SectionResult>& results);

struct NamedStudy {
  std::string name;
  study::Study study;
};
Report study_list_report(const std::vector<NamedStudy>& studies);
// What a study does, without doing it.
Report study_summary_report(const std::string& name, const study::Study& study);

}  // namespace llmperf::report
