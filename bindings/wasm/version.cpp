// What was built, of the engine: a commit alone does not make it anew, as it does the program (base/version.h).
#include "base/version.h"

namespace llmperf {

const Build& this_build() {
  static constexpr Build kBuild{LLMPERF_VERSION, "", "clang " __clang_version__, ""};
  return kBuild;
}

}  // namespace llmperf
