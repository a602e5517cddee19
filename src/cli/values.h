// Values of command-line flags. All take the flag's name for their messages and throw Error(bad_input).
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "report/document.h"
#include "report/reports.h"
#include "request/request.h"
#include "result/generation.h"

namespace llmperf::cli {

struct Bounds {
  std::int64_t least = 0;
  std::int64_t most = 0;
  request::Kilo kilo = request::Kilo::none;  // what a suffix k means
};
using request::amount_value;
using request::count_value;
using request::number_value;
report::Format format_value(std::string_view flag, std::string_view text);
// The format an export's extension asks for: .json .csv .md .html .trace.json.
report::Format export_format(std::string_view path);
template <class Range, class Value>
bool contains(const Range& range, const Value& value) {
  return std::find(std::begin(range), std::end(range), value) != std::end(range);
}
// A comma-separated list without empty items.
std::vector<std::string> list_value(std::string_view flag, std::string_view text);

}  // namespace llmperf::cli
