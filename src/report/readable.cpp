// CSV columns for people. A column's name says the unit of its numbers (docs/json.md), which is all that is needed to
// print them: nothing here knows which command a table comes from.
#include <algorithm>
#include <array>
#include <cctype>

#include "base/number.h"
#include "base/text.h"
#include "report/quantity.h"
#include "report/study_view.h"

namespace llmperf::report {
std::string readable(const std::string& column, const std::string& value) {
  if (value.empty()) return "-";
  if (value == "true" || value == "false") return value == "true" ? "yes" : "no";
  const std::optional<double> parsed = parse_double(value);
  if (!parsed) return value;
  return quantity_text(column, *parsed);
}

std::string heading_of(const std::string& column) {
  constexpr std::array<std::string_view, 8> kAcronyms = {"ttft", "tpot", "kv", "mfu", "hfu", "vae", "tp", "cfg"};
  if (column == "total_bytes") return "memory";
  constexpr std::string_view kRate = "tokens_per_second";
  if (column.starts_with(kRate)) {
    std::string rest = column.substr(kRate.size());
    std::replace(rest.begin(), rest.end(), '_', ' ');
    return "tokens/s" + rest;
  }
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
