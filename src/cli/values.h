// Values of command-line flags. All take the flag's name for their messages and throw Error(bad_input).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"
#include "report/document.h"
#include "report/reports.h"
#include "result/generation.h"

namespace llmperf::cli {

// A whole number between min and max.
std::int64_t int_value(std::string_view flag, std::string_view text, std::int64_t min, std::int64_t max);
// A finite number between min and max.
double double_value(std::string_view flag, std::string_view text, double min, double max);
// "512MiB", "2 GB": the unit is required; zero is allowed.
Bytes bytes_value(std::string_view flag, std::string_view text);
// An element type by its name.
Dtype dtype_value(std::string_view flag, std::string_view text);
std::vector<std::string> dtypes();
// --detail: summary or ops.
report::Detail detail_value(const std::string& text);
report::Format format_value(std::string_view flag, std::string_view text);
// --lang: en or zh.
report::Language language_value(std::string_view text);
// The format an export's extension asks for: .json .csv .md .html .trace.json.
report::Format export_format(std::string_view path);
// A comma-separated list without empty items.
std::vector<std::string> list_value(std::string_view flag, std::string_view text);

}  // namespace llmperf::cli
