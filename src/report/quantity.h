// Numbers for people by the key or column they stand under, whose end says the unit (docs/json.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/number.h"

namespace llmperf::report {

// Whether the number is a share of something: printed in percent.
bool is_share(std::string_view key);
// `parent`: the key of what it is a part of: "weight_bytes" of "memory" or of a row of results is written in powers of
// 1024 as memory is, that of an op in powers of 1000 as traffic is. Negative numbers are differences.
std::string quantity_text(std::string_view key, double value, std::string_view parent = "memory");
// Of four digits, with separators from a thousand on: "0.5025", "10,535".
std::string number_text(double value);
inline std::string count_text(std::int64_t n) { return format_count(static_cast<double>(n)); }
// A CSV value by its column: "ttft_s" 0.0486 -> "48.6 ms".
std::string readable(const std::string& column, const std::string& value);
// A share, without a sign where it is next to nothing.
std::string share_text(double share);
// A share with its sign: "+1.3 %".
std::string signed_share(double share);

}  // namespace llmperf::report
