#include "base/number.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iterator>
#include <span>

namespace llmperf {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr Unit kByteUnits[] = {{"B", 1},      {"KB", 1e3},   {"MB", 1e6},   {"GB", 1e9},           {"TB", 1e12},
                               {"KiB", kKiB}, {"MiB", kMiB}, {"GiB", kGiB}, {"TiB", 1024.0 * kGiB}};
constexpr Unit kPrefixes[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}};
constexpr Unit kSecondUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

constexpr std::span<const Unit> kDecimalByteUnits = std::span(kByteUnits).first(5);
constexpr Unit kBinaryByteUnits[] = {{"B", 1}, {"KiB", kKiB}, {"MiB", kMiB}, {"GiB", kGiB}, {"TiB", 1024.0 * kGiB}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "010" means 8 to YAML 1.1 and 10 to everybody else.
bool has_leading_zero(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && is_digit(text[1]);
}

// The number `text` starts with; `rest` is what follows it.
std::optional<double> parse_leading_double(std::string_view text, std::string_view& rest) {
  if (has_leading_zero(text)) return std::nullopt;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  rest = text.substr(static_cast<std::size_t>(stopped - text.data()));
  return value;
}

// `digits` times a unit's scale, correctly rounded: 66.9 T is 66.9e12, which 66.9 * 1e12 is not in doubles.
std::optional<double> scaled(std::string_view digits, double number, const Unit& unit) {
  const bool binary = unit.name.find('i') != std::string_view::npos;  // a power of two: the product is exact
  if (binary || digits.find_first_of("eE") != std::string_view::npos) return number * unit.scale;
  return parse_double(fmt::format("{}e{:.0f}", digits, std::log10(unit.scale)));
}

// A number followed by one of `units` and `suffix`, in SI.
std::optional<double> parse_with_unit(std::string_view text, std::span<const Unit> units, std::string_view suffix) {
  std::string_view rest;
  const std::optional<double> number = parse_leading_double(text, rest);
  if (!number || std::signbit(*number)) return std::nullopt;
  const std::string_view digits = text.substr(0, text.size() - rest.size());
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  if (!rest.ends_with(suffix)) return std::nullopt;
  rest.remove_suffix(suffix.size());
  for (const Unit& unit : units) {
    if (rest != unit.name) continue;
    const std::optional<double> value = scaled(digits, *number, unit);
    return value && std::isfinite(*value) ? value : std::nullopt;
  }
  return std::nullopt;
}

double round_significant(double value, int digits) {
  const std::string text = fmt::format("{:.{}e}", value, digits - 1);
  std::string_view rest;
  return parse_leading_double(text, rest).value_or(value);
}

constexpr int kDigits = 4;

// With the first of the ascending `units` that brings the rounded number below `limit`.
std::string format_scaled(double value, std::span<const Unit> units, std::string_view suffix, double limit = 1000) {
  if (!std::isfinite(value)) return "n/a";
  // Rounding lifts to the limit only what is close to it.
  const auto reaches_limit = [&](double scaled) {
    return scaled >= limit || (scaled > 0.99 * limit && round_significant(scaled, kDigits) >= limit);
  };
  std::size_t i = 0;
  while (i + 1 < units.size() && reaches_limit(std::abs(value / units[i].scale))) ++i;
  return fmt::format("{} {}{}", format_significant(value / units[i].scale, kDigits), units[i].name, suffix);
}

}  // namespace

std::optional<std::int64_t> parse_int(std::string_view text) {
  if (has_leading_zero(text)) return std::nullopt;
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

std::optional<double> parse_double(std::string_view text) {
  std::string_view rest;
  const std::optional<double> value = parse_leading_double(text, rest);
  return rest.empty() ? value : std::nullopt;
}

std::optional<Bytes> parse_bytes(std::string_view text) {
  const std::optional<double> value = parse_with_unit(text, kByteUnits, "");
  return value ? std::optional(Bytes{*value}) : std::nullopt;
}

std::optional<BytesPerSecond> parse_bytes_per_second(std::string_view text) {
  const std::optional<double> value = parse_with_unit(text, kByteUnits, "/s");
  return value ? std::optional(BytesPerSecond{*value}) : std::nullopt;
}

std::optional<FlopsPerSecond> parse_flops_per_second(std::string_view text) {
  // "TFLOP/s" before "TOP/s": neither is a suffix of the other, so the order does not matter.
  std::optional<double> value = parse_with_unit(text, kPrefixes, "FLOP/s");
  if (!value) value = parse_with_unit(text, kPrefixes, "OP/s");
  return value ? std::optional(FlopsPerSecond{*value}) : std::nullopt;
}

std::optional<Seconds> parse_seconds(std::string_view text) {
  const std::optional<double> value = parse_with_unit(text, kSecondUnits, "");
  return value ? std::optional(Seconds{*value}) : std::nullopt;
}

std::string format_bytes(Bytes bytes) { return format_scaled(bytes.value, kDecimalByteUnits, ""); }
std::string format_bytes_binary(Bytes bytes) { return format_scaled(bytes.value, kBinaryByteUnits, "", 1024); }
std::string format_flops(Flops flops) { return format_scaled(flops.value, kPrefixes, "FLOP"); }
std::string format_flops_rate(FlopsPerSecond r) { return format_scaled(r.value, kPrefixes, "FLOP/s"); }
std::string format_bandwidth(BytesPerSecond r) { return format_scaled(r.value, kDecimalByteUnits, "/s", 10000); }
std::string format_seconds(Seconds t) { return format_scaled(t.value, kSecondUnits, ""); }

std::string format_count(double count) {
  if (!std::isfinite(count)) return "n/a";
  std::string digits = fmt::format("{:.0f}", std::abs(count));
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return count < 0 && digits != "0" ? "-" + digits : digits;
}

std::string format_share(double ratio) {
  if (!std::isfinite(ratio)) return "n/a";
  return fmt::format("{:.1f} %", 100 * ratio);
}

std::string format_significant(double value, int digits) {
  if (!std::isfinite(value)) return "n/a";
  if (value == 0) return "0";
  const auto exponent_of = [](double number) { return static_cast<int>(std::floor(std::log10(std::abs(number)))); };
  int exponent = exponent_of(value);
  const bool may_carry = exponent_of(value / 0.9) > exponent;  // 9.96 to 10
  if (may_carry) exponent = exponent_of(round_significant(value, digits));
  if (exponent < -6 || exponent > 15) return fmt::format("{:.{}g}", value, digits);
  const int decimals = std::max(0, digits - 1 - exponent);
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (decimals > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return text;
}

void append_shortest(std::string& out, double value) {
  if (is_whole(value)) {
    const fmt::format_int digits(static_cast<std::int64_t>(value));
    out.append(digits.data(), digits.size());
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

}  // namespace llmperf
