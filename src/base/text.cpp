#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace llmperf {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Edits (insert, delete, replace, swap neighbours) that turn a into b; each character takes part in one swap at most.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_previous(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before_previous[j - 2] + 1);
    }
    std::swap(before_previous, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

// Nobody mistypes a name into something this long; comparing it would only cost time.
constexpr std::size_t kLongestName = 100;

struct Range {
  char32_t first, last;
};

// Unicode 15 East Asian Width W and F, neighbouring ranges merged over unassigned characters.
constexpr std::array<Range, 26> kWide = {{
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC}, {0x25FD, 0x25FE}, {0x2614, 0x2615}, {0x2648, 0x2653},
    {0x26A1, 0x26A1},   {0x26BD, 0x26BE},   {0x2705, 0x2705}, {0x2728, 0x2728}, {0x274C, 0x274C}, {0x2753, 0x2755},
    {0x2795, 0x2797},   {0x2B1B, 0x2B1C},   {0x2E80, 0x303E}, {0x3041, 0x4DBF}, {0x4E00, 0xA4CF}, {0xA960, 0xA97F},
    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE10, 0xFE19}, {0xFE30, 0xFE6F}, {0xFF01, 0xFF60}, {0xFFE0, 0xFFE6},
    {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD},
}};

// Combining marks, zero-width spaces and joiners, direction marks, variation selectors. Looked up before kWide.
constexpr std::array<Range, 24> kZeroWidth = {{
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F}, {0x0900, 0x0902},
    {0x093C, 0x093C}, {0x0941, 0x0948}, {0x094D, 0x094D}, {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E},
    {0x1160, 0x11FF}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x2064},
    {0x20D0, 0x20F0}, {0x302A, 0x302D}, {0x3099, 0x309A}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF},
}};

bool covers(std::span<const Range> ranges, char32_t character) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [character](Range range) { return range.first <= character && character <= range.last; });
}

bool is_control(char32_t character) { return character < 0x20 || (character >= 0x7F && character < 0xA0); }

int character_width(char32_t character) {
  if (is_control(character)) return 0;
  if (character < 0x300) return 1;
  if (covers(kZeroWidth, character)) return 0;
  return covers(kWide, character) ? 2 : 1;
}

}  // namespace

std::vector<std::string> nearest_names(std::string_view text, std::span<const std::string> candidates,
                                       std::size_t limit) {
  if (text.empty() || text.size() > kLongestName) return {};
  struct Match {
    std::size_t distance;
    const std::string* name;
  };
  // Without what only separates: "q4km" is q4_k_m, "llama3.1-8b" is llama-3.1-8b.
  const auto letters = [](std::string_view name) {
    std::string plain = to_lower(name);
    std::erase_if(plain, [](char c) { return c == '-' || c == '_' || c == '.' || c == ' '; });
    return plain;
  };
  const std::string wanted = to_lower(text);
  const std::size_t largest_typo = std::max<std::size_t>(2, wanted.size() / 3);
  std::vector<Match> matches;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const std::string known = to_lower(candidate);
    const bool same = letters(wanted) == letters(known);
    const std::size_t distance = same ? 0 : edit_distance(wanted, known);
    // As many edits as characters means that nothing is left of the name: no typo, however short the name.
    const bool typo = distance <= largest_typo && distance < std::max(wanted.size(), known.size());
    if (typo || known.find(wanted) != std::string::npos) matches.push_back({distance, &candidate});
  }
  std::stable_sort(matches.begin(), matches.end(), [](Match a, Match b) { return a.distance < b.distance; });
  std::vector<std::string> names;
  for (const Match& match : matches) {
    if (names.size() == limit || (match.distance > 0 && matches.front().distance == 0)) break;
    if (std::find(names.begin(), names.end(), *match.name) == names.end()) names.push_back(*match.name);
  }
  return names;
}

std::string name_hint(std::string_view text, std::span<const std::string> candidates) {
  if (candidates.empty()) return {};
  const std::vector<std::string> nearest = nearest_names(text, candidates);
  if (!nearest.empty()) {
    std::string hint = "did you mean ";
    for (std::size_t i = 0; i < nearest.size(); ++i) {
      if (i > 0) hint += i + 1 == nearest.size() ? " or " : ", ";
      hint += "'" + nearest[i] + "'";
    }
    return hint + "?";
  }
  constexpr std::size_t kShown = 8;
  const std::size_t shown = std::min(candidates.size(), kShown);
  std::string hint = "known names: " + join(candidates.first(shown), ", ");
  if (shown < candidates.size()) hint += ", …";
  return hint;
}

int display_width(std::string_view utf8) {
  int width = 0;
  for (std::size_t offset = 0; offset < utf8.size();) {
    const std::optional<char32_t> character = decode_utf8(utf8, offset);
    width += character ? character_width(*character) : 1;
  }
  return width;
}

std::string pad(std::string_view utf8, int width, bool left_align) {
  const int missing = std::max(0, width - display_width(utf8));
  const std::string spaces(static_cast<std::size_t>(missing), ' ');
  return left_align ? std::string(utf8) + spaces : spaces + std::string(utf8);
}

std::string quote(std::string_view text) {
  constexpr std::size_t kLongest = 61;  // with the mark that opens
  std::string quoted = "'";
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    const std::optional<char32_t> character = decode_utf8(text, offset);
    std::string piece;
    if (character && !is_unsafe(*character)) {
      piece = text.substr(start, offset - start);
    } else {
      for (std::size_t i = start; i < offset; ++i) {
        piece += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
      }
    }
    if (quoted.size() + piece.size() > kLongest) {
      quoted += "…";
      break;
    }
    quoted += piece;
  }
  return quoted + "'";
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> parts = split(text, ' ');
  std::erase_if(parts, [](std::string_view part) { return part.empty(); });
  return parts;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string to_lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string joined;
  for (const std::string& part : parts) {
    if (&part != parts.data()) joined += separator;
    joined += part;
  }
  return joined;
}

}  // namespace llmperf
