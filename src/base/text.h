// Small text helpers shared by every layer: suggestions for misspelt names, display width, joining.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmperf {

// The candidates closest to `text` by Damerau-Levenshtein distance (case-insensitive), nearest first; only those close
// enough to be a likely typo (distance at most a third of the length, at least 2) or that contain `text`. At most
// `limit` names.
std::vector<std::string> nearest_names(std::string_view text, std::span<const std::string> candidates,
                                       std::size_t limit = 3);

// "did you mean 'a', 'b' or 'c'?" from nearest_names; "known names: …" of at most eight when nothing is near; empty
// when there are no candidates.
std::string name_hint(std::string_view text, std::span<const std::string> candidates);

// Terminal columns of UTF-8 text: CJK and other wide characters take two, combining marks none.
int display_width(std::string_view utf8);
// Text padded with spaces on the right (left_align) or on the left to `width` columns; unchanged when wider.
std::string pad(std::string_view utf8, int width, bool left_align);

// 'text' in quotes for a message: control characters and invalid UTF-8 escaped, shortened when very long.
std::string quote(std::string_view text);

std::vector<std::string_view> split(std::string_view text, char separator);
std::vector<std::string_view> words(std::string_view text);  // what stands between spaces
std::string_view trim(std::string_view text);
std::string to_lower(std::string_view text);
// Of ASCII; capitals are not.
constexpr bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
std::string join(std::span<const std::string> parts, std::string_view separator);

}  // namespace llmperf
