#include "base/version.h"

namespace llmperf {

std::string_view source_version() { return LLMPERF_VERSION; }

}  // namespace llmperf
