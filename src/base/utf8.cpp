#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace llmperf {
namespace {

struct Range {
  char32_t first, last;
};
constexpr Range kUnsafe[] = {{0x00, 0x1F},       {0x7F, 0x9F},      {0xAD, 0xAD},     {0x61C, 0x61C},
                             {0x180E, 0x180E},   {0x200B, 0x200B},  {0x200E, 0x200F}, {0x2028, 0x202E},
                             {0x2060, 0x206F},   {0xFEFF, 0xFEFF},  {0xFFF9, 0xFFFB}, {0x1BCA0, 0x1BCA3},
                             {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};

}  // namespace

std::optional<char32_t> decode_utf8(std::string_view text, std::size_t& offset) {
  const auto lead = static_cast<unsigned char>(text[offset]);
  ++offset;
  if (lead < 0x80) return char32_t{lead};

  const std::size_t tail = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  const bool is_lead = lead >= 0xC2 && lead <= 0xF4;  // C0, C1: overlong; F5…FF: beyond U+10FFFF
  if (!is_lead || text.size() - offset < tail) return std::nullopt;

  constexpr unsigned kLeadMask[] = {0, 0x1F, 0x0F, 0x07};
  char32_t character = lead & kLeadMask[tail];
  for (std::size_t i = 0; i < tail; ++i) {
    const auto byte = static_cast<unsigned char>(text[offset + i]);
    if ((byte & 0xC0) != 0x80) return std::nullopt;
    character = (character << 6) | (byte & 0x3FU);
  }
  constexpr char32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xD800 && character <= 0xDFFF;
  if (character < kSmallest[tail] || character > 0x10FFFF || surrogate) return std::nullopt;
  offset += tail;
  return character;
}

bool is_unsafe(char32_t character) {
  return std::ranges::any_of(kUnsafe,
                             [character](Range range) { return range.first <= character && character <= range.last; });
}

std::string without_unsafe(std::string_view text, bool escaped) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const unsigned c = decode_utf8(text, at).value_or(0);
    if (c < 0x7F || !is_unsafe(c)) {
      out += text.substr(begin, at - begin);
    } else if (!escaped || c < 0x10000) {
      out += escaped ? fmt::format("\\u{:04x}", c) : "?";
    } else {
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (c >> 10U), 0xDC00 + (c & 0x3FFU));
    }
  }
  return out;
}

}  // namespace llmperf
