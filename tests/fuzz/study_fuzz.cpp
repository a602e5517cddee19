// Scenario files: a text that is accepted must be a study whose commands can be written down.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "study/study.h"

using namespace llmperf;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const study::Study study = study::parse_study(descriptor::parse_yaml(text, "fuzz.yaml"));
    if (study.title.empty() || study.sections.empty()) std::abort();
    for (const study::Section& section : study.sections) {
      if (section.name.empty() || section.name.find('/') != std::string::npos) std::abort();
      for (const std::string& word : study::words_of(study::merged(study.flags, section.flags))) {
        if (word.empty()) std::abort();
      }
    }
  } catch (const Error&) {
    // refused, which is an answer
  }
  return 0;
}
