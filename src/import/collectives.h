// What the outputs of hccl_test and nccl-tests have in common: one collective, sizes and times.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "descriptor/reader.h"
#include "import/import.h"
#include "import/kernels.h"

namespace llmperf::import {

// "all_reduce", "reduce_scatter" … in a name like "all_reduce_perf", "./AllReduce.txt" or "alltoall_test"; the
// collectives that measurements have no op for (broadcast) are named as well. Empty when there is none.
std::string collective_in(std::string_view name);

// The collective asked for, or that of the file's name; reported as a problem when there is neither.
std::string collective_of(const Options& options, descriptor::Problems& problems, int line);

// One line of a table. `bytes`: of the full tensor on one rank.
Mapped collective_row(const std::string& collective, std::int64_t ranks, double bytes, std::optional<Dtype> dtype);

}  // namespace llmperf::import
