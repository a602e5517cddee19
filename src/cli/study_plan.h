// From the sections of a study to the commands they are.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "study/study.h"

namespace llmperf::cli {

struct StudyRun {
  std::vector<std::string> words;  // as execute() takes them
  std::vector<study::Flag> flags;  // what they were made from
};

struct SectionPlan {
  const study::Section* section = nullptr;
  std::vector<StudyRun> runs;  // one, or one for each row
};

// The runs of the named sections, of all where none is named, in the order of the file. Throws Error(bad_input) for
// sections that do not exist and, all at once, for commands and flags that do not.
std::vector<SectionPlan> plan_study(const study::Study& study, const std::vector<std::string>& names);

// An error of a run as an error of its file: at the flag that it speaks of, else at the section's command.
Diagnostic placed(const Diagnostic& error, const study::Study& study, const study::Section& section,
                  const StudyRun& run);

}  // namespace llmperf::cli
