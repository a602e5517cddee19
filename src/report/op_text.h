// An op in words, for every output.
#pragma once

#include <string>
#include <string_view>

#include "graph/op.h"

namespace llmperf::report {

// "512 x 12288 x 4096" and the like.
std::string shape_text(const graph::Op& op);
std::string_view kind_text(const graph::Op& op);
// Of the weights it reads or sends; null when it has none.
const model::StoredFormat* weight_format(const graph::Op& op);

}  // namespace llmperf::report
