// Words for mappings, shared by the text and the JSON of `llmperf map`.
#pragma once

#include <string>

#include "mapper/tile/study.h"
#include "report/mapping_report.h"

namespace llmperf::report {

// "gemm m 4096, n 12288, k 4096"
std::string op_text(const MappingStudy& study);
std::string_view kind_name(const graph::Op& op);
// "m/4 n/4": the dimensions that tiles share.
std::string split_text(const mapper::tile::Description& mapping);
// "256x512x64"
std::string block_text(const mapper::tile::Description& mapping);
// "all of A", "3 of 8 slices of B", "results"
std::string stays_text(const mapper::tile::Description& mapping);
// "A multicast, B direct"
std::string feeds_text(const mapper::tile::Description& mapping);
std::string buffers_text(const mapper::tile::Operand& operand, mapper::tile::Results results);
// What takes a mapping longer than the best, by the closed form.
std::string slower_text(const mapper::tile::Description& best, const mapper::tile::Description& other);

}  // namespace llmperf::report
