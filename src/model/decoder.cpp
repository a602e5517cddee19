#include "model/decoder.h"

#include <algorithm>

#include "descriptor/reader.h"
#include "model/decoder_yaml.h"
#include "model/hf_config.h"
#include "model/video_dit.h"

namespace llmperf::model {

void Decoder::add_layer(const Layer& layer) {
  const auto kind = static_cast<std::size_t>(std::find(kinds.begin(), kinds.end(), layer) - kinds.begin());
  if (kind == kinds.size()) {
    kinds.push_back(layer);
    kind_counts.push_back(0);
  }
  layer_kinds.push_back(static_cast<unsigned char>(kind));
  ++kind_counts[kind];
}

Decoder parse_decoder(const descriptor::Document& document, const descriptor::Document* hf_quant_config) {
  if (is_video_dit(document)) reject_video_dit(document.file);
  descriptor::Problems problems(document.file);
  return is_hf_config(document) ? parse_hf_config(document, problems, hf_quant_config)
                                : parse_model_descriptor(document, problems);
}

}  // namespace llmperf::model
