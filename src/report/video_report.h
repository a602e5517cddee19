// The outputs of `llmperf estimate` for a model that generates video.
#pragma once

#include <string>

#include "estimate/video.h"
#include "report/document.h"
#include "report/estimate_report.h"
#include "report/runtime_text.h"

namespace llmperf::report {

Report video_report(const estimate::VideoEstimator& estimator, const estimate::VideoEstimate& estimate, Detail detail);
// The JSON document; keys are documented in docs/json.md.
std::string video_json(const estimate::VideoEstimator& estimator, const estimate::VideoEstimate& estimate);

// ---- Shared with the report of a comparison

// "102 frames of 720x1280, 30 steps with guidance, 300 text tokens; weights bf16, activations bf16, …".
std::string request_text(const estimate::VideoSetup& setup);
std::string options_text(const estimate::VideoSetup& setup);
// "4 devices on 1 node: tp 4"; with unlike stages each of them.
std::string plan_text(const estimate::VideoSetup& setup);
// In which ways the request lies outside of what the profile was fitted on; empty inside.
std::vector<std::string> extrapolations(const estimate::VideoSetup& setup);
// Of a generation; see runtime_text.h.
std::optional<Band> band(const estimate::VideoSetup& setup);

}  // namespace llmperf::report
