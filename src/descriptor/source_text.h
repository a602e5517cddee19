// What every descriptor text must be before a parser sees it, and positions in it.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "descriptor/node.h"

namespace llmperf::descriptor {

// `text` without its byte order mark. Throws Error(bad_input) when it is larger than `max_bytes`, not UTF-8, or
// holds a control character (yaml-cpp takes 0x04 for the end of the file and leading zeros for UTF-16).
std::string_view check_source_text(std::string_view text, const std::string& file,
                                   std::size_t max_bytes = kMaxDescriptorBytes);

// 1-based line and column (in bytes) of an offset into `text`.
SourcePosition position_of(std::string_view text, std::size_t offset, const std::string& file);

}  // namespace llmperf::descriptor
