// `llmperf estimate` and `llmperf compare` of a model that generates video.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/request.h"
#include "estimate/video.h"
#include "report/estimate_report.h"

namespace llmperf::cli {

// A loaded request; the choices point into the profile, an estimator made from them into model and device.
struct VideoRequest {
  model::VideoDit model;
  hardware::Device device;
  std::optional<hardware::RuntimeProfile> profile;  // none: the speed of light
  estimate::VideoChoices choices;
};
// Throws Error(bad_input).
std::unique_ptr<VideoRequest> load_video_request(const RequestFlags& flags);
std::unique_ptr<VideoRequest> load_video_request(const RequestFlags& flags, Sources& sources);
// --options and --execution under the request's profile.
void choose_video_execution(const RequestFlags& flags, const VideoRequest& request, estimate::VideoChoices& choices);

// Prints the estimate and returns the exit status. Throws Error: infeasible when it does not fit.
int video_action(const RequestFlags& flags, report::Detail detail, const OutputFlags& output);

// "0-13,14-27", each with how its blocks are divided: "0-9@2x2/2d". Of a sub-mesh of X x Y devices: ulysses (the
// default), tensor, or 2d (rows x columns). What a stage does not say is as in `plan`. Throws Error(bad_input) naming
// --stages.
std::vector<estimate::VideoStage> stages_value(const std::string& text, const graph::Plan& plan);

}  // namespace llmperf::cli
