// Exact parameter counts of a video diffusion transformer and the models around it, part by part. All integers; parts
// add up to totals exactly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/video_dit.h"

namespace llmperf::model {

struct VideoPart {
  std::string name;        // "spatial blocks: self-attention"
  std::int64_t count = 1;  // alike
  std::int64_t each = 0;   // parameters of one
  std::int64_t total() const { return count * each; }
};

struct VideoParameters {
  std::vector<VideoPart> transformer;
  std::vector<VideoPart> text_encoder;
  std::vector<VideoPart> autoencoder;  // both halves of both: all are loaded
  std::int64_t total = 0;              // of the transformer
  std::int64_t blocks = 0;             // of these, in blocks
  std::int64_t text_encoder_total = 0;
  std::int64_t autoencoder_total = 0;
};
VideoParameters count_parameters(const VideoDit& model);

}  // namespace llmperf::model
