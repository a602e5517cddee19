// An op in words, for every output.
#pragma once

#include <string>
#include <string_view>

#include "graph/op.h"
#include "model/decoder.h"

namespace llmperf::result {

// "dense", "expert, window": what tells the layers of a kind from those of the others; empty for
// models whose layers are all alike.
std::string layers_text(const model::Decoder& model, int kind);
// "512 x 12288 x 4096" and the like.
std::string shape_text(const graph::Op& op);
std::string_view kind_text(const graph::Op& op);
// Of the weights it reads or sends; null when it has none.
const model::StoredFormat* weight_format(const graph::Op& op);

}  // namespace llmperf::result
