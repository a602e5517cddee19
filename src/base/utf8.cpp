#include "base/utf8.h"

namespace llmperf {

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

}  // namespace llmperf
