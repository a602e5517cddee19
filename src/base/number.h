// Reading and printing numbers. Reading is strict: the whole text must be one finite decimal number, optionally with a
// unit that fits the dimension asked for. Nothing is guessed: "24GB" is 24e9 bytes and "24GiB" is 24 * 2^30.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace llmperf {

// A decimal integer without sign prefix '+', exponent or leading zero ("010" would be octal in YAML 1.1). Nothing on
// any other text or when it does not fit 64 bits.
std::optional<std::int64_t> parse_int(std::string_view text);
// A finite decimal number; nothing for "nan", "inf", hex, 1e400 or trailing text.
std::optional<double> parse_double(std::string_view text);

// A number with a unit: B KB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024), optionally "/s";
// FLOP/s and OP/s with k M G T P; s ms us ns; one space before the unit is optional. The unit is required; nothing for
// a negative number.
std::optional<Bytes> parse_bytes(std::string_view text);
std::optional<BytesPerSecond> parse_bytes_per_second(std::string_view text);
std::optional<FlopsPerSecond> parse_flops_per_second(std::string_view text);
std::optional<Seconds> parse_seconds(std::string_view text);

// For people: at most four significant digits with the prefix that keeps the number in 1..1000 ("n/a" when it is not
// finite).
std::string format_bytes(Bytes bytes);            // "15.44 GB" (powers of 1000)
std::string format_bytes_binary(Bytes bytes);     // "14.38 GiB" (powers of 1024)
std::string format_flops(Flops flops);            // "7.71 TFLOP"
std::string format_flops_rate(FlopsPerSecond r);  // "165.2 TFLOP/s"
std::string format_bandwidth(BytesPerSecond r);   // "1008 GB/s": as datasheets do, up to 9999 of one prefix
std::string format_seconds(Seconds t);            // "15.32 ms"
std::string format_count(double count);           // "7,721,324,544" (integers, thousands separated)
std::string format_share(double ratio);           // "93.4 %" of a ratio 0.934, always one decimal
std::string format_significant(double value, int digits = 4);  // without trailing zeros: "0.125", "24"

// Whether it is a whole number, of those that doubles hold all of.
inline bool is_whole(double value) { return value == std::floor(value) && std::abs(value) < 9007199254740992.0; }
// The shortest text that reads back the same; whole numbers without an exponent.
void append_shortest(std::string& out, double value);

}  // namespace llmperf
