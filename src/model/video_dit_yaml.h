// Internal to src/model: the reader of descriptors of video diffusion transformers (models/stdit*.yaml).
#pragma once

#include <span>
#include <string_view>

#include "descriptor/reader.h"
#include "model/video_dit.h"

namespace llmperf::model {

// What the key `kind` of such a file says.
inline constexpr std::string_view kVideoDitKind = "video-dit";

// Throws Error(bad_input) with all problems, those already in `problems` included.
VideoDit parse_video_descriptor(const descriptor::Document& document, std::span<const std::string_view> architectures,
                                descriptor::Problems& problems);

}  // namespace llmperf::model
