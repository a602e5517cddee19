// Enumerations whose words are their names, listed once.
#pragma once

#include <cstddef>
#include <string_view>

#define LLMPERF_WORDS(Enum, ...)                   \
  enum class Enum : unsigned char { __VA_ARGS__ }; \
  inline constexpr std::string_view k##Enum##Words = #__VA_ARGS__

namespace llmperf {

// Of "first, second", the word with that index.
constexpr std::string_view word_at(std::string_view words, std::size_t index) {
  for (; index > 0; --index) words.remove_prefix(words.find(' ') + 1);
  return words.substr(0, words.find(','));
}

}  // namespace llmperf
