#include <fmt/format.h>

#include "base/number.h"
#include "base/text.h"
#include "report/plan_report.h"
#include "report/video_report.h"

namespace llmperf::report {

std::string plan_text(const estimate::VideoSetup& setup) {
  std::string text = devices_text(setup.cluster, setup.devices()) + ": ";
  if (setup.stages.size() == 1) return text + graph::to_text(setup.stages.front().plan);
  std::vector<std::string> stages;
  for (const estimate::VideoStage& stage : setup.stages) {
    graph::Plan plan = stage.plan;
    plan.pipeline = 1;
    const bool divided = plan.stage() > 1;
    stages.push_back(
        fmt::format("{}-{}{}", stage.first, stage.last, divided ? " (" + graph::to_text(plan) + ")" : std::string()));
  }
  text += fmt::format("{} stages of the depth, {}", stages.size(), join(stages, ", "));
  if (setup.execution.patches > 1) text += fmt::format("; {} patches", setup.execution.patches);
  return text;
}

std::string request_text(const estimate::VideoSetup& setup) {
  const graph::VideoExecution& e = setup.execution;
  const model::VideoShape& s = e.shape;
  std::string text = s.is_image() ? "an image" : fmt::format("{} frames", s.frames);
  if (e.videos > 1) text = fmt::format("{} times {}", e.videos, text);
  text += fmt::format(
      " of {}x{} (height x width); {} steps {} guidance, {} text tokens; weights {}, activations {}, text encoder {}; "
      "options {}",
      s.size.height, s.size.width, setup.scenario.steps, e.guidance ? "with" : "without", e.text_tokens,
      setup.weights_name, name(e.activations), name(e.text_activations), options_text(setup));
  if (setup.profile) text += fmt::format("; runtime {}, {}", setup.profile->name, hardware::name(setup.dispatch));
  if (setup.devices() > 1) text += "; " + plan_text(setup);
  return text;
}

}  // namespace llmperf::report
