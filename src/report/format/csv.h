// Cells of comma-separated text.
#pragma once

#include <string>
#include <string_view>

namespace llmperf::report {

// Quoted as RFC 4180 says where it must be; on one line; what a spreadsheet would take for a formula behind an
// apostrophe.
void append_csv_cell(std::string& out, std::string_view text);

}  // namespace llmperf::report
