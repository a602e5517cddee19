// The vision towers of Hugging Face configs.
#pragma once

#include <optional>

#include "descriptor/reader.h"
#include "model/vision.h"

namespace llmperf::model {

// The tower that a config of text and images describes beside its language model, whose width is `text_hidden`; nothing
// where there is none, or one of a family that is not known. Problems are reported at their positions.
std::optional<VisionTower> read_hf_vision(const descriptor::Node& root, std::int64_t text_hidden,
                                          descriptor::Problems& problems);

}  // namespace llmperf::model
