// Lists and ranges of values, as flags of a sweep take them: "bf16,w4a16", "128,1024", "1-128*2" (1, 2, 4 … 128),
// "512-4096+512".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmperf::points {

inline constexpr std::size_t kMaxValues = 100'000;  // of one flag

// The values of `flag` in order. Items that are first-last+step or first-last*factor (whole numbers) are ranges that
// end at the last value not beyond `last`; all else stands for itself. `kilo`: what a suffix k means in a range,
// 1k-128k*2 (M its square); 0: nothing. Throws Error(bad_input) naming the flag for an empty item, a range that does
// not go up, a value given twice and more than kMaxValues.
std::vector<std::string> expand_values(std::string_view flag, std::string_view text, char separator = ',',
                                       std::int64_t kilo = 0);

// A comma-separated list without empty items. Throws Error(bad_input) naming the flag.
std::vector<std::string> list_value(std::string_view flag, std::string_view text);

}  // namespace llmperf::points
