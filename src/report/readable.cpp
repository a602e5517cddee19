// CSV columns for people. A column's name says the unit of its numbers (docs/json.md), which is all that is needed to
// print them: nothing here knows which command a table comes from.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>

#include "base/number.h"
#include "base/text.h"
#include "report/study_view.h"

namespace llmperf::report {
namespace {

bool is_share(const std::string& column) {
  constexpr std::array<std::string_view, 6> kShares = {"error", "mfu", "hfu", "bias", "mape", "share"};
  return column.ends_with("utilisation") || std::find(kShares.begin(), kShares.end(), column) != kShares.end();
}

bool is_bytes(const std::string& column) {
  return column.ends_with("_bytes") || column.find("bytes_per_") != std::string::npos;
}

// Negative quantities are differences.
template <class Print>
std::string with_sign(double value, Print print) {
  return value < 0 ? "-" + print(-value) : print(value);
}

std::string number(double value) {
  if (value == std::floor(value)) return format_count(value);
  return std::abs(value) >= 1000 ? format_count(std::round(value)) : format_significant(value);
}

}  // namespace

std::string readable(const std::string& column, const std::string& value) {
  if (value.empty()) return "-";
  if (value == "true" || value == "false") return value == "true" ? "yes" : "no";
  const std::optional<double> parsed = parse_double(value);
  if (!parsed) return value;
  if (is_share(column)) return format_share(*parsed);
  if (column.ends_with("_s") && *parsed == 0) return "0 s";
  if (column.ends_with("_s")) return with_sign(*parsed, [](double v) { return format_seconds(Seconds{v}); });
  if (is_bytes(column)) return with_sign(*parsed, [](double v) { return format_bytes_binary(Bytes{v}); });
  if (column.find("flops_per_s") != std::string::npos) return format_flops_rate(FlopsPerSecond{*parsed});
  return with_sign(*parsed, number);
}

std::string heading_of(const std::string& column) {
  constexpr std::array<std::string_view, 8> kAcronyms = {"ttft", "tpot", "kv", "mfu", "hfu", "vae", "tp", "cfg"};
  std::string text;
  std::vector<std::string_view> words = split(column, '_');
  const bool unit = words.back() == "s" || words.back() == "bytes" || words.back() == "tokens";
  if (words.size() > 1 && unit && words[words.size() - 2] != "per") words.pop_back();
  for (const std::string_view word : words) {
    const bool acronym = std::find(kAcronyms.begin(), kAcronyms.end(), word) != kAcronyms.end();
    if (!text.empty()) text += ' ';
    for (const char c : word) text += acronym ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
  }
  return text;
}

}  // namespace llmperf::report
