// Decoding UTF-8 one character at a time, strictly (RFC 3629: no overlong forms, no surrogates, nothing beyond
// U+10FFFF).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace llmperf {

// Bytes of a text that somebody types, as a field of a request, a pattern or a condition: what is longer is refused
// before time is spent on it.
inline constexpr std::size_t kLongestText = 4096;

// The character that starts at `offset` (< text.size()); moves `offset` behind it. Nothing when the bytes there are not
// UTF-8; `offset` then moves by one byte.
std::optional<char32_t> decode_utf8(std::string_view text, std::size_t& offset);

// Whether a terminal acts on the character, or it reorders or hides the text around it: control characters, the line
// separators and format characters without a glyph (Unicode 15: Cc, Zl, Zp and most of Cf; joiners are fine).
bool is_unsafe(char32_t character);

// The text with \uXXXX for each such character beyond ASCII (of a text in JSON: the same text to programs), or with ?.
std::string without_unsafe(std::string_view text, bool escaped);

}  // namespace llmperf
