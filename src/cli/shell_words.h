// Words of a line as a POSIX shell splits them, without anything that it would expand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace llmperf::cli {

// Quotes ('…', "…") and backslashes are honoured. Throws Error(bad_input), naming `flag`, for a quote that is not
// closed and a backslash at the end.
std::vector<std::string> shell_words(std::string_view flag, std::string_view line);

}  // namespace llmperf::cli
