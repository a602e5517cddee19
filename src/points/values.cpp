#include "points/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

namespace llmperf::points {
namespace {

struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
  char sign = '+';
  std::int64_t by = 1;
};

// "128k" without its suffix, and what that multiplies by.
std::int64_t take_suffix(std::string_view& text, std::int64_t kilo) {
  if (kilo == 0 || text.size() < 2) return 1;
  const std::int64_t scale = text.ends_with('k') || text.ends_with('K') ? kilo : text.ends_with('M') ? kilo * kilo : 1;
  if (scale > 1) text.remove_suffix(1);
  return scale;
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Nothing for what does not look like a range.
std::optional<Range> parse_range(std::string_view flag, std::string_view item, std::int64_t kilo) {
  const std::size_t dash = item.find('-');
  const std::size_t sign = item.find_first_of("+*", dash == std::string_view::npos ? 0 : dash);
  if (dash == std::string_view::npos || sign == std::string_view::npos) return std::nullopt;
  std::string_view parts[] = {item.substr(0, dash), item.substr(dash + 1, sign - dash - 1), item.substr(sign + 1)};
  const std::int64_t scales[] = {take_suffix(parts[0], kilo), take_suffix(parts[1], kilo),
                                 item[sign] == '+' ? take_suffix(parts[2], kilo) : 1};
  if (!std::all_of(std::begin(parts), std::end(parts), is_digits)) return std::nullopt;
  const auto first = parse_int(parts[0]);
  const auto last = parse_int(parts[1]);
  const auto by = parse_int(parts[2]);
  if (!first || !last || !by) {
    throw Error::bad_input(fmt::format("{}: cannot read the numbers of the range {}", flag, quote(item)));
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 40;  // with a suffix: no flag takes more
  const std::int64_t numbers[] = {*first, *last, *by};
  for (std::size_t i = 0; i < 3; ++i) {
    if (scales[i] > 1 && numbers[i] > kMost / scales[i]) {
      throw Error::bad_input(fmt::format("{}: cannot read the numbers of the range {}", flag, quote(item)));
    }
  }
  const Range range{*first * scales[0], *last * scales[1], item[sign], *by * scales[2]};
  if (range.last < range.first || (range.sign == '+' ? range.by < 1 : range.by < 2 || range.first < 1)) {
    throw Error::bad_input(fmt::format("{}: the range {} does not go up", flag, quote(item)),
                           "first-last+step or first-last*factor: 128-1024+128, 1-64*2");
  }
  return range;
}

}  // namespace

std::vector<std::string> expand_values(std::string_view flag, std::string_view text, char separator,
                                       std::int64_t kilo) {
  std::vector<std::string> values;
  std::unordered_set<std::string> seen;
  const auto add = [&](std::string value) {
    if (!seen.insert(value).second) {
      throw Error::bad_input(fmt::format("{}: {} is in the list more than once", flag, quote(value)));
    }
    if (values.size() == kMaxValues) throw Error::bad_input(fmt::format("{}: more than {} values", flag, kMaxValues));
    values.push_back(std::move(value));
  };
  for (const std::string_view part : split(text, separator)) {
    const std::string_view item = trim(part);
    if (item.empty()) throw Error::bad_input(fmt::format("{}: {} has an empty item", flag, quote(text)));
    if (item.find("..") != std::string_view::npos && is_digits(item.substr(0, 1)))
      throw Error::bad_input(fmt::format("{}: {} says no step", flag, quote(item)), "1-64*2 doubles, 1-64+8 adds 8");
    const std::optional<Range> range = parse_range(flag, item, kilo);
    if (!range) {
      add(std::string(item));
      continue;
    }
    for (std::int64_t value = range->first;;) {
      add(std::to_string(value));
      // Without overflow: value op by <= last.
      if (range->sign == '+' ? range->last - value < range->by : value > range->last / range->by) break;
      value = range->sign == '+' ? value + range->by : value * range->by;
    }
  }
  return values;
}

std::vector<std::string> list_value(std::string_view flag, std::string_view text) {
  std::vector<std::string> items;
  for (const std::string_view item : split(text, ',')) {
    if (trim(item).empty()) throw Error::bad_input(fmt::format("{}: {} has an empty item", flag, quote(text)));
    items.emplace_back(trim(item));
  }
  return items;
}

}  // namespace llmperf::points
