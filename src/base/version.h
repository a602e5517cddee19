// What the program says it is.
#pragma once

#include <string_view>

namespace llmperf {

// Of the sources, as CMakeLists.txt has it: what documents are written by, and the same from commit to commit.
std::string_view source_version();

// Of one build of them.
struct Build {
  std::string_view version;    // "0.2.0"; "0.2.0+12.gabcdef1" twelve commits after that
  std::string_view commit;     // its hash; empty where the sources are in no repository
  std::string_view compiler;   // "GNU 12.2.0"
  std::string_view data_date;  // when models or hardware last changed: "2026-11-26"; empty where that is not known
};
// A library of its own (llmperf_version) defines it: every commit makes that anew, and whatever links it.
const Build& this_build();

}  // namespace llmperf
