// The output of `llmperf show model` for video diffusion transformers.
#pragma once

#include "model/video_dit.h"
#include "report/document.h"

namespace llmperf::report {

Report video_model_report(const model::VideoDit& model);

}  // namespace llmperf::report
