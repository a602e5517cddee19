// The outputs of `llmperf estimate` for a model that generates video.
#pragma once

#include <string>

#include "report/estimate_report.h"
#include "result/video.h"

namespace llmperf::report {

Report video_report(const Video& video, Detail detail, Trace trace = {});

// ---- Shared with the report of a comparison

// "102 frames of 720x1280, 30 steps with guidance, 300 text tokens; weights bf16, activations bf16, …".
std::string request_text(const estimate::VideoSetup& setup);
// "4 devices on 1 node: tp 4"; with unlike stages each of them.
std::string plan_text(const estimate::VideoSetup& setup);

}  // namespace llmperf::report
