// Values of command-line flags. All take the flag's name for their messages and throw Error(bad_input).
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/list.h"
#include "report/document.h"
#include "report/reports.h"
#include "request/request.h"
#include "result/generation.h"
#include "sweep/values.h"

namespace llmperf::cli {

struct Bounds {
  std::int64_t least = 0;
  std::int64_t most = 0;
  request::Kilo kilo = request::Kilo::none;  // what a suffix k means
};
using request::amount_value;
using request::count_value;
using request::number_value;
using sweep::list_value;
report::Format format_value(std::string_view flag, std::string_view text);
// The format an export's extension asks for: .json .csv .md .html .trace.json.
report::Format export_format(std::string_view path);

}  // namespace llmperf::cli
