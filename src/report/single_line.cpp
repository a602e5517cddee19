#include "report/single_line.h"

#include <optional>

#include "base/utf8.h"

namespace llmperf::report {

std::string single_line(std::string_view text) {
  std::string out;
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    const std::optional<char32_t> character = decode_utf8(text, offset);
    if (!character) {
      out += "\uFFFD";
    } else if (*character == '\n' || *character == '\r' || *character == '\t') {
      out += ' ';
    } else if (is_unsafe(*character)) {
      out += '?';
    } else {
      out += text.substr(start, offset - start);
    }
  }
  return out;
}

}  // namespace llmperf::report
