#include "result/version.h"

#include "result/json.h"

namespace llmperf::result {

std::string version_document(const Build& build) {
  const auto known = [](std::string_view text) { return text.empty() ? Json() : Json(text); };
  return dump({{"schema", "llmperf.version"},
               {"schema_version", 1},
               {"version", build.version},
               {"commit", known(build.commit)},
               {"compiler", build.compiler},
               {"data_date", known(build.data_date)}});
}

}  // namespace llmperf::result
