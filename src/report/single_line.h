#pragma once

#include <string>
#include <string_view>

namespace llmperf::report {

// Text of unknown origin (a name from a file, a flag) made safe for a terminal: line breaks and tabs become spaces,
// other control characters '?', invalid UTF-8 U+FFFD.
std::string single_line(std::string_view text);

}  // namespace llmperf::report
