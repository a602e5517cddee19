// The formats of files, one reader each. A reader adds what the file holds to the collector and problems to the list;
// after a problem it reads on, so that all of a file are reported at once.
#pragma once

#include <istream>
#include <string_view>

#include "descriptor/reader.h"
#include "import/collector.h"

namespace llmperf::import {

// CSV of Ascend profilers: op_summary_*.csv (msprof), kernel_details.csv (torch_npu), op_statistic.csv (totals by type
// only). Which one it is, and where its columns stand, says the header.
void read_ascend_csv(std::string_view text, descriptor::Problems& problems, Collector& into);

// Tables on the standard output of hccl_test and nccl-tests, among whatever else was printed there.
void read_hccl_test(std::string_view text, const Options& options, descriptor::Problems& problems, Collector& into);
void read_nccl_tests(std::string_view text, const Options& options, descriptor::Problems& problems, Collector& into);

// A trace of PyTorch's profiler in the Chrome Trace Event format. It is read in pieces: traces are large.
void read_chrome_trace(std::istream& stream, descriptor::Problems& problems, Collector& into);

}  // namespace llmperf::import
