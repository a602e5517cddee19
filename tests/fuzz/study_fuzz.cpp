// Scenario files: a text that is accepted must be a study whose commands can be written down.
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "fuzz.h"
#include "points/study_file.h"

using namespace llmperf;

void fuzz_study(std::string_view text) {
  try {
    const points::StudyFile study = points::parse_study(descriptor::parse_yaml(text, "fuzz.yaml"));
    if (study.title.empty() || study.sections.empty()) std::abort();
    for (const points::Section& section : study.sections) {
      if (section.name.empty() || section.name.find('/') != std::string::npos) std::abort();
      for (const std::string& word : points::words_of(points::merged(study.flags, section.flags))) {
        if (word.empty()) std::abort();
      }
    }
  } catch (const Error&) {
    // refused, which is an answer
  }
}
