// Internal to src/model: Hugging Face config.json of the architectures we know. A config says a lot that does not
// change what a model costs (token ids, dropout, sampling defaults); those keys are listed and skipped. Any other key
// that its reader does not know is an error, because it might change the cost.
#pragma once

#include "descriptor/reader.h"
#include "model/decoder.h"

namespace llmperf::model {

// A .json file, or a mapping with a model_type or architectures key.
bool is_hf_config(const descriptor::Document& document);

// `beside`: the hf_quant_config.json of the same folder, or null. Throws Error(bad_input) with all problems, those
// already in `problems` included.
Decoder parse_hf_config(const descriptor::Document& document, descriptor::Problems& problems,
                        const descriptor::Document* beside);

}  // namespace llmperf::model
