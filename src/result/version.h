// What `llmperf --version --json` prints.
#pragma once

#include <string>

#include "base/version.h"

namespace llmperf::result {

// {"schema": "llmperf.version", "schema_version": 1, "version": …, "commit": …, "compiler": …, "data_date": …}
std::string version_document(const Build& build);

}  // namespace llmperf::result
