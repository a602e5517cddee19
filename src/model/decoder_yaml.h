// Internal to src/model: the reader of our own model descriptors (models/*.yaml).
#pragma once

#include "descriptor/reader.h"
#include "model/decoder.h"

namespace llmperf::model {

// Throws Error(bad_input) with all problems, those already in `problems` included.
Decoder parse_model_descriptor(const descriptor::Document& document, descriptor::Problems& problems);

}  // namespace llmperf::model
