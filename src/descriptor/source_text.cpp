#include "descriptor/source_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/utf8.h"
#include "descriptor/node.h"

namespace llmperf::descriptor {

std::string_view check_source_text(std::string_view text, const std::string& file, std::size_t max_bytes) {
  const auto fail = [&](std::size_t offset, std::string message) {
    throw Error(ErrorKind::bad_input, {{position_of(text, offset, file), std::move(message), {}}});
  };
  if (text.size() > max_bytes) {
    const std::string limit = format_bytes_binary(Bytes{static_cast<double>(max_bytes)});
    throw Error(ErrorKind::bad_input, {{{file, 0, 0}, fmt::format("too large: more than {}", limit), {}}});
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    const std::optional<char32_t> character = decode_utf8(text, offset);
    const auto byte = static_cast<unsigned char>(text[start]);
    if (!character) fail(start, fmt::format("not UTF-8 text: byte 0x{:02x}", byte));
    const bool space = *character == '\t' || *character == '\n' || *character == '\r';
    if ((*character < 0x20 && !space) || *character == 0x7F) {
      fail(start, fmt::format("control character 0x{:02x} in the text", byte));
    }
  }
  return text;
}

SourcePosition position_of(std::string_view text, std::size_t offset, const std::string& file) {
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_break = before.rfind('\n');
  const std::size_t line_start = line_break == std::string_view::npos ? 0 : line_break + 1;
  return {file, static_cast<int>(line), static_cast<int>(before.size() - line_start) + 1};
}

}  // namespace llmperf::descriptor
